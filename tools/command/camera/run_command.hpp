// SPDX-License-Identifier: Apache-2.0
// `isthmus run`: the camera pipeline on the user's frames. Declares the subcommand and its options.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`. The callback runs the pipeline and stores its exit code in `context`.
void add_run_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
