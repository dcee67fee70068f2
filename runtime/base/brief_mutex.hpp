// SPDX-License-Identifier: Apache-2.0
// BriefMutex: a mutex for critical sections of some tens of nanoseconds.
#pragma once

#include "cpu_pause.hpp"

#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A thread that finds it taken looks again for about a microsecond before it sleeps: to wake a thread that sleeps costs
// the other one more than such a section takes. The number of looks is bounded: a holder that has lost its core is
// waited for asleep.
class BriefMutex {
public:
    void lock() {
        for (int pauses = 1; pauses <= most_pauses; pauses *= 2) {
            if (mutex_.try_lock()) return;
            for (int at = 0; at < pauses; ++at) cpu_pause();
        }
        mutex_.lock();
    }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr int most_pauses = 32;  // 63 in all

    std::mutex mutex_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
