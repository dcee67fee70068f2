// SPDX-License-Identifier: Apache-2.0
// The public calls of this room with the system's calls as an argument, for tests; what a scope holds.
#pragma once

#include <isthmus/real_time.hpp>

#include <platform/thread_calls.hpp>

namespace isthmus {
inline namespace v0 {

namespace detail {

// What prepare_thread() changed of a thread, and what to restore. `calls` outlives it.
class PreparedThread {
public:
    explicit PreparedThread(const platform::os::ThreadCalls& calls) noexcept
        : calls_(calls), thread_id_(calls.thread_id()) {}
    // On an error some of it may be done: restore().
    Result<void> prepare(const RealTimeOptions& options);
    Result<void> restore();

private:
    Result<void> set_cpus(const RealTimeOptions& options);
    Result<void> set_timer_slack(std::chrono::nanoseconds slack);
    Result<void> set_policy(const RealTimeOptions& options);

    const platform::os::ThreadCalls& calls_;
    int thread_id_;
    bool policy_changed_ = false;
    bool cpus_changed_ = false;
    bool slack_changed_ = false;
    std::uint64_t slack_ = 0;
    platform::os::SchedulingAttributes policy_;
    platform::os::CpuMask cpus_;
};

Result<RealTimeScope> prepare_thread(const RealTimeOptions& options, const platform::os::CpuLists& cpus,
                                     const platform::os::ThreadCalls& calls);
Result<void> lock_range(const void* data, std::size_t bytes, const platform::os::ThreadCalls& calls);
Result<ThreadCounts> thread_counts(const platform::os::ThreadCalls& calls);

}  // namespace detail

}  // namespace v0
}  // namespace isthmus
