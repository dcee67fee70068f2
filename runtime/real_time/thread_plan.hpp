// SPDX-License-Identifier: Apache-2.0
// What a request means for the kernel, what its refusals mean, and which CPUs are near a device: pure functions.
#pragma once

#include <isthmus/real_time.hpp>

#include <platform/thread_calls.hpp>

#include <optional>
#include <span>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What is wrong with a request before the system is asked. `online` is empty where the system does not state it.
std::optional<Error> wrong_request(const RealTimeOptions& options, std::span<const int> online);

// What the kernel is asked for; `now`: the thread's attributes, of which the nice value stays.
platform::os::SchedulingAttributes wanted_scheduling(const RealTimeOptions& options,
                                                     const platform::os::SchedulingAttributes& now) noexcept;
platform::os::CpuMask mask_of(std::span<const int> cpus) noexcept;

// The meaning of an errno of sched_setattr(2). `priority_limit`: RLIMIT_RTPRIO.
Error scheduling_refused(const RealTimeOptions& options, int error, std::uint64_t priority_limit);
// The meaning of an errno of sched_setaffinity(2): EINVAL where no CPU of the request is in the cpuset.
Error cpus_refused(const RealTimeOptions& options, int error);
// The first CPU that was asked for and not given: the kernel leaves those outside of the cpuset out without an error.
std::optional<Error> cpu_left_out(std::span<const int> asked, const platform::os::CpuMask& given);
// The meaning of an errno of mlockall(2) and of mlock(2). `limit`: RLIMIT_MEMLOCK.
Error lock_all_refused(int error, std::uint64_t limit);
Error lock_range_refused(std::size_t bytes, int error, std::uint64_t limit);

// The lowest address of the caller's stack to touch. `here`: an address in the caller's frame; below it the guard and a
// reserve for the touching function itself stay untouched.
Result<std::uintptr_t> stack_to_touch(std::uintptr_t here, std::uintptr_t lowest, std::size_t bytes);

struct NearFacts {
    int driver_node = -1;    // attribute 134
    int pci_node = -1;       // of the PCI bus
    std::string pci_cpus{};  // as the system lists them
    std::span<const NumaNode> nodes{};
    platform::os::CpuLists cpus{};
};
Result<NearCpus> near_cpus(const NearFacts& facts);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
