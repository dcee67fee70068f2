// SPDX-License-Identifier: Apache-2.0
// RunningServices: counts services, refuses calls, and defers work.
#include "running_services.hpp"

#include "composed.hpp"
#include "device_errors.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

bool RunningServices::hinders(rules::DriverUse use) {
    if (!any() || !rules::while_serving(use).waits) return false;
    forget_ended();
    return any();
}

Result<void> RunningServices::allow(rules::DriverUse use, std::string_view what) {
    if (!hinders(use)) return {};
    return refusal(use, what);
}

Error RunningServices::refusal(rules::DriverUse use, std::string_view what) {
    const rules::ServingAnswer& answer = rules::while_serving(use);
    Words service;
    {
        const std::lock_guard lock(mutex_);
        if (!services_.empty()) {
            service.append("the service '").append(services_.front().name).append("'");
        } else {
            service.append("a service");
        }
    }
    return make_error<errors::would_wait_for_service>(what, service, answer.reason, answer.remedy);
}

// A call counts itself, then reads the number of services; begin() counts its service, then reads the counts of calls.
// All four accesses are sequentially consistent, so that at least one side sees the other.
std::optional<CallInFlight> RunningServices::try_enter(rules::DriverUse use) {
    if (!rules::while_serving(use).waits) return CallInFlight();
    std::atomic<int>& count = in_flight_[static_cast<std::size_t>(use)];
    count.fetch_add(1, std::memory_order_seq_cst);
    CallInFlight call(count);
    if (running_.load(std::memory_order_seq_cst) == 0) return call;
    return std::nullopt;
}

std::optional<CallInFlight> RunningServices::enter(rules::DriverUse use) {
    for (;;) {
        if (std::optional<CallInFlight> call = try_enter(use)) return call;
        forget_ended();
        if (any()) return std::nullopt;
    }
}

Result<std::vector<CallInFlight>> enter_all(const std::vector<RunningServices*>& all, rules::DriverUse use,
                                            std::string_view what) {
    for (;;) {
        std::vector<CallInFlight> calls;
        RunningServices* hindering = nullptr;
        for (std::size_t at = 0; at < all.size() && hindering == nullptr; ++at) {
            if (std::optional<CallInFlight> call = all[at]->try_enter(use)) {
                calls.push_back(*std::move(call));
            } else {
                hindering = all[at];
            }
        }
        if (hindering == nullptr) return calls;
        calls.clear();  // deferred work may start a service, which would wait for these calls
        hindering->forget_ended();
        if (hindering->any()) return hindering->refusal(use, what);
    }
}

std::optional<CallInFlight> RunningServices::enter_or_put_off(rules::DriverUse use, const std::function<void()>& work) {
    for (;;) {
        if (std::optional<CallInFlight> call = enter(use)) return call;
        if (put_off(use, work)) return std::nullopt;
    }
}

const rules::ServingAnswer* RunningServices::in_flight() const noexcept {
    for (const rules::ServingAnswer& answer : rules::serving_answers()) {
        // Pairs with the release in CallInFlight::leave(): the call has ended before the service starts.
        if (in_flight_[static_cast<std::size_t>(answer.use)].load(std::memory_order_seq_cst) != 0) return &answer;
    }
    return nullptr;
}

Result<std::uint64_t> RunningServices::begin(const std::string& name, const Deadline& deadline, WaitPolicy policy) {
    using Clock = std::chrono::steady_clock;
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = ++last_id_;
        services_.push_back({id, name, {}});
        running_.store(static_cast<int>(services_.size()), std::memory_order_seq_cst);
    }
    const Clock::time_point begin = Clock::now();
    while (const rules::ServingAnswer* const call = in_flight()) {
        const Wait left = deadline.left();
        if (left.refuse || left.timeout == std::chrono::nanoseconds(0)) {
            remove(id);  // also does the work deferred meanwhile, if no other service runs
            return make_error<errors::service_not_started_beside_call>(name, call->deed, call->reason);
        }
        pause_between_queries(policy, Clock::now() - begin, *left.timeout);
    }
    return id;
}

void RunningServices::end(std::uint64_t id) {
    remove(id);
}

void RunningServices::watch(std::uint64_t id, HasEnded ended) {
    const std::lock_guard lock(mutex_);
    for (Service& service : services_) {
        if (service.id != id) continue;
        service.ended = std::move(ended);
        return;
    }
}

bool RunningServices::put_off(rules::DriverUse use, std::function<void()> work) {
    if (!any() || !rules::while_serving(use).waits) return false;
    forget_ended();
    const std::lock_guard lock(mutex_);
    if (services_.empty()) return false;
    put_off_.push_back(std::move(work));
    return true;
}

// Calls HasEnded without the lock, because it calls the driver.
void RunningServices::forget_ended() {
    std::vector<std::pair<std::uint64_t, HasEnded>> watched;
    {
        const std::lock_guard lock(mutex_);
        for (const Service& service : services_) {
            if (service.ended) watched.emplace_back(service.id, service.ended);
        }
    }
    for (const auto& [id, ended] : watched) {
        if (ended()) remove(id);
    }
}

void RunningServices::remove(std::uint64_t id) {
    std::vector<std::function<void()>> due;
    std::vector<Service> gone;  // destroyed without the lock: HasEnded is the caller's closure
    {
        const std::lock_guard lock(mutex_);
        const auto found =
            std::find_if(services_.begin(), services_.end(), [&](const Service& known) { return known.id == id; });
        if (found == services_.end()) return;
        gone.push_back(std::move(*found));
        services_.erase(found);
        running_.store(static_cast<int>(services_.size()), std::memory_order_seq_cst);
        if (services_.empty()) due.swap(put_off_);
    }
    for (const std::function<void()>& work : due) work();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
