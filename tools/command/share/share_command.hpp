// SPDX-License-Identifier: Apache-2.0
// `isthmus share`: gives frames of a camera, a file or a synthetic clip to other processes.
#pragma once

#include "common/command.hpp"

namespace CLI {
class App;
}

namespace isthmus::tools {

void add_share_command(CLI::App& app, CommandContext& context);

// The directory of the ring's socket: `asked`, or $XDG_RUNTIME_DIR/isthmus by default. Throws Failure where that
// variable is not set.
std::string meeting_place(const std::string& asked);

}  // namespace isthmus::tools
