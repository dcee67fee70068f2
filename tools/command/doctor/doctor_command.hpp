// SPDX-License-Identifier: Apache-2.0
// `isthmus doctor`: finds problems of this machine, and says how to correct them.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_doctor_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
