// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "device_work.hpp"
#include "load.hpp"
#include "loop.hpp"
#include "sealed.hpp"

#include <isthmus/seal.hpp>

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

namespace isthmus::tools::latency {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr std::size_t sealed_events = 16;  // of a loop that waits for each turn, with a margin for the loads

int exit_code_of(Code code) {
    if (code == Code::unsupported || code == Code::not_accessible) return exit_cannot;
    return code == Code::invalid_argument ? exit_bad_usage : exit_failed;
}

Trouble trouble_of(const Error& error) {
    return {std::string(isthmus::name(error.code())), std::string(error.id()), error.text()};
}

// The scopes of the loop's thread. Each is made or refused by itself: a missing right to lock memory leaves the
// priority.
class ThreadPreparation {
public:
    ThreadPreparation(const Request& request, bool sealed, Prepared& prepared) {
        RealTimeOptions slack;
        slack.timer_slack = std::chrono::nanoseconds(1);  // a loop at a period does not share its wake-ups
        (void)take(slack_, slack, prepared);
        if (request.priority > 0 || !request.cpus.empty()) {
            RealTimeOptions options;
            options.cpus = request.cpus;
            if (request.priority > 0) options.policy = ThreadPolicy::fifo;
            options.priority = request.priority;
            if (take(scheduling_, options, prepared)) {
                prepared.priority = request.priority;
                prepared.cpus = request.cpus;
            }
        }
        if (sealed || request.priority > 0) {
            RealTimeOptions options;
            options.stack_bytes = stack_bytes;
            options.lock = LockAll::present;
            prepared.locked = take(memory_, options, prepared);
        }
    }

private:
    static bool take(std::optional<RealTimeScope>& scope, const RealTimeOptions& options, Prepared& prepared) {
        Result<RealTimeScope> made = prepare_thread(options);
        if (!made) {
            prepared.refused.push_back(made.error().text());
            return false;
        }
        scope.emplace(std::move(made).value());
        return true;
    }

    std::optional<RealTimeScope> slack_{};
    std::optional<RealTimeScope> scheduling_{};
    std::optional<RealTimeScope> memory_{};
};

// The turns, once everything is there.
class Measuring {
public:
    Measuring(Runtime& runtime, const Request& request, const std::function<int()>& signal, RunReport& run)
        : runtime_(runtime),
          request_(request),
          run_(run),
          stop_([&signal] { return signal() != 0; }),
          tally_(std::make_shared<Tally>(deadline_ns(request))) {
        run_.tally = tally_;
    }

    void take(DeviceWork& work) {
        // Turns like those that count, in a tally of their own: they touch what the loop touches.
        const auto unused = std::make_unique<Tally>(0);
        LoopEnd end = run_loop(work, clock_, {period_ns(request_), warm_up_turns(request_)}, *unused, stop_);
        run_.warm_up = end.planned;
        if (note_trouble(end, "warm-up turn")) return;
        std::optional<Seal> seal = run_.plan.sealed ? begin() : std::nullopt;
        const Result<ThreadCounts> before = thread_counts();
        end = run_loop(work, clock_, {period_ns(request_), planned_turns(request_)}, *tally_, stop_);
        const Result<ThreadCounts> after = thread_counts();
        if (seal) run_.sealed = end_and_count(*seal);
        run_.planned = end.planned;
        run_.skipped = end.skipped;
        run_.slept = end.slept;
        if (before && after) run_.counts = *after - *before;
        note_trouble(end, "turn");
    }

private:
    std::optional<Seal> begin() {
        Result<Seal> seal = runtime_.seal();
        if (!seal) {
            run_.prepared.refused.push_back(seal.error().text());
            return std::nullopt;
        }
        run_.prepared.sealed = true;
        return std::move(seal).value();
    }
    bool note_trouble(const LoopEnd& end, std::string_view of_turns) {
        if (end.trouble) run_.trouble = trouble_of(*end.trouble);
        if (end.wrong_answer) {
            run_.trouble = {"wrong_answer", "",
                            fmt::format("wrong_answer: {} {}: the device's answer is not that of this turn", of_turns,
                                        end.planned - 1)};
        }
        return run_.trouble.has_value();
    }

    Runtime& runtime_;
    const Request& request_;
    RunReport& run_;
    const std::function<bool()> stop_;
    SystemClock clock_{};
    std::shared_ptr<Tally> tally_;
};

// An error: the run could not begin.
Result<void> take_run(Runtime& runtime, Device& device, const Request& request, const std::function<int()>& signal,
                      Loads& loads, RunReport& run) {
    run.tally = std::make_shared<Tally>(deadline_ns(request));
    if (run.plan.sealed) {
        // The turns before the seal bring the rest: code, views, states of the buffer.
        if (Result<void> made = prepare(device, {.events = sealed_events, .memory = {}, .kernels = {}}); !made) {
            run.prepared.refused.push_back(made.error().text());
        }
    }
    Result<std::unique_ptr<DeviceWork>> work = make_work(device, request, run.plan.kind);
    if (!work) return std::move(work).error();
    const BufferBase& buffer = (*work)->buffer();
    run.kind = isthmus::name(buffer.kind());
    run.path = isthmus::name(buffer.path());
    run.reason = buffer.explain();
    loads.start();
    {
        const ThreadPreparation preparation(request, run.plan.sealed, run.prepared);
        Measuring(runtime, request, signal, run).take(**work);
    }
    run.loads = loads.stop();
    if (Result<void> ended = (*work)->end(); !ended && !run.trouble) run.trouble = trouble_of(ended.error());
    return {};
}

}  // namespace

void measure(Runtime& runtime, Device& device, const std::function<int()>& stop, Report& report) {
    const Request& request = report.request;
    const std::unique_ptr<Loads> loads = Loads::make(device, request, report.where.simulated || device.is_cpu());
    for (RunPlan& plan : plan_runs(request)) {
        if (stop() != 0) break;
        RunReport run;
        run.plan = std::move(plan);
        if (const Result<void> taken = take_run(runtime, device, request, stop, *loads, run); !taken) {
            const int code = exit_code_of(taken.code());
            if (request.compare == Comparison::kinds && code == exit_cannot) {
                report.left_out.push_back(run.plan.label + ": " + taken.error().text());
                continue;
            }
            if (report.runs.empty()) throw Failure(code, taken.error().text());
            run.trouble = trouble_of(taken.error());
        }
        report.runs.push_back(std::move(run));
        if (report.runs.back().trouble) break;  // a device that is lost or hangs answers no other run
    }
    report.signal = stop();
    if (report.runs.empty() && report.signal == 0)
        cannot("no kind of memory can be compared: " + report.left_out.front());
}

}  // namespace isthmus::tools::latency
