// SPDX-License-Identifier: Apache-2.0
// isthmus simulate: runs any program on the driver API on a simulated machine, and reports what the machine's rules
// caught.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

void add_simulate_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
