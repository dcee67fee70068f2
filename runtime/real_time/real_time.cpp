// SPDX-License-Identifier: Apache-2.0
// Carries out what thread_plan.hpp decides.
#include "prepared_thread.hpp"

#include "device_state.hpp"
#include "real_time_errors.hpp"
#include "system_words.hpp"
#include "thread_plan.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

using platform::os::CpuLists;
using platform::os::ThreadCalls;

// A limit that cannot be read counts as none, so that the message does not name it.
std::uint64_t limit_now(const ThreadCalls& calls, int resource) {
    std::uint64_t now = 0;
    return calls.getrlimit(resource, &now) == 0 ? now : std::numeric_limits<std::uint64_t>::max();
}

// Touches every page of the stack from its own frame down to `lowest`, a frame of less than a page at a time: memory
// below the stack pointer may be written only after the stack has grown there. The frame's own address, because
// sanitizers put arrays elsewhere.
__attribute__((noinline)) void touch_stack(std::uintptr_t lowest) {
    volatile unsigned char piece[2048];
    piece[0] = 0;
    if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) > lowest) touch_stack(lowest);
    piece[sizeof piece - 1] = 0;  // behind the call, so that it is no tail call
}

Result<void> prefault_stack(std::size_t bytes, const ThreadCalls& calls) {
    void* lowest = nullptr;
    std::size_t size = 0;
    if (calls.stack_bounds(&lowest, &size) != 0) {
        const int error = errno;
        return make_error<errors::stack_not_stated>(detail::system_words(error)).from_call("pthread_getattr_np", error);
    }
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    Result<std::uintptr_t> end = detail::stack_to_touch(here, reinterpret_cast<std::uintptr_t>(lowest), bytes);
    if (!end) return std::move(end).error();
    touch_stack(*end);
    return {};
}

Result<void> lock_all(LockAll lock, const ThreadCalls& calls) {
    const int flags = lock == LockAll::present ? MCL_CURRENT : MCL_CURRENT | MCL_FUTURE;
    if (calls.mlockall(flags) == 0) return {};
    const int error = errno;
    return detail::lock_all_refused(error, limit_now(calls, RLIMIT_MEMLOCK));
}

}  // namespace

namespace detail {

Result<void> PreparedThread::set_cpus(const RealTimeOptions& options) {
    const auto not_read = [] {
        const int error = errno;
        return make_error<errors::cpus_not_set>(system_words(error)).from_call("sched_getaffinity", error);
    };
    if (calls_.sched_getaffinity(&cpus_) != 0) return not_read();
    const platform::os::CpuMask wanted = mask_of(options.cpus);
    if (calls_.sched_setaffinity(&wanted) != 0) return cpus_refused(options, errno);
    cpus_changed_ = true;
    platform::os::CpuMask given;
    if (calls_.sched_getaffinity(&given) != 0) return not_read();
    if (std::optional<Error> missing = cpu_left_out(options.cpus, given)) return std::move(*missing);
    return {};
}

Result<void> PreparedThread::set_timer_slack(std::chrono::nanoseconds slack) {
    if (calls_.set_timer_slack(static_cast<std::uint64_t>(slack.count()), &slack_) != 0) {
        const int error = errno;
        return make_error<errors::timer_slack_not_set>(system_words(error)).from_call("prctl", error);
    }
    slack_changed_ = true;
    return {};
}

Result<void> PreparedThread::set_policy(const RealTimeOptions& options) {
    if (calls_.sched_getattr(&policy_) != 0) {
        const int error = errno;
        return make_error_as<errors::policy_not_set>(error == ENOSYS ? Code::unsupported : Code::system_error,
                                                     system_words(error))
            .from_call("sched_getattr", error);
    }
    const platform::os::SchedulingAttributes wanted = wanted_scheduling(options, policy_);
    if (calls_.sched_setattr(&wanted) != 0) {
        const int error = errno;
        return scheduling_refused(options, error, limit_now(calls_, RLIMIT_RTPRIO));
    }
    policy_changed_ = true;
    return {};
}

Result<void> PreparedThread::prepare(const RealTimeOptions& options) {
    if (!options.cpus.empty()) ISTHMUS_TRY(set_cpus(options));
    // Before the policy: a thread of SCHED_FIFO reads 0.
    if (options.timer_slack.count() != 0) ISTHMUS_TRY(set_timer_slack(options.timer_slack));
    if (options.policy != ThreadPolicy::unchanged) ISTHMUS_TRY(set_policy(options));
    if (options.stack_bytes > 0) ISTHMUS_TRY(prefault_stack(options.stack_bytes, calls_));
    if (options.lock != LockAll::no) ISTHMUS_TRY(lock_all(options.lock, calls_));
    return {};
}

// The policy first: a thread of SCHED_DEADLINE may not change its CPUs.
Result<void> PreparedThread::restore() {
    if (!policy_changed_ && !cpus_changed_ && !slack_changed_) return {};
    if (calls_.thread_id() != thread_id_) return make_error<errors::scope_of_another_thread>();
    Result<void> answer;
    const auto not_restored = [](const char* what, const char* call) {
        const int error = errno;
        return make_error<errors::thread_not_restored>(what, system_words(error)).from_call(call, error);
    };
    const auto judge = [&](bool failed, const char* what, const char* call) {
        if (!failed) return;
        Error error = not_restored(what, call);
        if (answer) answer = std::move(error);
    };
    judge(policy_changed_ && calls_.sched_setattr(&policy_) != 0, "scheduling", "sched_setattr");
    judge(slack_changed_ && calls_.set_timer_slack(slack_, nullptr) != 0, "timer slack", "prctl");
    judge(cpus_changed_ && calls_.sched_setaffinity(&cpus_) != 0, "CPUs", "sched_setaffinity");
    policy_changed_ = cpus_changed_ = slack_changed_ = false;
    return answer;
}

}  // namespace detail

