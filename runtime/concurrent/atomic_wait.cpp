// SPDX-License-Identifier: Apache-2.0
// Waiting for a word in shared memory: polls, because a GPU's writes wake no thread.
#include <isthmus/concurrent/atomic_wait.hpp>

#include "concurrent_errors.hpp"
#include "wait_pause.hpp"

#include <chrono>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<void> wait_until_changed(bool (*changed)(const void* state), const void* state, Wait wait) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const std::chrono::nanoseconds most = wait.timeout.value_or(std::chrono::seconds(60));
    while (!changed(state)) {
        if (wait.refuse) return make_error<errors::word_not_changed_yet>();
        const std::chrono::nanoseconds waited = Clock::now() - begin;
        if (waited >= most) return make_error<errors::word_not_changed_in_time>();
        const std::chrono::nanoseconds pause = pause_after(WaitPolicy::adaptive, waited);
        if (pause.count() == 0) {
            std::this_thread::yield();  // the thread that changes it may need this core
        } else {
            std::this_thread::sleep_for(pause);
        }
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
