// SPDX-License-Identifier: Apache-2.0
// Runs the program once on one machine, with this command's terminal, or on each of several, with its output kept.
#include "simulate_command.hpp"

#include "camera/atomic_file.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/program.hpp"
#include "common/session.hpp"
#include "play_program.hpp"
#include "simulation.hpp"
#include "stage.hpp"

#include <machines/record.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::tools {
namespace {

using simulate::Simulation;

constexpr const char* default_machine = "h200";

struct SimulateOptions {
    std::vector<std::string> machines;
    std::string output;
    bool strict = false;
    bool uninitialised = false;
    bool quiet = false;
    double deadline_seconds = 300;
};

struct Machine {
    std::string name;
    std::string played;  // for ISTHMUS_SIM: a name, or a record's absolute path
};

Machine checked(CommandContext context, const std::string& name) {
    context.machine = name;
    context.machine_record = readable_record(name);
    return {name, machine_to_play(context)};
}

std::vector<std::string> names_of(const SimulateOptions& options) {
    if (options.machines != std::vector<std::string>{"all"}) return options.machines;
    std::vector<std::string> all;
    for (const std::string_view name : platform::machines::known_machines()) all.emplace_back(name);
    return all;
}

std::string one_machine(const CommandContext& context) {
    if (!context.machine.empty()) return context.machine;
    const char* const set = std::getenv("ISTHMUS_SIM");
    return set && *set ? set : default_machine;
}

// The last line with text.
std::string last_line_of(const std::string& text) {
    const std::string all = text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
    const std::size_t break_before = all.rfind('\n');
    return break_before == std::string::npos ? all : all.substr(break_before + 1);
}

simulate::Ending ending_of(const ProgramOutcome& outcome, double deadline_seconds) {
    simulate::Ending ending;
    switch (outcome.end) {
        case ProbeEnd::finished: ending.status = outcome.status; break;
        case ProbeEnd::crashed: ending.signal = outcome.signal; break;
        case ProbeEnd::hung: ending.problem = fmt::format("did not end within {} s", deadline_seconds); break;
        case ProbeEnd::failed: ending.problem = "could not be run: " + last_line_of(outcome.text); break;
    }
    return ending;
}

Simulation play_one(const Machine& machine, const std::string& file, const simulate::Stage& stage,
                    const SimulateOptions& options, const CommandContext& context, bool& has_counts) {
    stage.set(machine.played, options.strict, options.uninitialised);
    Simulation simulation{machine.name, context.program, {}, {}, {}};
    simulation.ending = simulate::play_program(file, context.program, context.json);
    std::optional<simulate::Counts> counts = stage.counts();
    has_counts = counts.has_value();
    if (counts) simulation.counts = std::move(*counts);
    return simulation;
}

Simulation play_kept(const Machine& machine, const std::string& file, const simulate::Stage& stage,
                     const SimulateOptions& options, const CommandContext& context) {
    stage.set(machine.played, options.strict, options.uninitialised);
    std::vector<std::string> words = context.program;
    words.front() = file;
    const ProgramOutcome outcome =
        run_program(words, std::chrono::milliseconds(static_cast<long long>(options.deadline_seconds * 1e3)));
    simulate::Ending ending = ending_of(outcome, options.deadline_seconds);
    std::optional<simulate::Counts> counts = stage.counts();
    if (!counts && ending.exit_code() == 0) ending.problem = "left damaged counts";
    return {machine.name, context.program, std::move(ending), std::move(counts).value_or(simulate::Counts{}),
            last_line_of(outcome.text)};
}

void write_output(const SimulateOptions& options, const std::string& document) {
    if (options.output.empty()) return;
    camera::OutputFiles files;
    add_file(files, options.output, document);
    commit(files);
}

int run_simulate(const CommandContext& context, const SimulateOptions& options) {
    if (context.program.empty()) {
        bad_input("simulate needs a program behind --, as in: isthmus simulate --machine orin -- ./program");
    }
    if (!options.machines.empty() && !context.machine.empty()) {
        bad_input("--machines goes without --machine: it names all of them");
    }
    const std::string file = simulate::found_program(context.program.front());
    if (file.empty()) throw Failure(127, fmt::format("'{}': no such program", context.program.front()));
    std::vector<Machine> machines;
    const bool several = !options.machines.empty();
    for (const std::string& name : several ? names_of(options) : std::vector{one_machine(context)}) {
        machines.push_back(checked(context, name));
    }
    const simulate::Stage stage(*find_simulator());
    const TextStyle style{stdout_columns(), stdout_has_colour()};
    if (!several) {
        bool has_counts = false;
        const Simulation done = play_one(machines.front(), file, stage, options, context, has_counts);
        if (!has_counts) return done.ending.exit_code();  // a report without them would say that nothing was called
        if (!options.quiet) print(context.json ? as_json(done) : as_text(done, style));
        write_output(options, as_json(done));
        return done.ending.exit_code();
    }
    std::vector<Simulation> all;
    for (const Machine& machine : machines) all.push_back(play_kept(machine, file, stage, options, context));
    if (!options.quiet) print(context.json ? as_json(all) : as_matrix(all, style));
    write_output(options, as_json(all));
    const bool all_well =
        std::all_of(all.begin(), all.end(), [](const Simulation& one) { return one.ending.exit_code() == 0; });
    return all_well ? exit_ok : exit_failed;
}

}  // namespace

void add_simulate_command(CLI::App& app, CommandContext& context) {
    CLI::App* const command = app.add_subcommand(
        "simulate", "run a CUDA driver-API program on a simulated machine: isthmus simulate [OPTIONS] -- PROGRAM ...");
    const auto options = std::make_shared<SimulateOptions>();
    command
        ->add_option("--machines", options->machines, "several simulated machines: names with commas between, or all")
        ->type_name("NAME,...")
        ->delimiter(',');
    command->add_flag("--strict", options->strict,
                      "abort the program where a real driver leaves the effect of a call undefined");
    command->add_flag("--uninitialised", options->uninitialised,
                      "report where kernels from PTX read memory that nothing wrote");
    command->add_flag("--quiet", options->quiet, "print no report");
    command->add_option("--output", options->output, "write the JSON document to a file, too")->type_name("FILE");
    add_number(*command, "--deadline", options->deadline_seconds, {0.001, 1e6},
               "seconds for the program on each of --machines; default 300");
    command->footer(
        "Exit code: the program's, or 128 and the signal that ended it; with --machines 1 if one run failed. "
        "127: no such program; 126: it cannot be run.");
    command->callback([&context, options] { context.exit_code = run_simulate(context, *options); });
}

}  // namespace isthmus::tools
