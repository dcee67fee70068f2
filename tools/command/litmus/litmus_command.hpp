// SPDX-License-Identifier: Apache-2.0
// `isthmus litmus`: trials of what CPU and GPU see of each other's accesses on this machine.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`; the callback leaves its exit code there.
void add_litmus_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
