// SPDX-License-Identifier: Apache-2.0
// HostCalls: runs closures, and destroys them where that is safe.
#include "host_calls.hpp"

#include "order_check.hpp"
#include "process.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using Progress = HostFunction::Progress;

class InHostFunction {
public:
    InHostFunction() noexcept : before_(std::exchange(process::here.in_host_function, true)) {}
    ~InHostFunction() { process::here.in_host_function = before_; }
    InHostFunction(const InHostFunction&) = delete;
    InHostFunction& operator=(const InHostFunction&) = delete;

private:
    const bool before_;
};

}  // namespace

HostFunction::~HostFunction() = default;

void run_once(void* function) {
    auto& called = *static_cast<HostFunction*>(function);
    Progress expected = Progress::waiting;
    if (!called.progress.compare_exchange_strong(expected, Progress::running, std::memory_order_acquire)) return;
    {
        const InHostFunction here;
        if (called.order != nullptr) called.order->seen(called.stream_id, called.position);
        called.run();
    }
    called.progress.store(Progress::ran, std::memory_order_release);  // pairs with reap(), which may destroy it at once
}

void run_each_time(void* function) {
    const InHostFunction here;
    static_cast<HostFunction*>(function)->run();
}

void HostCalls::add(std::shared_ptr<HostFunction> function) {
    const std::lock_guard lock(mutex_);
    functions_.push_back(std::move(function));
    any_.store(true, std::memory_order_release);
}

void HostCalls::reap() {
    if (!any() || process::here.in_host_function) return;
    std::vector<std::shared_ptr<HostFunction>> ended;
    const std::lock_guard lock(mutex_);
    const auto runs_still = [](const std::shared_ptr<HostFunction>& function) {
        return function->progress.load(std::memory_order_acquire) != Progress::ran;  // pairs with run_once()
    };
    const auto first = std::stable_partition(functions_.begin(), functions_.end(), runs_still);
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(functions_.end()));
    functions_.erase(first, functions_.end());
    any_.store(!functions_.empty(), std::memory_order_release);
}

void HostCalls::drop_all() {
    // Users' closures are destroyed only where the runtime may be used.
    if (!any() || process::here.in_host_function) return;
    reap();
    std::vector<std::shared_ptr<HostFunction>> dropped;
    {
        const std::lock_guard lock(mutex_);
        dropped.swap(functions_);
        any_.store(false, std::memory_order_release);
    }
    for (std::shared_ptr<HostFunction>& function : dropped) {
        Progress expected = Progress::waiting;
        if (function->progress.compare_exchange_strong(expected, Progress::dropped, std::memory_order_acq_rel)) {
            function->drop();
        }
        process::keep_until_exit(std::move(function));
    }
}

void HostCalls::take(HostCalls& other) {
    std::vector<std::shared_ptr<HostFunction>> taken;
    {
        const std::lock_guard lock(other.mutex_);
        taken.swap(other.functions_);
        other.any_.store(false, std::memory_order_release);
    }
    if (taken.empty()) return;
    const std::lock_guard lock(mutex_);
    functions_.insert(functions_.end(), std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end()));
    any_.store(true, std::memory_order_release);
}

void AfterHostFunctions::put_off(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    any_.store(true, std::memory_order_release);
}

void AfterHostFunctions::drain() {
    if (!any_.load(std::memory_order_acquire) || process::here.in_host_function) return;
    std::vector<std::function<void()>> due;
    {
        const std::lock_guard lock(mutex_);
        due.swap(work_);
        any_.store(false, std::memory_order_release);
    }
    for (const std::function<void()>& work : due) work();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
