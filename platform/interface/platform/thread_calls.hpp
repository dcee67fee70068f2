// SPDX-License-Identifier: Apache-2.0
// System calls about the calling thread (scheduling, CPUs, stack, counts) and about locked memory in one table, so that
// tests can make them fail.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus::platform::os {

// The first version of the kernel's struct sched_attr, which the C library may not declare.
struct SchedulingAttributes {
    std::uint32_t size = 48;
    std::uint32_t policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0;
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);
inline constexpr std::uint32_t policy_fifo = 1;      // SCHED_FIFO
inline constexpr std::uint32_t policy_deadline = 6;  // SCHED_DEADLINE
inline constexpr std::uint64_t reset_on_fork = 1;    // SCHED_FLAG_RESET_ON_FORK

// CPUs as the kernel takes them: bit n is CPU n.
struct CpuMask {
    static constexpr int most = 8192;  // the largest CONFIG_NR_CPUS
    std::array<std::uint64_t, most / 64> words{};
    bool has(int cpu) const noexcept { return cpu >= 0 && cpu < most && (words[cpu / 64] >> (cpu % 64) & 1) != 0; }
    void add(int cpu) noexcept { words[cpu / 64] |= std::uint64_t{1} << (cpu % 64); }
    bool operator==(const CpuMask&) const = default;
};

// Each with the semantics of its namesake (−1 and errno). real() calls the system.
struct ThreadCalls {
    int (*mlockall)(int flags);
    int (*mlock)(const void* address, std::size_t bytes);
    int (*munlock)(const void* address, std::size_t bytes);
    int (*sched_getattr)(SchedulingAttributes* attributes);
    int (*sched_setattr)(const SchedulingAttributes* attributes);
    int (*sched_getaffinity)(CpuMask* cpus);
    int (*sched_setaffinity)(const CpuMask* cpus);
    int (*set_timer_slack)(std::uint64_t ns, std::uint64_t* before);  // prctl; `before` may be nullptr
    int (*getrusage)(rusage* usage);                                  // RUSAGE_THREAD
    int (*getrlimit)(int resource, std::uint64_t* now);               // the soft limit; UINT64_MAX: unlimited
    int (*stack_bounds)(void** lowest, std::size_t* bytes);           // pthread_getattr_np
    int (*thread_id)();
    static const ThreadCalls& real() noexcept;
};

// "0-1,10" → 0 1 10. Malformed parts are left out.
std::vector<int> parse_cpu_list(std::string_view text);

// CPUs as /sys/devices/system/cpu states them; empty: not stated.
struct CpuLists {
    std::vector<int> online;
    std::vector<int> isolated;  // isolcpus=, and isolated partitions of cpusets
};
CpuLists cpu_lists();

}  // namespace isthmus::platform::os
