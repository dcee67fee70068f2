// SPDX-License-Identifier: Apache-2.0
// Runs trials in a child process with a deadline, prints their results and saves them with the machine's record.
#include "litmus_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "report.hpp"
#include "trials.hpp"
#include "common/number_options.hpp"
#include "common/probe.hpp"
#include "common/session.hpp"

#include <isthmus/atomic_pair.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

namespace isthmus::tools {
namespace {

namespace machines = platform::machines;
using litmus::Report;

struct LitmusOptions {
    litmus::Request request;
    double deadline_seconds = 0;  // 0: the time that the request needs, with a margin
    std::string save;
};

// Fills in the report's device, and returns the rows and the sizes of the trials.
std::vector<litmus::Row> prepare(Runtime& runtime, Device& device, const CommandContext& context,
                                 litmus::Request& request, litmus::Setting& setting, Report& report) {
    report.device = device.name();
    report.uuid = device.facts().uuid ? device.facts().uuid.text() : "";
    report.ordinal = device.facts().ordinal;
    report.driver_version = runtime.machine().driver_version;
    report.simulated = runtime.machine().simulated;
    report.applicable = !device.is_cpu();
    report.record = machines::write_record(record_of_machine(runtime, context, "recorded"));
    if (!report.applicable) return {};
    request.host_has_16 = host_has_pairs();
    setting = litmus::setting_for(device.facts(), runtime.machine(), request, std::thread::hardware_concurrency());
    report.threads = setting.threads;
    if (report.simulated && request.instances == 0) request.instances = setting.size.instances();
    return litmus::plan_rows(device.capabilities(), request, report.left_out);
}

// Runs in the child: opens the machine, reports it, and runs the trials.
void play(const CommandContext& context, litmus::Request request, const Say& say) {
    // Trials need both sides at the same time; the simulator's seeded mode has one thread for both.
    ::setenv("ISTHMUS_SIM_MODE", "threads", 1);
    Report report;
    report.seed = request.seed;
    report.mutant = request.mutant;
    try {
        Result<Runtime> runtime = context.open_runtime();
        if (!runtime) cannot(runtime.error().text());
        Device& device = choose_device(*runtime, context);
        litmus::Setting setting;
        std::vector<litmus::Row> rows = prepare(*runtime, device, context, request, setting, report);
        say(litmus::header_line(report));
        const auto tell = [&](std::size_t at) { say(litmus::row_line(at, rows[at])); };
        for (std::size_t at = 0; at < rows.size(); ++at) tell(at);
        if (!rows.empty()) litmus::run_trials(device, request, setting, rows, tell);
    } catch (const Failure& failure) {
        report.cannot = failure.what();
        report.cannot_code = failure.exit_code();
        say(litmus::header_line(report));
    }
}

std::chrono::milliseconds deadline_of(const LitmusOptions& options) {
    double seconds = options.deadline_seconds;
    if (seconds == 0) {
        // A million instances per second and row is a low rate, but memory that migrates back and forth reaches less.
        const double rows = 4.0 * litmus_shape_count;
        const double asked = static_cast<double>(options.request.instances) / 1e6 * rows;
        seconds = std::min(60 + 4 * options.request.seconds + asked, 1e6);  // the limit of --deadline
    }
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Keeps what the child reported before its end: finished rows, and the row that was running.
Report report_of(const ProbeOutcome& outcome, double deadline_seconds) {
    if (outcome.end == ProbeEnd::failed && outcome.text.empty()) cannot("no child process could be started");
    Report report = litmus::report_of_lines(outcome.text);
    litmus::Ending ending = litmus::Ending::not_run;
    switch (outcome.end) {
        case ProbeEnd::finished: return report;
        case ProbeEnd::hung:
            report.end = fmt::format("were not over after {:.3g} seconds and were ended", deadline_seconds);
            ending = litmus::Ending::hung;
            break;
        case ProbeEnd::crashed:
            report.end = fmt::format("crashed by signal {}", outcome.signal);
            ending = litmus::Ending::crashed;
            break;
        case ProbeEnd::failed: {
            const std::size_t last = outcome.text.rfind('\n');
            report.end = "failed: " + outcome.text.substr(last == std::string::npos ? 0 : last + 1);
            break;
        }
    }
    for (litmus::Row& row : report.rows) {
        if (row.ending != litmus::Ending::not_run) continue;
        row.ending = ending;  // the row that was running; the rows after it were not run
        break;
    }
    return report;
}

void save(const Report& report, const std::string& file, camera::OutputFiles& files) {
    Result<machines::MachineRecord> record = machines::read_record(report.record);
    if (!record) bad_input(fmt::format("--save {}: {}", file, record.error().message()));
    for (machines::DeviceRecord& device : record->devices) {
        if (device.facts.ordinal != report.ordinal || !device.facts.uuid) continue;
        device.litmus =
            LitmusFinding{device.facts.uuid, report.driver_version, report.simulated, litmus::results_of(report.rows)};
    }
    add_file(files, file, machines::write_record(*record));
}

int run_litmus(const CommandContext& context, const LitmusOptions& options) {
    if (!options.save.empty() && !options.request.mutant.empty()) {
        bad_input("--save keeps what was found of the machine: it does not go with --mutant");
    }
    check_machine(context);
    const std::chrono::milliseconds deadline = deadline_of(options);
    const ProbeOutcome outcome =
        run_saying_probe([&](const Say& say) { play(context, options.request, say); }, deadline);
    const Report report = report_of(outcome, std::chrono::duration<double>(deadline).count());
    if (!report.cannot.empty()) throw Failure(report.cannot_code, report.cannot);
    // A child that crashed before it reported the machine leaves nothing to save; the report says so.
    camera::OutputFiles files;
    if (!options.save.empty() && report.applicable && !report.record.empty()) save(report, options.save, files);
    print(context.json ? litmus::as_json(report) : litmus::as_text(report, {stdout_columns(), stdout_has_colour()}));
    commit(files);
    return litmus::exit_code(report);
}

MemoryKind kind_of(const std::string& text) {
    for (const MemoryKind kind : litmus::tried_kinds) {
        if (text == name(kind)) return kind;
    }
    bad_input(fmt::format("--kinds {}: pinned, registered, host or managed", text));
}

LitmusShape shape_named(const std::string& text) {
    if (const auto shape = litmus::shape_of(text)) return *shape;
    std::string known;
    for (int code = 0; code < litmus_shape_count; ++code) {
        known += fmt::format("{}{}", code == 0 ? "" : ", ", name(static_cast<LitmusShape>(code)));
    }
    bad_input(fmt::format("--shapes {}: known are {}", text, known));
}

std::string is_mutant(const std::string& text) {
    if (litmus::find_mutant(text) != nullptr) return {};
    std::string known;
    for (const litmus::Mutant& mutant : litmus::mutants) known.append(known.empty() ? "" : ", ").append(mutant.name);
    return "known mutants: " + known;
}

}  // namespace

void add_litmus_command(CLI::App& app, CommandContext& context) {
    struct Choices {
        LitmusOptions options;
        std::vector<std::string> kinds;
        std::vector<std::string> shapes;
    };
    const auto choices = std::make_shared<Choices>();
    litmus::Request& request = choices->options.request;
    CLI::App* command =
        app.add_subcommand("litmus", "try what CPU and GPU see of each other's accesses to shared memory");
    command
        ->add_option("--kinds", choices->kinds,
                     "memory kinds: pinned, registered, host, managed; default: all that both sides may use at once")
        ->delimiter(',')
        ->type_name("KIND,…");
    command->add_option("--shapes", choices->shapes, "shapes of trials, by their names in the report; default: all")
        ->delimiter(',')
        ->type_name("SHAPE,…");
    CLI::Option* const instances = add_number(*command, "--instances", request.instances, {1, std::uint64_t{1} << 50},
                                              "instances of each shape in each kind");
    add_number(*command, "--seconds", request.seconds, {0.1, 86400.0},
               "duration of all trials together, without --instances")
        ->capture_default_str()
        ->excludes(instances);
    add_number(*command, "--threads", request.threads, {1, 256}, "CPU threads; default: as many as are useful");
    add_number(*command, "--seed", request.seed, {}, "seed of the random delays")->capture_default_str();
    add_number(*command, "--deadline", choices->options.deadline_seconds, {0.1, 1e6},
               "seconds after which the trials are ended");
    command->add_option("--save", choices->options.save, "save the machine's record with the findings, as JSON")
        ->type_name("FILE")
        ->check([](const std::string& file) { return std::string(file.empty() ? "names no file" : ""); });
    command->add_option("--mutant", request.mutant, "run with a deliberate error, which the trials should detect")
        ->type_name("NAME")
        ->check(is_mutant);
    command->footer("Exits with 1 where a forbidden outcome was seen or the trials did not come to their end.");
    command->callback([choices, &context] {
        for (const std::string& kind : choices->kinds) choices->options.request.kinds.push_back(kind_of(kind));
        for (const std::string& shape : choices->shapes) choices->options.request.shapes.push_back(shape_named(shape));
        context.exit_code = run_litmus(context, choices->options);
    });
}

}  // namespace isthmus::tools
