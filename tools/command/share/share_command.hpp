// SPDX-License-Identifier: Apache-2.0
// `isthmus share`: frames of a camera, a file or a made-up clip for other processes.
#pragma once

#include "common/command.hpp"

namespace CLI {
class App;
}

namespace isthmus::tools {

void add_share_command(CLI::App& app, CommandContext& context);

// Where share and view meet if nobody says: $XDG_RUNTIME_DIR/isthmus. Throws Failure where there is no such variable.
std::string meeting_place(const std::string& asked);

}  // namespace isthmus::tools
