// SPDX-License-Identifier: Apache-2.0
// The child opens the machine, reports it and runs the trials; the parent keeps what it reported before its end.
#include "litmus_child.hpp"

#include "common/console.hpp"
#include "common/probe.hpp"
#include "common/session.hpp"
#include "trials.hpp"

#include <isthmus/atomic_pair.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

namespace isthmus::tools::litmus {
namespace {

namespace machines = platform::machines;

// Fills in the report's device, and returns the rows and the sizes of the trials.
std::vector<Row> prepare(Runtime& runtime, Device& device, const CommandContext& context, Request& request,
                         Setting& setting, Report& report) {
    report.device = device.name();
    report.uuid = device.facts().uuid ? device.facts().uuid.text() : "";
    report.ordinal = device.facts().ordinal;
    report.driver_version = runtime.machine().driver_version;
    report.simulated = runtime.machine().simulated;
    report.applicable = !device.is_cpu();
    report.record = machines::write_record(record_of_machine(runtime, context, "recorded"));
    if (!report.applicable) return {};
    request.host_has_16 = host_has_pairs();
    setting = setting_for(device.facts(), runtime.machine(), request, std::thread::hardware_concurrency());
    report.threads = setting.threads;
    if (report.simulated && request.instances == 0) request.instances = setting.size.instances();
    return plan_rows(device.capabilities(), request, report.left_out);
}

// Runs in the child: opens the machine, reports it, and runs the trials.
void play(const CommandContext& context, Request request, const Say& say) {
    // Trials need both sides at the same time; the simulator's seeded mode has one thread for both.
    ::setenv("ISTHMUS_SIM_MODE", "threads", 1);
    Report report;
    report.seed = request.seed;
    report.mutant = request.mutant;
    try {
        Result<Runtime> runtime = context.open_runtime();
        if (!runtime) cannot(runtime.error().text());
        Device& device = choose_device(*runtime, context);
        Setting setting;
        std::vector<Row> rows = prepare(*runtime, device, context, request, setting, report);
        say(header_line(report));
        const auto tell = [&](std::size_t at) { say(row_line(at, rows[at])); };
        for (std::size_t at = 0; at < rows.size(); ++at) tell(at);
        if (!rows.empty()) run_trials(device, request, setting, rows, tell);
    } catch (const Failure& failure) {
        report.cannot = failure.what();
        report.cannot_code = failure.exit_code();
        say(header_line(report));
    }
}

// Keeps what the child reported before its end: finished rows, and the row that was running.
Report report_of(const ProbeOutcome& outcome, double deadline_seconds) {
    if (outcome.end == ProbeEnd::failed && outcome.text.empty()) cannot("no child process could be started");
    Report report = report_of_lines(outcome.text);
    Ending ending = Ending::not_run;
    switch (outcome.end) {
        case ProbeEnd::finished: return report;
        case ProbeEnd::hung:
            report.end = fmt::format("were not over after {:.3g} seconds and were ended", deadline_seconds);
            ending = Ending::hung;
            break;
        case ProbeEnd::crashed:
            report.end = fmt::format("crashed by signal {}", outcome.signal);
            ending = Ending::crashed;
            break;
        case ProbeEnd::failed: {
            const std::size_t last = outcome.text.rfind('\n');
            report.end = "failed: " + outcome.text.substr(last == std::string::npos ? 0 : last + 1);
            break;
        }
    }
    for (Row& row : report.rows) {
        if (row.ending != Ending::not_run) continue;
        row.ending = ending;  // the row that was running; the rows after it were not run
        break;
    }
    return report;
}

}  // namespace

Report run_in_child(const CommandContext& context, const Request& request, std::chrono::milliseconds deadline) {
    const ProbeOutcome outcome = run_saying_probe([&](const Say& say) { play(context, request, say); }, deadline);
    return report_of(outcome, std::chrono::duration<double>(deadline).count());
}

}  // namespace isthmus::tools::litmus