RealTimeScope::RealTimeScope(std::unique_ptr<detail::PreparedThread> thread) noexcept : thread_(std::move(thread)) {}
RealTimeScope::RealTimeScope(RealTimeScope&&) noexcept = default;
RealTimeScope& RealTimeScope::operator=(RealTimeScope&& other) noexcept {
    if (this != &other) {
        static_cast<void>(restore());
        thread_ = std::move(other.thread_);
    }
    return *this;
}
RealTimeScope::~RealTimeScope() {
    static_cast<void>(restore());
}
Result<void> RealTimeScope::restore() {
    return thread_ ? thread_->restore() : Result<void>();
}

namespace detail {

Result<RealTimeScope> prepare_thread(const RealTimeOptions& options, const CpuLists& cpus, const ThreadCalls& calls) {
    if (std::optional<Error> wrong = wrong_request(options, cpus.online)) return std::move(*wrong);
    auto thread = std::make_unique<PreparedThread>(calls);
    if (Result<void> done = thread->prepare(options); !done) {
        static_cast<void>(thread->restore());
        return std::move(done).error();
    }
    return RealTimeScope(std::move(thread));
}

Result<void> lock_range(const void* data, std::size_t bytes, const ThreadCalls& calls) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (data == nullptr || bytes == 0 || address + bytes < address) return make_error<errors::no_range_to_lock>(bytes);
    if (calls.mlock(data, bytes) == 0) return {};
    const int error = errno;
    calls.munlock(data, bytes);  // the pages before one that is not mapped are locked
    return lock_range_refused(bytes, error, limit_now(calls, RLIMIT_MEMLOCK));
}

Result<ThreadCounts> thread_counts(const ThreadCalls& calls) {
    rusage usage{};
    if (calls.getrusage(&usage) != 0) {
        const int error = errno;
        return make_error<errors::counts_not_stated>(system_words(error)).from_call("getrusage", error);
    }
    return ThreadCounts{usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace detail

Result<RealTimeScope> prepare_thread(const RealTimeOptions& options) {
    return detail::prepare_thread(options, options.cpus.empty() ? CpuLists() : platform::os::cpu_lists(),
                                  ThreadCalls::real());
}

Result<LockedMemory> LockedMemory::lock(const void* data, std::size_t bytes) {
    ISTHMUS_TRY(detail::lock_range(data, bytes, ThreadCalls::real()));
    return LockedMemory(data, bytes);
}
LockedMemory::LockedMemory(LockedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
LockedMemory& LockedMemory::operator=(LockedMemory&& other) noexcept {
    LockedMemory taken(std::move(other));  // ends what this one had locked
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    return *this;
}
LockedMemory::~LockedMemory() {
    if (bytes_ != 0) ThreadCalls::real().munlock(data_, bytes_);
}

Result<ThreadCounts> thread_counts() {
    return detail::thread_counts(ThreadCalls::real());
}

Result<NearCpus> cpus_near(const Device& device) {
    const detail::DeviceState& state = *device.state();
    detail::NearFacts facts;
    facts.driver_node = device.capabilities().host_numa_node;
    if (const std::optional<PciPlace>& pci = device.facts().pci; facts.driver_node < 0 && pci) {
        facts.pci_node = pci->numa_node;
        facts.pci_cpus = pci->near_cpus;
    }
    facts.nodes = state.config->machine.numa_nodes;
    facts.cpus = platform::os::cpu_lists();
    return detail::near_cpus(facts);
}

}  // namespace v0
}  // namespace isthmus
