// SPDX-License-Identifier: Apache-2.0
// Whole loops as programs run them, each in a process of its own and on a thread of its own, and what watches them.
#pragma once

#include "loop_report.hpp"
#include "watched_calls.hpp"

#include <isthmus/result.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace conformance {

// Something that no turn may do, done once in the middle of the watched turns.
enum class Plant { nothing, heap, operator_new, aligned_heap, locks, mapping, breaks, system_call, futex, camera };

enum class Watcher {
    hooks,   // functions of the C library, replaced in the program
    filter,  // the same, and a seccomp filter on the thread
    tracer,  // the same, and another process that traces the thread
};

struct LoopPlan {
    Watcher watcher = Watcher::hooks;
    Plant plant = Plant::nothing;
    long planted_locks = 1;
    int warm = 160;  // turns before the watch, beyond the 64 fences that a stream keeps, twice
    int watched = 200;
    bool lists = false;  // system calls are counted, none is forbidden
    std::vector<AllowedCall> allowed{};
};

// Plays turns on a thread, which is watched after the warm ones.
class LoopPlayer {
public:
    LoopPlayer(LoopReport& report, const LoopPlan& plan) : report_(report), plan_(plan) {}
    // An error ends the loop.
    void operator()(const std::function<isthmus::Result<void>()>& turn);

private:
    friend struct LoopThread;
    LoopReport& report_;
    const LoopPlan& plan_;
};

// Plays the loop with the number of a device as it would be in a program; called in a process that has no runtime yet.
// `index`: of the device. Sets LoopReport::device first.
struct SealedLoop {
    const char* name;
    void (*play)(LoopReport& report, const LoopPlan& plan, std::size_t index);
    long locks_on_cpu;  // mutexes of the library in one turn, at most
    long locks_on_gpu;
};
// Three for each millisecond of a wait, in which the service asks the driver whether its kernel still runs.
inline constexpr long uncounted = -1;
std::span<const SealedLoop> sealed_loops() noexcept;

}  // namespace conformance
