// SPDX-License-Identifier: Apache-2.0
// `isthmus report`: one file about this machine for the project, and what the project makes of it.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_report_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
