// SPDX-License-Identifier: Apache-2.0
// `isthmus caps`: the capabilities of each device, and the reason for each.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_caps_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
