// RunningServices: the persistent kernels of one device, what is refused while they run, and what waits for their end.
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

namespace isthmus::inline v0::detail {

// Held while a call is in the driver that would wait for a service: none starts meanwhile. Hold it around the call
// alone, and not while users' code runs, which may start one.
class [[nodiscard]] CallInFlight {
public:
    CallInFlight() = default;  // of a call that waits for no service: it hinders none
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

// Thread-safe. Asking whether any service runs is one load; what it says may be over at once, and only who has entered
// is safe from services that start.
class RunningServices {
public:
    // Has the kernel of a service ended by now, of its own accord or late?
    using HasEnded = std::function<bool()>;

    bool any() const noexcept { return running_.load(std::memory_order_relaxed) != 0; }
    // Would a call that asks this of the driver wait for a service? Expects no lock, as enter().
    bool hinders(rules::DriverUse use);
    // Code::in_use, naming the service, where a call that begins `what` would wait for one in the driver.
    Result<void> allow(rules::DriverUse use, std::string_view what);
    // … as the error of a call that could not enter.
    Error refusal(rules::DriverUse use, std::string_view what);
    // Nothing: the call would wait for a service that runs, or is about to. Expects no lock: where the last service has
    // ended unseen, what was put off is done.
    std::optional<CallInFlight> enter(rules::DriverUse use);
    // … with locks held: a service that has ended and that nobody looked after counts as running.
    std::optional<CallInFlight> try_enter(rules::DriverUse use);
    // … and then `work` is kept until no service runs.
    std::optional<CallInFlight> enter_or_put_off(rules::DriverUse use, const std::function<void()>& work);
    // From now on a service of this name counts as running. Waits until no call is in flight that would wait for it;
    // Code::timed_out names such a call. Expects no lock.
    Result<std::uint64_t> begin(const std::string& name, const Deadline& deadline, WaitPolicy policy);
    // Does what was put off when it was the last one. Expects no lock.
    void end(std::uint64_t id);
    // It counts until it is ended, or `ended` says that it has. `ended` holds neither device nor stream.
    void watch(std::uint64_t id, HasEnded ended);
    // Keeps `work` until no service runs; false: none does, and nothing was kept.
    bool put_off(rules::DriverUse use, std::function<void()> work);
    // Asks after all that are watched.
    void forget_ended();

private:
    struct Service {
        std::uint64_t id;
        std::string name;
        HasEnded ended;  // nothing: its kernel was not given to the driver yet
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

// Into a call that may wait for the services of all of these; Code::in_use names one that runs, as allow() does.
// Expects neither lock nor call in flight: where the last service has ended unseen, what was put off is done, before
// any is held.
Result<std::vector<CallInFlight>> enter_all(const std::vector<RunningServices*>& all, rules::DriverUse use,
                                            std::string_view what);

}  // namespace isthmus::inline v0::detail
