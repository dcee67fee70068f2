// SPDX-License-Identifier: Apache-2.0
// Watchdog: a thread that looks when the loop said last that it lives.
#include <isthmus/seal.hpp>

#include "real_time_errors.hpp"
#include "system_words.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {

using Clock = std::chrono::steady_clock;

struct Watchdog::State {
    State(std::chrono::nanoseconds silence, Late callback) : limit(silence), late(std::move(callback)) {}
    void watch();

    const std::chrono::nanoseconds limit;
    const Late late;
    std::atomic<Clock::rep> fed{Clock::now().time_since_epoch().count()};
    std::mutex mutex;
    std::condition_variable ends;
    bool ended = false;  // guarded by the mutex
    pthread_t thread{};
};

void Watchdog::State::watch() {
    Clock::rep reported = fed.load(std::memory_order_relaxed) - 1;  // the feeding that `late` was called for last
    std::unique_lock lock(mutex);
    while (!ended) {
        const Clock::rep last = fed.load(std::memory_order_relaxed);
        const Clock::time_point due = Clock::time_point(Clock::duration(last)) + limit;
        const Clock::time_point now = Clock::now();
        if (now >= due && last != reported) {
            reported = last;
            lock.unlock();
            late(now - Clock::time_point(Clock::duration(last)));
            lock.lock();
        } else {
            // Fed meanwhile: looked at again when that is due at the earliest.
            (void)ends.wait_until(lock, last == reported ? now + limit : due, [this] { return ended; });
        }
    }
}

Watchdog::Watchdog(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Watchdog::Watchdog(Watchdog&&) noexcept = default;
Watchdog& Watchdog::operator=(Watchdog&& other) noexcept {
    if (this == &other) return *this;
    Watchdog ended(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
}

Watchdog::~Watchdog() {
    if (!state_) return;
    {
        const std::lock_guard lock(state_->mutex);
        state_->ended = true;
    }
    state_->ends.notify_all();
    pthread_join(state_->thread, nullptr);
}

Result<Watchdog> Watchdog::start(std::chrono::nanoseconds limit, Late late) {
    if (limit < std::chrono::microseconds(1) || !late) return make_error<errors::no_such_watchdog>(limit.count());
    auto state = std::make_unique<State>(limit, std::move(late));
    // The thread takes no signal of the program.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto watch = [](void* watched) -> void* { return static_cast<State*>(watched)->watch(), nullptr; };
    const int error = pthread_create(&state->thread, nullptr, watch, state.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
        return make_error<errors::watchdog_not_started>(detail::system_words(error)).from_call("pthread_create", error);
    }
    return Watchdog(std::move(state));
}

void Watchdog::feed() noexcept {
    if (state_) state_->fed.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

}  // namespace v0
}  // namespace isthmus
