// SPDX-License-Identifier: Apache-2.0
// `isthmus trace FILE`: what a recorded trace says.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;
void add_trace_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
