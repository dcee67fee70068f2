// SPDX-License-Identifier: Apache-2.0
// What `isthmus latency` was asked for, and the runs that follow from it. Pure.
#pragma once

#include <isthmus/memory_kind.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::latency {

enum class WorkKind : std::uint8_t { launch, graph, service };
std::string_view name(WorkKind work) noexcept;
// Nothing: there is no such word. The same of the functions below.
std::optional<WorkKind> work_of(std::string_view word) noexcept;

// What disturbs the loop.
enum class LoadKind : std::uint8_t {
    cpu,         // a thread for each CPU of the process that computes
    memory,      // threads that copy more memory than the caches hold
    page_cache,  // a thread that writes, reads and maps a file
    stream,      // kernels on another stream of the device
    copies,      // copies between host and device, in both directions, on another stream
};
inline constexpr std::size_t load_count = 5;
std::string_view name(LoadKind load) noexcept;  // "page-cache"
std::optional<LoadKind> load_of(std::string_view word) noexcept;

enum class Comparison : std::uint8_t { none, sealed, kinds };

// A deliberate error, which the loop must notice.
enum class Mutant : std::uint8_t { none, wrong_answer, no_answer };

// The kinds that --kind takes and --compare kinds tries, in the order of the runs.
inline constexpr MemoryKind tried_kinds[] = {MemoryKind::pinned, MemoryKind::registered, MemoryKind::host,
                                             MemoryKind::managed, MemoryKind::device};
std::optional<MemoryKind> kind_of(std::string_view word) noexcept;

struct Request {
    WorkKind work = WorkKind::launch;
    double period_us = 1000;
    double deadline_us = 0;  // 0: the period
    double seconds = 10;     // of each run, without `turns`
    std::uint64_t turns = 0;
    std::uint64_t warm_up = 0;         // turns before those that count; 0: as many as fit into a second
    std::uint64_t bytes = 256;         // of the shared buffer
    std::optional<MemoryKind> kind{};  // nothing: allocate_shared() chooses
    std::vector<LoadKind> loads{};
    Comparison compare = Comparison::none;
    bool sealed = false;
    int priority = 0;  // of SCHED_FIFO; 0: unchanged
    std::vector<int> cpus{};
    double give_up_seconds = 5;  // for each wait
    Mutant mutant = Mutant::none;
};

std::uint64_t period_ns(const Request& request) noexcept;
std::uint64_t deadline_ns(const Request& request) noexcept;
std::uint64_t planned_turns(const Request& request) noexcept;  // of each run, at least one
std::uint64_t warm_up_turns(const Request& request) noexcept;  // at least one: it loads the kernel

struct RunPlan {
    std::string label;
    std::optional<MemoryKind> kind{};
    bool sealed = false;
};
// The runs in their order, one at least.
std::vector<RunPlan> plan_runs(const Request& request);

// "0-3,8": numbers and ranges, in any order, without repetition, ascending in the answer. Nothing: not such a list, or
// a number beyond 65535.
std::optional<std::vector<int>> cpus_of(std::string_view list);

}  // namespace isthmus::tools::latency
