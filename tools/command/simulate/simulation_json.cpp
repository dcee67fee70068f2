// SPDX-License-Identifier: Apache-2.0
// The report as a JSON document.
#include "simulation.hpp"

#include <nlohmann/json.hpp>

namespace isthmus::tools::simulate {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema = 1;

// Bytes that are not UTF-8 become replacement characters.
std::string written(const Json& document) {
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json counted(const std::vector<Counted>& all) {
    Json list = Json::array();
    for (const Counted& one : all) list.push_back({{"text", one.name}, {"count", one.count}});
    return list;
}

Json document_of(const Simulation& simulation) {
    const Counts& counts = simulation.counts;
    Json document = {{"schema", schema}, {"machine", simulation.machine}, {"program", simulation.program}};
    document["exit_code"] = simulation.ending.exit_code();
    if (simulation.ending.signal != 0) document["signal"] = simulation.ending.signal;
    if (!simulation.ending.problem.empty()) document["problem"] = simulation.ending.problem;
    document["processes"] = counts.processes;
    document["caught"] = counted(counts.caught);
    Json& faults = document["faults"] = Json::array();
    for (const Fault& one : counts.faults) faults.push_back({{"code", one.code}, {"count", one.count}});
    Json& refusals = document["refusals"] = Json::array();
    for (const Answer& one : counts.refusals) {
        refusals.push_back({{"call", one.call}, {"code", one.code}, {"count", one.count}});
    }
    document["unsupported"] = counted(counts.unsupported);
    Json& copies = document["copies"] = Json::array();
    for (const Copied& one : counts.copies) {
        copies.push_back({{"from", one.from}, {"to", one.to}, {"count", one.count}, {"bytes", one.bytes}});
    }
    document["fills"] = {{"count", counts.fills}, {"bytes", counts.filled_bytes}};
    document["kernels"] = counts.kernels;
    document["kernels_from_ptx"] = counts.kernels_from_ptx;
    Json& calls = document["calls"] = Json::object();
    for (const Counted& one : counts.calls) calls[one.name] = one.count;
    document["notes"] = notes_of(counts);
    if (!simulation.last_line.empty()) document["last_line"] = simulation.last_line;
    return document;
}

}  // namespace

std::string as_json(const Simulation& simulation) {
    return written(document_of(simulation));
}

std::string as_json(const std::vector<Simulation>& simulations) {
    Json document = {{"schema", schema}};
    Json& machines = document["machines"] = Json::array();
    for (const Simulation& one : simulations) machines.push_back(document_of(one));
    return written(document);
}

}  // namespace isthmus::tools::simulate
