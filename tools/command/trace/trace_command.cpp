// SPDX-License-Identifier: Apache-2.0
// Reads the file, and prints its summary.
#include "trace_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/session.hpp"
#include "trace_summary.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace isthmus::tools {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;  // of a file that is read

}  // namespace

void add_trace_command(CLI::App& app, CommandContext& context) {
    struct Choices {
        std::string file;
        double warm_ms = 0;
    };
    const auto choices = std::make_shared<Choices>();
    CLI::App* const command =
        app.add_subcommand("trace", "say what a trace shows: bytes copied and why, waits, allocations, refusals");
    command->add_option("FILE", choices->file, "the file that --trace or ISTHMUS_TRACE named")->required();
    CLI::Option* const warm = add_number(*command, "--warm-up", choices->warm_ms, {0.0, 1e9},
                                         "milliseconds after which allocations count; default: a third of the trace");
    command->callback([&context, choices, warm] {
        const std::optional<double> after = warm->count() > 0 ? std::optional(choices->warm_ms) : std::nullopt;
        const trace::Read read = trace::summarise(read_text(choices->file, most_bytes), after);
        if (!read.summary) bad_input(fmt::format("{}: {}", choices->file, read.problem));
        print(context.json ? trace::as_json(*read.summary)
                           : trace::as_text(*read.summary, stdout_columns(), stdout_has_colour()));
        context.exit_code = exit_ok;
    });
}

}  // namespace isthmus::tools
