// SPDX-License-Identifier: Apache-2.0
// TriedLock: waiting for the lock.
#include "tried_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A futex whose word nobody wakes is a sleep that ends at once where the lock is free by now.
void TriedLock::lock_slowly() noexcept {
    constexpr int looks = 64;
    constexpr timespec nap{0, 50'000};
    for (int look = 1; !try_lock(); ++look) {
        if (look % looks == 0) (void)::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 1, &nap, nullptr, 0);
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
