// SPDX-License-Identifier: Apache-2.0
// Reads the options, takes the runs, and writes the report.
#include "latency_command.hpp"

#include "camera/stop_signal.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/session.hpp"
#include "measure.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>

namespace isthmus::tools {
namespace {

using camera::StopSignal;
using latency::Report;
using latency::Request;

struct LatencyOptions {
    Request request;
    std::string work = "launch";
    std::string kind;
    std::vector<std::string> loads;
    std::string compare;
    std::string cpus;
    std::string waiting = "adaptive";
    std::string mutant;
    std::string html;
    std::string output;
};

// The words of the options, which CLI11 has checked where they are one of a few.
void read_words(LatencyOptions& options) {
    Request& request = options.request;
    request.work = *latency::work_of(options.work);
    if (!options.kind.empty()) {
        request.kind = latency::kind_of(options.kind);
        if (!request.kind) {
            bad_input(fmt::format("--kind {}: pinned, registered, host, managed or device", options.kind));
        }
    }
    for (const std::string& word : options.loads) {
        const auto load = latency::load_of(word);
        if (!load) bad_input(fmt::format("--load {}: cpu, memory, page-cache, stream or copies", word));
        for (const latency::LoadKind other : request.loads) {
            if (other == *load) bad_input(fmt::format("--load names {} twice", word));
        }
        request.loads.push_back(*load);
    }
    if (options.compare == "kinds" && request.kind) bad_input("--compare kinds does not go with --kind");
    if (options.compare == "sealed" && request.sealed) bad_input("--compare sealed does not go with --sealed");
    if (!options.compare.empty()) {
        request.compare = options.compare == "kinds" ? latency::Comparison::kinds : latency::Comparison::sealed;
    }
    if (!options.cpus.empty()) {
        const auto cpus = latency::cpus_of(options.cpus);
        if (!cpus) bad_input(fmt::format("--cpus {}: numbers and ranges are wanted, as 2,4-7", options.cpus));
        request.cpus = *cpus;
    }
    if (!options.mutant.empty()) {
        request.mutant = options.mutant == "no_answer" ? latency::Mutant::no_answer : latency::Mutant::wrong_answer;
    }
    if (request.bytes % 4 != 0) bad_input(fmt::format("--bytes {}: a multiple of 4 is wanted", request.bytes));
}

int run_latency(CommandContext& context, LatencyOptions& options) {
    read_words(options);
    // The loop's thread and the device's work need to run at the same time; the simulator's seeded mode has one thread
    // for both.
    ::setenv("ISTHMUS_SIM_MODE", "threads", 1);
    context.adjust_options = [&options](RuntimeOptions& runtime) {
        runtime.wait_timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(options.request.give_up_seconds));
        runtime.wait_policy = options.waiting == "spin"    ? WaitPolicy::spin
                              : options.waiting == "sleep" ? WaitPolicy::sleep
                                                           : WaitPolicy::adaptive;
    };
    Report report;
    report.request = options.request;
    {
        const StopSignal signals;
        Result<Runtime> runtime = context.open_runtime();
        if (!runtime) throw Failure(exit_failed, runtime.error().text());
        Device& device = choose_device(*runtime, context);
        report.where = ran_on(*runtime, device, context);
        report.driver_version = runtime->machine().driver_version;
        latency::measure(*runtime, device, &StopSignal::received, report);
    }
    camera::OutputFiles files;
    if (!options.html.empty()) add_file(files, options.html, latency::html_page(report));
    if (!options.output.empty()) add_file(files, options.output, latency::as_json(report));
    print(context.json ? latency::as_json(report) : latency::as_text(report, {stdout_columns(), stdout_has_colour()}));
    commit(files);
    return latency::exit_code(report);
}

std::string names_a_file(const std::string& file) {
    return file.empty() ? "names no file" : "";
}

void add_loop_options(CLI::App& command, LatencyOptions& options) {
    Request& request = options.request;
    command
        .add_option("--work", options.work, "what the device does in a turn: a launch, a graph, or a service's answer")
        ->type_name("launch|graph|service")
        ->check(CLI::IsMember({"launch", "graph", "service"}))
        ->capture_default_str();
    add_number(command, "--period", request.period_us, {10.0, 1e7}, "microseconds from turn to turn")
        ->capture_default_str();
    add_number(command, "--deadline", request.deadline_us, {1.0, 1e8},
               "microseconds from a turn's planned begin until its answer is checked; default: the period");
    CLI::Option* const turns =
        add_number(command, "--turns", request.turns, {1, std::uint64_t{1} << 32}, "turns of each run");
    add_number(command, "--duration", request.seconds, {0.001, 1e6}, "seconds of each run, without --turns")
        ->capture_default_str()
        ->excludes(turns);
    add_number(command, "--warm-up", request.warm_up, {1, 1'000'000'000},
               "turns before those that count; default: as many as fit into a second");
    add_number(command, "--bytes", request.bytes, {4, std::uint64_t{1} << 30}, "bytes of the shared buffer")
        ->capture_default_str();
    command
        .add_option("--kind", options.kind,
                    "its memory: pinned, registered, host, managed, device; default: what the library chooses")
        ->type_name("KIND");
    add_number(command, "--give-up", request.give_up_seconds, {0.01, 3600.0},
               "seconds after which a wait for the device ends the run")
        ->capture_default_str();
    command.add_option("--waiting", options.waiting, "how to wait for the device: adaptive, spin or sleep")
        ->type_name("HOW")
        ->check(CLI::IsMember({"adaptive", "spin", "sleep"}))
        ->capture_default_str();
}

void add_thread_options(CLI::App& command, LatencyOptions& options) {
    command.add_flag("--sealed", options.request.sealed,
                     "seal the loop's thread: calls that would allocate, map or load code are refused");
    add_number(command, "--priority", options.request.priority, {1, 99}, "SCHED_FIFO priority of the loop's thread");
    command.add_option("--cpus", options.cpus, "CPUs on which the loop's thread runs, as 2,4-7")->type_name("LIST");
}

}  // namespace

void add_latency_command(CLI::App& app, CommandContext& context) {
    const auto options = std::make_shared<LatencyOptions>();
    CLI::App* command = app.add_subcommand("latency", "measure how late the answers of a loop at a period are");
    add_loop_options(*command, *options);
    add_thread_options(*command, *options);
    command->add_option("--load", options->loads, "what disturbs the loop: cpu, memory, page-cache, stream, copies")
        ->delimiter(',')
        ->type_name("LOAD,…");
    command
        ->add_option("--compare", options->compare,
                     "several runs: unsealed and sealed, or the kinds of memory of the shared buffer")
        ->type_name("sealed|kinds")
        ->check(CLI::IsMember({"sealed", "kinds"}));
    command->add_option("--html", options->html, "write a page with histograms")
        ->type_name("FILE")
        ->check(names_a_file);
    command->add_option("--output", options->output, "write the JSON document to a file, beside what is printed")
        ->type_name("FILE")
        ->check(names_a_file);
    command->add_option("--mutant", options->mutant, "run with a deliberate error, which the loop should notice")
        ->type_name("NAME")
        ->check(CLI::IsMember({"wrong_answer", "no_answer"}));
    command->footer(
        "Missed deadlines are results. Exits with 1 where an answer is wrong, or the device is lost or hangs.");
    command->callback([options, &context] { context.exit_code = run_latency(context, *options); });
}

}  // namespace isthmus::tools
