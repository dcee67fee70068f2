// SPDX-License-Identifier: Apache-2.0
// `isthmus caps`: what each device can do, and why.
#pragma once

namespace CLI {
class App;
}

namespace isthmus::tools {

struct CommandContext;

// `context` must outlive the parsing of `app`; the callback leaves its exit code there.
void add_caps_command(CLI::App& app, CommandContext& context);

}  // namespace isthmus::tools
