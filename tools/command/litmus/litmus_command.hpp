// SPDX-License-Identifier: Apache-2.0
// `isthmus litmus`: trials of the memory model between CPU and GPU on this machine.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_litmus_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
