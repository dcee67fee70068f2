// SPDX-License-Identifier: Apache-2.0
// Reads a trace that libisthmus-trace wrote, and adds up what it says.
#include "trace_summary.hpp"

#include "trace_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace isthmus::tools::trace {
namespace {

template <class Key, class Value, class Less>
std::vector<Value> sorted(const std::map<Key, Value>& found, Less less) {
    std::vector<Value> all;
    for (const auto& [key, value] : found) all.push_back(value);
    std::stable_sort(all.begin(), all.end(), [&](const Value& a, const Value& b) { return less(b, a); });
    return all;
}

class Adder {
public:
    explicit Adder(Summary& summary) : summary_(summary) {}

    void add(const Json& event) {
        const std::string phase = text_of(event, "ph");
        if (phase == "M") return;
        const double at = number_of(event, "ts");
        const std::string category = text_of(event, "cat");
        const Json& arguments = arguments_of(event);
        const auto thread = static_cast<std::uint64_t>(number_of(event, "tid"));
        if (phase == "i" && (category == "upload" || category == "download")) {
            copy(event, category == "upload", arguments);
        } else if (phase == "i" && category == "refused") {
            Refusals& of = refusals_[{text_of(event, "name"), text_of(arguments, "error")}];
            of.name = without_category(text_of(event, "name"));
            of.code = text_of(arguments, "code");
            of.error = text_of(arguments, "error");
            ++of.count;
        } else if (phase == "B" && category == "wait") {
            waiting_[thread] = {at, text_of(arguments, "inside"), text_of(arguments, "waits_for")};
        } else if (phase == "E" && category == "wait") {
            end_wait(thread, at);
        } else if (phase == "E" && category == "allocate") {
            allocate(at, arguments);
        } else if (phase == "E" && category == "launch" && text_of(arguments, "code").empty()) {
            ++summary_.launches;
        }
    }

    void finish() {
        summary_.copies = sorted(copies_, [](const Copies& a, const Copies& b) { return a.bytes < b.bytes; });
        summary_.waits = sorted(waits_, [](const Waits& a, const Waits& b) { return a.total_us < b.total_us; });
        summary_.allocations = sorted(allocations_, [](const Allocations& a, const Allocations& b) {
            return std::tie(a.made_new, a.count) < std::tie(b.made_new, b.count);
        });
        summary_.refusals = sorted(refusals_, [](const Refusals& a, const Refusals& b) { return a.count < b.count; });
    }

private:
    struct Waiting {
        double since = 0;
        std::string inside, waits_for;
    };

    void copy(const Json& event, bool up, const Json& arguments) {
        const std::string name = without_category(text_of(event, "name"));
        const std::string reason = text_of(arguments, "reason");
        Copies& of = copies_[{up, name, reason}];
        of.up = up;
        of.name = name;
        of.memory = text_of(arguments, "memory");
        of.reason = reason;
        ++of.count;
        of.bytes += count_of(arguments, "bytes");
    }
    void end_wait(std::uint64_t thread, double at) {
        const auto begun = waiting_.find(thread);
        if (begun == waiting_.end()) return;
        const Waiting& wait = begun->second;
        Waits& of = waits_[{wait.inside, wait.waits_for}];
        of.inside = wait.inside;
        of.waits_for = wait.waits_for;
        ++of.count;
        of.total_us += at - wait.since;
        of.longest_us = std::max(of.longest_us, at - wait.since);
        waiting_.erase(begun);
    }
    void allocate(double at, const Json& arguments) {
        if (at < summary_.warm_after_us || !text_of(arguments, "code").empty()) return;
        Allocations& of = allocations_[text_of(arguments, "memory")];
        of.memory = text_of(arguments, "memory");
        ++of.count;
        of.bytes += count_of(arguments, "bytes");
        if (text_of(arguments, "reason").starts_with("new")) ++of.made_new;
    }

    Summary& summary_;
    std::map<std::tuple<bool, std::string, std::string>, Copies> copies_;
    std::map<std::pair<std::string, std::string>, Waits> waits_;
    std::map<std::string, Allocations> allocations_;
    std::map<std::pair<std::string, std::string>, Refusals> refusals_;
    std::map<std::uint64_t, Waiting> waiting_;
};

// Answers of calls that were told not to wait, or that say that nothing more comes, are no mistakes.
bool is_answer(const Refusals& refused) {
    return refused.code == "not_ready" || refused.code == "ended" || refused.code == "timed_out";
}

std::vector<std::string> changes_of(const Summary& summary) {
    std::vector<std::string> changes;
    std::map<std::string, std::uint64_t> reasons;
    for (const Copies& copies : summary.copies) reasons[copies.reason] += copies.bytes;
    for (const auto& [reason, bytes] : reasons) {
        changes.push_back(fmt::format(
            "{} bytes were copied between the two sides of buffers. Why they have two sides: {}. Name another kind in "
            "SharedUse::kind, or declare a use for which one memory serves both, where this machine has one "
            "(isthmus caps).",
            bytes, reason.empty() ? "not recorded" : reason));
    }
    for (const Waits& waits : summary.waits) {
        if (summary.duration_us <= 0 || waits.total_us < 0.1 * summary.duration_us || waits.inside.empty()) continue;
        changes.push_back(
            fmt::format("{} waited for {} in {:.0f} % of the time. Use what it wrote later, or two buffers by turns "
                        "(FrameRing), so "
                        "that the host works meanwhile.",
                        waits.inside, waits.waits_for, 100 * waits.total_us / summary.duration_us));
    }
    for (const Allocations& made : summary.allocations) {
        if (made.made_new == 0) continue;
        changes.push_back(
            fmt::format("{} allocations of {} memory asked the driver or the system after the program was warm. "
                        "Allocate before the "
                        "loop, or let more released memory be kept (RuntimeOptions::cache_bytes).",
                        made.made_new, made.memory));
    }
    for (const Refusals& refused : summary.refusals) {
        if (is_answer(refused)) continue;
        changes.push_back(
            fmt::format("{} was refused {} times with {}: isthmus's docs/errors.md says under {} what "
                        "works instead.",
                        refused.name, refused.count, refused.code, refused.error));
    }
    if (summary.dropped > 0) {
        changes.push_back(
            fmt::format("{} events found no room: set ChromeTraceOptions::events_per_thread or threads "
                        "to more. What is said here is of the others.",
                        summary.dropped));
    }
    return changes;
}

}  // namespace

std::uint64_t Summary::copied_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const Copies& one : copies) sum += one.bytes;
    return sum;
}
double Summary::waited_us() const noexcept {
    double sum = 0;
    for (const Waits& one : waits) sum += one.total_us;
    return sum;
}

Read summarise(std::string_view json, std::optional<double> warm_after_ms) {
    const Document document = read_document(json);
    if (!document.problem.empty()) return {std::nullopt, document.problem};
    Summary summary;
    summary.events = count_of(document.other(), "recorded");
    summary.dropped = count_of(document.other(), "dropped");
    for (const Json& event : document.events()) {
        if (event.is_object()) summary.duration_us = std::max(summary.duration_us, number_of(event, "ts"));
    }
    summary.warm_after_us = warm_after_ms ? *warm_after_ms * 1000 : summary.duration_us / 3;
    Adder adder(summary);
    for (const Json& event : document.events()) {
        if (event.is_object()) adder.add(event);
    }
    adder.finish();
    summary.changes = changes_of(summary);
    return {std::move(summary), {}};
}

}  // namespace isthmus::tools::trace
