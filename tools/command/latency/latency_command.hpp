// SPDX-License-Identifier: Apache-2.0
// `isthmus latency`: a loop at a period with CPU and GPU work, and how late its answers are.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback stores its exit code in `context`.
void add_latency_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
