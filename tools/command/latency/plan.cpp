// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "common/number_options.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace isthmus::tools::latency {
namespace {

constexpr WorkKind all_works[] = {WorkKind::launch, WorkKind::graph, WorkKind::service};
constexpr LoadKind all_loads[] = {LoadKind::cpu, LoadKind::memory, LoadKind::page_cache, LoadKind::stream,
                                  LoadKind::copies};
static_assert(std::size(all_loads) == load_count);

// The value whose name is the word.
template <class T, std::size_t n>
std::optional<T> named(const T (&all)[n], std::string_view word) noexcept {
    for (const T each : all) {
        if (name(each) == word) return each;
    }
    return std::nullopt;
}

std::uint64_t nanoseconds(double microseconds) noexcept {
    return static_cast<std::uint64_t>(std::llround(microseconds * 1000));
}

}  // namespace

std::string_view name(WorkKind work) noexcept {
    switch (work) {
        case WorkKind::launch: return "launch";
        case WorkKind::graph: return "graph";
        case WorkKind::service: return "service";
    }
    return "unknown";
}

std::optional<WorkKind> work_of(std::string_view word) noexcept {
    return named(all_works, word);
}

std::string_view name(LoadKind load) noexcept {
    switch (load) {
        case LoadKind::cpu: return "cpu";
        case LoadKind::memory: return "memory";
        case LoadKind::page_cache: return "page-cache";
        case LoadKind::stream: return "stream";
        case LoadKind::copies: return "copies";
    }
    return "unknown";
}

std::optional<LoadKind> load_of(std::string_view word) noexcept {
    return named(all_loads, word);
}

std::optional<MemoryKind> kind_of(std::string_view word) noexcept {
    return named(tried_kinds, word);
}

std::uint64_t period_ns(const Request& request) noexcept {
    return nanoseconds(request.period_us);
}

std::uint64_t deadline_ns(const Request& request) noexcept {
    return nanoseconds(request.deadline_us > 0 ? request.deadline_us : request.period_us);
}

std::uint64_t planned_turns(const Request& request) noexcept {
    if (request.turns > 0) return request.turns;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(request.seconds * 1e6 / request.period_us));
}

std::uint64_t warm_up_turns(const Request& request) noexcept {
    if (request.warm_up > 0) return request.warm_up;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(1e6 / request.period_us));
}

std::vector<RunPlan> plan_runs(const Request& request) {
    const std::string work(name(request.work));
    switch (request.compare) {
        case Comparison::none: break;
        case Comparison::sealed: return {{"unsealed", request.kind, false}, {"sealed", request.kind, true}};
        case Comparison::kinds: {
            std::vector<RunPlan> runs;
            for (const MemoryKind kind : tried_kinds) {
                runs.push_back({std::string(isthmus::name(kind)), kind, request.sealed});
            }
            return runs;
        }
    }
    return {{work, request.kind, request.sealed}};
}

std::optional<std::vector<int>> cpus_of(std::string_view list) {
    std::vector<int> cpus;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string_view part = list.substr(begin, end - begin);
        const std::size_t dash = std::min(part.find('-'), part.size());
        const NumberRange<int> numbers{0, 65535};
        const std::optional<int> first = number_in(part.substr(0, dash), numbers);
        const std::optional<int> last = dash == part.size() ? first : number_in(part.substr(dash + 1), numbers);
        if (!first || !last || *last < *first) return std::nullopt;
        for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
        begin = end + 1;
    }
    std::sort(cpus.begin(), cpus.end());
    if (std::adjacent_find(cpus.begin(), cpus.end()) != cpus.end()) return std::nullopt;
    return cpus;
}

}  // namespace isthmus::tools::latency
