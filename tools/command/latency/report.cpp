// SPDX-License-Identifier: Apache-2.0
// The report as JSON, and its exit code. docs/command.md describes the document.
#include "report.hpp"

#include "common/exit_codes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace isthmus::tools::latency {
namespace {

using Json = nlohmann::ordered_json;

Json times_json(const Histogram& times) {
    return {{"p50_ns", times.quantile_ns(p50)},
            {"p99_ns", times.quantile_ns(p99)},
            {"p99_9_ns", times.quantile_ns(p99_9)},
            {"p99_99_ns", times.quantile_ns(p99_99)},
            {"maximum_ns", times.maximum_ns()},
            {"minimum_ns", times.minimum_ns()},
            {"sum_ns", times.sum_ns()}};
}

Json histogram_json(const Histogram& times) {
    Json buckets = Json::array();
    for (const Histogram::Bucket& bucket : times.buckets()) {
        buckets.push_back({bucket.from_ns, std::min(bucket.to_ns, times.maximum_ns()), bucket.count});
    }
    return buckets;
}

Json parts_json(const Tally& tally) {
    Json parts = Json::object();
    for (const Part part : all_parts) {
        Json times = times_json(tally.part(part));
        times["share"] = tally.share(part);
        times["late_by"] = tally.late_by(part);
        parts[std::string(name(part))] = std::move(times);
    }
    return parts;
}

Json longest_json(const Tally& tally) {
    Json longest = {{"turn", tally.worst_turn()}};
    for (const Part part : all_parts) {
        longest[std::string(name(part)) + "_ns"] = tally.worst()[static_cast<std::size_t>(part)];
    }
    return longest;
}

Json counts_json(const RunReport& run) {
    if (!run.counts) return nullptr;
    return {{"minor_faults", run.counts->minor_faults},
            {"major_faults", run.counts->major_faults},
            {"voluntary_switches", run.counts->voluntary_switches},
            {"beyond_sleeps", run.other_switches()},
            {"involuntary_switches", run.counts->involuntary_switches}};
}

Json loads_json(const RunReport& run) {
    Json loads = Json::array();
    for (const LoadReport& load : run.loads) {
        Json each = {{"load", name(load.kind)}, {"threads", load.threads}, {"rounds", load.rounds}};
        if (!load.trouble.empty()) each["trouble"] = load.trouble;
        loads.push_back(std::move(each));
    }
    return loads;
}

Json sealed_json(const RunReport& run) {
    if (!run.sealed) return nullptr;
    Json places = Json::array();
    for (const SealedPlaceLine& place : run.sealed->places) {
        places.push_back({{"call", place.call}, {"act", place.act}, {"times", place.times}});
    }
    return {{"refusals", run.sealed->count}, {"places", std::move(places)}};
}

Json run_json(const RunReport& run) {
    const Tally& tally = *run.tally;
    Json out = {{"label", run.plan.label},
                {"buffer", {{"kind", run.kind}, {"path", run.path}, {"reason", run.reason}}},
                {"asked_sealed", run.plan.sealed},
                {"thread",
                 {{"priority", run.prepared.priority},
                  {"cpus", run.prepared.cpus},
                  {"locked", run.prepared.locked},
                  {"sealed", run.prepared.sealed},
                  {"refused", run.prepared.refused}}},
                {"warm_up_turns", run.warm_up},
                {"planned", run.planned},
                {"turns", tally.turns()},
                {"late", tally.late()},
                {"skipped", run.skipped},
                {"missed", run.missed()},
                {"sleeps", run.slept},
                {"total", times_json(tally.total())},
                {"parts", parts_json(tally)},
                {"longest", longest_json(tally)},
                {"counts", counts_json(run)},
                {"seal", sealed_json(run)},
                {"loads", loads_json(run)},
                {"histogram", histogram_json(tally.total())}};
    if (run.trouble) {
        out["trouble"] = {{"code", run.trouble->code}, {"id", run.trouble->id}, {"text", run.trouble->text}};
    }
    return out;
}

}  // namespace

int exit_code(const Report& report) noexcept {
    const bool failed = std::any_of(report.runs.begin(), report.runs.end(),
                                    [](const RunReport& run) { return run.trouble.has_value(); });
    if (failed) return exit_failed;
    return report.signal == 0 ? exit_ok : 128 + report.signal;
}

std::string as_json(const Report& report) {
    Json runs = Json::array();
    for (const RunReport& run : report.runs) runs.push_back(run_json(run));
    Json loads = Json::array();
    for (const LoadKind load : report.request.loads) loads.push_back(name(load));
    const Json out = {
        {"schema", 1},
        {"simulated", report.where.simulated},
        {"machine", report.where.machine},
        {"device", {{"number", report.where.number}, {"name", report.where.device}, {"model", report.where.model}}},
        {"driver_version", report.driver_version},
        {"work", name(report.request.work)},
        {"period_ns", period_ns(report.request)},
        {"deadline_ns", deadline_ns(report.request)},
        {"bytes", report.request.bytes},
        {"loads", std::move(loads)},
        {"runs", std::move(runs)},
        {"left_out", report.left_out},
        {"signal", report.signal},
    };
    // Names come from drivers: bytes that are not UTF-8 are replaced and raise no exception.
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::tools::latency
