// SPDX-License-Identifier: Apache-2.0
#include "thread_plan.hpp"

#include "real_time_errors.hpp"
#include "system_words.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using platform::os::CpuMask;
using platform::os::SchedulingAttributes;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

bool contains(std::span<const int> cpus, int cpu) {
    return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

// 0 1 2 5 → "0-2,5"
std::string list_text(std::span<const int> cpus) {
    std::string text;
    for (std::size_t at = 0; at < cpus.size();) {
        std::size_t end = at + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
        if (!text.empty()) text += ',';
        text += std::to_string(cpus[at]);
        if (end - at > 1) text += '-' + std::to_string(cpus[end - 1]);
        at = end;
    }
    return text;
}

std::vector<int> both(std::span<const int> cpus, std::span<const int> others) {
    std::vector<int> common;
    for (const int cpu : cpus) {
        if (contains(others, cpu)) common.push_back(cpu);
    }
    return common;
}

}  // namespace

std::optional<Error> wrong_request(const RealTimeOptions& options, std::span<const int> online) {
    if (options.policy == ThreadPolicy::fifo && (options.priority < 1 || options.priority > 99)) {
        return make_error<errors::no_such_priority>(options.priority);
    }
    // The kernel refuses less than 1024 ns, and a period of 2⁶³ ns or more.
    const bool ordered =
        options.runtime.count() >= 1024 && options.runtime <= options.deadline && options.deadline <= options.period;
    if (options.policy == ThreadPolicy::deadline && !ordered) {
        return make_error<errors::no_such_deadline>(options.runtime.count(), options.deadline.count(),
                                                    options.period.count());
    }
    if (options.timer_slack.count() < 0) return make_error<errors::no_such_timer_slack>(options.timer_slack.count());
    for (const int cpu : options.cpus) {
        const bool there = online.empty() ? cpu >= 0 && cpu < CpuMask::most : contains(online, cpu);
        if (!there) return make_error<errors::cpu_not_online>(cpu, online.empty() ? "not stated" : list_text(online));
    }
    return std::nullopt;
}

SchedulingAttributes wanted_scheduling(const RealTimeOptions& options, const SchedulingAttributes& now) noexcept {
    SchedulingAttributes wanted;
    wanted.nice = now.nice;
    wanted.flags = now.flags;
    if (options.policy == ThreadPolicy::fifo) {
        // Without reset_on_fork: only CAP_SYS_NICE could take it back.
        wanted.policy = platform::os::policy_fifo;
        wanted.priority = static_cast<std::uint32_t>(options.priority);
    } else {
        // A thread of SCHED_DEADLINE cannot start threads without reset_on_fork.
        wanted.policy = platform::os::policy_deadline;
        wanted.flags |= platform::os::reset_on_fork;
        wanted.runtime_ns = static_cast<std::uint64_t>(options.runtime.count());
        wanted.deadline_ns = static_cast<std::uint64_t>(options.deadline.count());
        wanted.period_ns = static_cast<std::uint64_t>(options.period.count());
    }
    return wanted;
}

CpuMask mask_of(std::span<const int> cpus) noexcept {
    CpuMask mask;
    for (const int cpu : cpus) mask.add(cpu);
    return mask;
}

Error scheduling_refused(const RealTimeOptions& options, int error, std::uint64_t priority_limit) {
    const auto answered = [&](Error&& what) { return std::move(what).from_call("sched_setattr", error); };
    if (options.policy == ThreadPolicy::fifo && error == EPERM) {
        if (priority_limit < static_cast<std::uint64_t>(options.priority)) {
            return answered(make_error<errors::priority_limit_too_small>(options.priority, priority_limit));
        }
        return answered(make_error<errors::priority_refused>(options.priority));
    }
    if (options.policy == ThreadPolicy::deadline && error == EPERM) {
        return answered(make_error<errors::deadline_refused>());
    }
    if (options.policy == ThreadPolicy::deadline && error == EBUSY) {
        return answered(
            make_error<errors::deadline_without_bandwidth>(options.runtime.count(), options.period.count()));
    }
    const Code code = error == ENOSYS ? Code::unsupported : Code::system_error;
    return answered(make_error_as<errors::policy_not_set>(code, system_words(error)));
}

Error cpus_refused(const RealTimeOptions& options, int error) {
    if (error == EINVAL && !options.cpus.empty()) {
        return make_error<errors::cpu_outside_cpuset>(options.cpus.front()).from_call("sched_setaffinity", error);
    }
    return make_error<errors::cpus_not_set>(system_words(error)).from_call("sched_setaffinity", error);
}

std::optional<Error> cpu_left_out(std::span<const int> asked, const CpuMask& given) {
    for (const int cpu : asked) {
        if (!given.has(cpu)) return make_error<errors::cpu_outside_cpuset>(cpu);
    }
    return std::nullopt;
}

// mlockall(2), mlock(2): ENOMEM, EPERM (the limit is 0) and EAGAIN mean that a limit, where there is one, is too small.
Error lock_all_refused(int error, std::uint64_t limit) {
    const bool limited = limit != no_limit && (error == ENOMEM || error == EPERM || error == EAGAIN);
    return (limited ? make_error<errors::lock_all_limited>(system_words(error), limit)
                    : make_error<errors::lock_all_failed>(system_words(error)))
        .from_call("mlockall", error);
}

Error lock_range_refused(std::size_t bytes, int error, std::uint64_t limit) {
    const bool limited = limit != no_limit && (error == ENOMEM || error == EPERM || error == EAGAIN);
    return (limited ? make_error<errors::lock_range_limited>(bytes, system_words(error), limit)
                    : make_error<errors::lock_range_failed>(bytes, system_words(error)))
        .from_call("mlock", error);
}

Result<std::uintptr_t> stack_to_touch(std::uintptr_t here, std::uintptr_t lowest, std::size_t bytes) {
    constexpr std::size_t reserve = std::size_t{128} << 10;  // a guard of 64 KiB pages, and frames
    const std::size_t room = here > lowest ? here - lowest : 0;
    const std::size_t left = room > reserve ? room - reserve : 0;
    if (bytes > left) return make_error<errors::stack_too_small>(bytes, left);
    return here - bytes;
}

Result<NearCpus> near_cpus(const NearFacts& facts) {
    if (facts.cpus.online.empty()) return make_error<errors::cpus_not_stated>();
    NearCpus near{facts.cpus.online, {}, -1};
    const int node = facts.driver_node >= 0 ? facts.driver_node : facts.pci_node;
    std::string listed = node >= 0 && node == facts.pci_node ? facts.pci_cpus : std::string();
    for (const NumaNode& one : facts.nodes) {
        if (one.id == node && !one.cpus.empty()) listed = one.cpus;
    }
    // Online ones alone: the node's list of a recorded machine names CPUs that this one may lack.
    if (std::vector<int> of_node = both(platform::os::parse_cpu_list(listed), facts.cpus.online); !of_node.empty()) {
        near.cpus = std::move(of_node);
        near.numa_node = node;
    }
    near.isolated = both(near.cpus, facts.cpus.isolated);
    return near;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
