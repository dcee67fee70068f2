// SPDX-License-Identifier: Apache-2.0
// CpuWorkers: threads that share out the blocks of a kernel, where the caller of Runtime::open asked for them.
#pragma once

#include <platform/driver.hpp>

#include <atomic>
#include <cstdint>

namespace isthmus::platform::cpu {

// A kernel's outermost dimension in `parts` ranges of `length`; the last one may be shorter.
struct Division {
    std::uint64_t parts = 1;
    std::uint64_t length = 0;
};

// Divides a launch for `threads` threads: four parts for each, so that one that is held up does not hold up all, and no
// part so small that handing it over costs more than running it. One part: the caller runs it alone. So does a kernel
// of a ready-made module (rank 4), whose stand-in takes the grid at once.
Division divide(const KernelInfo& kernel, const Extent& extent, std::uint32_t threads) noexcept;

// The size of the dimension that divide() divides.
std::uint64_t outermost(const KernelInfo& kernel, const Extent& extent) noexcept;

// `threads` counts the launching thread: 0 and 1 mean no workers. Workers start with the first launch that has work for
// them; where the system starts fewer, these do the work. They take no signals, and have the launching thread's
// floating-point environment while they run its kernel. One launch has the workers at a time: launches of other threads
// run on the thread that makes them. Thread-safe. The destructor ends and joins the workers, which are idle then; in
// the child of a fork, which has none, it touches nothing.
class CpuWorkers {
public:
    explicit CpuWorkers(std::uint32_t threads) noexcept : threads_(threads) {}
    ~CpuWorkers();
    CpuWorkers(const CpuWorkers&) = delete;
    CpuWorkers& operator=(const CpuWorkers&) = delete;

    // Returns when the whole kernel has run. Requires a kernel with a twin, and an extent that is not empty.
    void run(const LaunchRequest& request);

private:
    struct Team;
    Team* team();  // the started one; nullptr: no thread could be started

    const std::uint32_t threads_;
    std::atomic<bool> taken_{false};
    Team* team_ = nullptr;  // guarded by taken_; owned, but given up in the child of a fork
};

}  // namespace isthmus::platform::cpu
