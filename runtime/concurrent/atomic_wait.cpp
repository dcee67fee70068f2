// Waiting for a word in shared memory: by looking, because nothing that a GPU does wakes a thread.
#include <isthmus/atomic_wait.hpp>

#include "wait_pause.hpp"

#include <chrono>
#include <thread>

namespace isthmus::inline v0::detail {

Result<void> wait_until_changed(bool (*changed)(const void* state), const void* state, Wait wait) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const std::chrono::nanoseconds most = wait.timeout.value_or(std::chrono::seconds(60));
    while (!changed(state)) {
        if (wait.refuse) {
            return Error(Code::not_ready, "the word still holds what it held", "wait, or ask again later");
        }
        const std::chrono::nanoseconds waited = Clock::now() - begin;
        if (waited >= most) {
            return Error(Code::timed_out, "the word did not change in time",
                         "see whether what should change it runs, and waits for nothing that this thread does");
        }
        const std::chrono::nanoseconds pause = pause_after(WaitPolicy::adaptive, waited);
        if (pause.count() == 0) {
            std::this_thread::yield();  // there may be no other core for whoever changes it
        } else {
            std::this_thread::sleep_for(pause);
        }
    }
    return {};
}

}  // namespace isthmus::inline v0::detail
