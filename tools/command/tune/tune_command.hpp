// SPDX-License-Identifier: Apache-2.0
// `isthmus tune`: measures which memory is fastest on this machine, and writes a profile that the runtime reads.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_tune_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
