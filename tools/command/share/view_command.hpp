// SPDX-License-Identifier: Apache-2.0
// `isthmus view`: reads the frames of `isthmus share` in another process.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;
void add_view_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
