// SPDX-License-Identifier: Apache-2.0
// `isthmus doctor`: what is wrong or missing on this machine, and how to mend it.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`; the callback leaves its exit code there.
void add_doctor_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
