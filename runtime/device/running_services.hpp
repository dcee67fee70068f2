// SPDX-License-Identifier: Apache-2.0
// RunningServices: the persistent kernels of one device, the calls refused while they run, and the work deferred to
// their end.
#pragma once

#include <isthmus/result.hpp>

#include "service_rules.hpp"
#include "wait_pause.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Held while a driver call is in flight that would wait for a service: no service starts meanwhile. Hold it around the
// driver call alone, and not while user code runs, which may start a service.
class [[nodiscard]] CallInFlight {
public:
    CallInFlight() = default;  // for a call that waits for no service: blocks none
    explicit CallInFlight(std::atomic<int>& counted) noexcept : count_(&counted) {}
    CallInFlight(CallInFlight&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    CallInFlight& operator=(CallInFlight&& other) noexcept {
        leave();
        count_ = std::exchange(other.count_, nullptr);
        return *this;
    }
    ~CallInFlight() { leave(); }
    void leave() noexcept {
        if (count_ != nullptr) std::exchange(count_, nullptr)->fetch_sub(1, std::memory_order_release);
    }

private:
    std::atomic<int>* count_ = nullptr;
};

// Thread-safe. any() is one load, and its answer may be out of date at once. Only an entered call is safe from a
// service that starts.
class RunningServices {
public:
    // true: the service's kernel has ended, on its own or after a late stop.
    using HasEnded = std::function<bool()>;

    bool any() const noexcept { return running_.load(std::memory_order_relaxed) != 0; }
    // true: a call with this driver use would wait for a service. No lock may be held, as for enter().
    bool hinders(rules::DriverUse use);
    // Returns Code::in_use, which names the service, if the call that `what` describes would wait for a service in the
    // driver.
    Result<void> allow(rules::DriverUse use, std::string_view what);
    // The same, as the error of a call that could not enter.
    Error refusal(rules::DriverUse use, std::string_view what);
    // nullopt: the call would wait for a service that runs or is about to start. No lock may be held: if the last
    // service is found to have ended, the deferred work is done here.
    std::optional<CallInFlight> enter(rules::DriverUse use);
    // The same with locks held: a service that has ended without being noticed counts as running.
    std::optional<CallInFlight> try_enter(rules::DriverUse use);
    // As enter(); on refusal `work` is deferred until no service runs.
    std::optional<CallInFlight> enter_or_put_off(rules::DriverUse use, const std::function<void()>& work);
    // From now on a service with this name counts as running. Waits until no call that would wait for it is in flight.
    // Code::timed_out names such a call. No lock may be held.
    Result<std::uint64_t> begin(const std::string& name, const Deadline& deadline, WaitPolicy policy);
    // If it was the last service, does the deferred work. No lock may be held.
    void end(std::uint64_t id);
    // The service counts until end(), or until `ended` returns true. `ended` holds neither device nor stream.
    void watch(std::uint64_t id, HasEnded ended);
    // Defers `work` until no service runs; false: none runs, and nothing was deferred.
    bool put_off(rules::DriverUse use, std::function<void()> work);
    // Checks all watched services.
    void forget_ended();

private:
    struct Service {
        std::uint64_t id;
        std::string name;
        HasEnded ended;  // empty: the kernel was not given to the driver yet
    };
    void remove(std::uint64_t id);
    const rules::ServingAnswer* in_flight() const noexcept;

    std::atomic<int> running_{0};
    std::array<std::atomic<int>, rules::driver_use_count> in_flight_{};
    std::mutex mutex_;
    std::uint64_t last_id_ = 0;
    std::vector<Service> services_;
    std::vector<std::function<void()>> put_off_;
};

// Enters a call that may wait for the services of all of these devices. Code::in_use names a service that runs, as
// allow() does. No lock and no CallInFlight may be held: if the last service is found to have ended, the deferred work
// is done first.
Result<std::vector<CallInFlight>> enter_all(const std::vector<RunningServices*>& all, rules::DriverUse use,
                                            std::string_view what);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
