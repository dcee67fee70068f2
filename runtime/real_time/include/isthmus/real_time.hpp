// SPDX-License-Identifier: Apache-2.0
// A thread whose loop has a deadline: its scheduling, its CPUs, its stack and locked memory; what interrupted it;
// which CPUs are near a device. docs/real-time.md has an example.
#pragma once

#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
class PreparedThread;
}

enum class ThreadPolicy : std::uint8_t {
    unchanged,
    fifo,      // SCHED_FIFO: runs until it sleeps, before every thread of a lower priority
    deadline,  // SCHED_DEADLINE: `runtime` in each `period`, done `deadline` after the period's start
};

enum class LockAll : std::uint8_t {
    no,
    present,             // mlockall(MCL_CURRENT): everything that is mapped now
    present_and_future,  // and MCL_FUTURE. Where RLIMIT_MEMLOCK is small, later allocations then fail
};

struct RealTimeOptions {
    ThreadPolicy policy = ThreadPolicy::unchanged;
    int priority = 0;                    // of fifo: 1 (low) to 99
    std::chrono::nanoseconds runtime{};  // of deadline: 1024 ns ≤ runtime ≤ deadline ≤ period
    std::chrono::nanoseconds deadline{};
    std::chrono::nanoseconds period{};
    // By how much the kernel may put off the end of a sleep, to wake several threads at once (PR_SET_TIMERSLACK): 50 µs
    // unless set, and none for fifo and deadline. 0: unchanged; 1 ns: the least.
    std::chrono::nanoseconds timer_slack{};
    std::vector<int> cpus;        // the thread runs on these alone; empty: unchanged. Not with deadline, see errors
    std::size_t stack_bytes = 0;  // below the caller's frame, touched now
    LockAll lock = LockAll::no;   // of the process's memory
};

// What prepare_thread() changed of the calling thread. The destructor restores policy, timer slack and CPUs, on the
// thread that made the scope; elsewhere, and in the child of a fork, it does nothing. Locked memory stays locked: the
// kernel does not count locks, so that unlocking would undo the locks of other code. Movable; not thread-safe.
class ISTHMUS_API RealTimeScope {
public:
    RealTimeScope(RealTimeScope&&) noexcept;
    RealTimeScope& operator=(RealTimeScope&&) noexcept;
    ~RealTimeScope();
    // What the destructor does, with the reason where it fails: not_permitted (another thread; nothing was restored),
    // system_error. Once restored or moved from, the scope restores nothing more.
    Result<void> restore();

    explicit RealTimeScope(std::unique_ptr<detail::PreparedThread> thread) noexcept;

private:
    std::unique_ptr<detail::PreparedThread> thread_;
};

// Prepares the calling thread, in this order: CPUs, timer slack, policy, stack, locked memory. An error undoes what was
// done before. Threads that are started meanwhile inherit CPUs and fifo, so start others before, and the driver's
// (Runtime::open()) as well. Not for hot paths: system calls and heap. Errors: invalid_argument (priority, times, timer
// slack, a CPU that is not online), not_permitted (RLIMIT_RTPRIO, CAP_SYS_NICE, the cpuset; deadline on fewer CPUs than
// the cpuset has), system_limit (RLIMIT_MEMLOCK, the stack's size, deadlines that the CPUs cannot keep), unsupported,
// system_error. Each names what to change.
ISTHMUS_API Result<RealTimeScope> prepare_thread(const RealTimeOptions& options);

// Locks the pages of a range (mlock): present now, and until the destructor unlocks them. Locks do not nest: the first
// to end unlocks the page. Buffers: HostPlacement::lock (placement.hpp). Errors: invalid_argument (no bytes),
// system_limit (RLIMIT_MEMLOCK), system_error (not all of it is mapped).
class ISTHMUS_API LockedMemory {
public:
    static Result<LockedMemory> lock(const void* data, std::size_t bytes);
    LockedMemory(LockedMemory&& other) noexcept;
    LockedMemory& operator=(LockedMemory&& other) noexcept;
    ~LockedMemory();

private:
    LockedMemory(const void* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
    const void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

// Of one thread since its start. The difference of two is what happened between them.
struct ThreadCounts {
    std::int64_t minor_faults = 0;          // page faults without input or output
    std::int64_t major_faults = 0;          // page faults that waited for a disk
    std::int64_t voluntary_switches = 0;    // the thread slept or waited
    std::int64_t involuntary_switches = 0;  // another thread took its CPU

    friend constexpr ThreadCounts operator-(const ThreadCounts& later, const ThreadCounts& earlier) noexcept {
        return {later.minor_faults - earlier.minor_faults, later.major_faults - earlier.major_faults,
                later.voluntary_switches - earlier.voluntary_switches,
                later.involuntary_switches - earlier.involuntary_switches};
    }
    bool operator==(const ThreadCounts&) const = default;
};
// Of the calling thread: one system call (getrusage), no heap. Error: system_error.
ISTHMUS_API Result<ThreadCounts> thread_counts();

// CPUs by their number, ascending.
struct NearCpus {
    std::vector<int> cpus;  // online ones of the device's nearest NUMA node; all online ones where numa_node is −1
    std::vector<int> isolated;  // those of cpus that the kernel gives no thread by itself (isolcpus=)
    int numa_node = -1;         // −1: no node is stated, or the system shows no CPUs of it
};
// The node is the driver's answer (attribute 134), else that of the PCI bus. The cpuset of the process may leave some
// of these CPUs out: prepare_thread() then names them. Error: unsupported (the system does not state its CPUs).
ISTHMUS_API Result<NearCpus> cpus_near(const Device& device);

}  // namespace v0
}  // namespace isthmus
