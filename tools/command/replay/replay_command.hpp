// SPDX-License-Identifier: Apache-2.0
// `isthmus replay FILE`: what a recorded program would do on another machine.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;
void add_replay_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
