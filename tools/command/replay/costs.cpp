// SPDX-License-Identifier: Apache-2.0
// Turns by buffer, and their time as `isthmus tune` measured it.
#include "costs.hpp"

#include <cmath>

namespace isthmus::tools::replay {
namespace {

Role role_of(Use use) {
    switch (use) {
        case Use::reads_once:
        case Use::reads_often: return Role::reads;
        case Use::writes_once:
        case Use::writes_often: return Role::writes;
        case Use::never:
        case Use::reads_and_writes: break;
    }
    return Role::reads_and_writes;
}

std::optional<double> seconds_of_turn(const Memory& memory, const Became& became, const tune::CostModel& costs) {
    const MemoryKind kind = became.path == LaunchPath::stage ? MemoryKind::device : became.kind;
    const tune::UseCase use = use_case(memory.use);
    for (std::size_t way = 0; way < costs.ways().size(); ++way) {
        if (costs.ways()[way].kind != kind || !costs.serves(way, use)) continue;
        const double seconds = costs.seconds(way, use, passes_of_device(memory.use), static_cast<double>(memory.bytes));
        if (std::isfinite(seconds)) return seconds;
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> turns(const Recording& recording) {
    std::vector<std::uint64_t> counted(recording.memories.size(), 0);
    std::vector<bool> at_host(recording.memories.size(), true);
    for (const Step& step : recording.steps) {
        if (step.refused) continue;
        if (step.act == Act::open_view || step.act == Act::read_back) at_host[step.memory] = true;
        if (step.act != Act::launch && step.act != Act::open_scope) continue;
        for (const MemoryUse& use : step.uses) {
            if (at_host[use.memory]) ++counted[use.memory];
            at_host[use.memory] = false;
        }
    }
    return counted;
}

tune::UseCase use_case(const SharedUse& use) {
    tune::UseCase known;
    known.device = role_of(use.device);
    known.host = role_of(use.host);
    known.host_often = use.host == Use::reads_often || use.host == Use::writes_often;
    known.prefer = use.prefer;
    return known;
}

std::optional<double> hand_over_seconds(const Recording& recording, const std::vector<std::optional<Became>>& became,
                                        const tune::CostModel& costs) {
    const std::vector<std::uint64_t> counted = turns(recording);
    std::optional<double> sum;
    for (std::size_t at = 0; at < recording.memories.size() && at < became.size(); ++at) {
        const Memory& memory = recording.memories[at];
        if (memory.made != Made::shared || !became[at] || counted[at] == 0) continue;
        if (const std::optional<double> turn = seconds_of_turn(memory, *became[at], costs)) {
            sum = sum.value_or(0) + *turn * static_cast<double>(counted[at]);
        }
    }
    return sum;
}

}  // namespace isthmus::tools::replay
