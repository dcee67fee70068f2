// SPDX-License-Identifier: Apache-2.0
// TriedLock: a lock of which most threads only try to get hold.
#pragma once

#include <atomic>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For std::lock_guard. Who tries makes one operation to take it and one store to give it back: nobody is woken. Who
// waits looks again for about a microsecond, and then after sleeps of 50 us, so that a holder of lower priority can go
// on. For sections of some tens of nanoseconds. Not recursive.
class TriedLock {
public:
    bool try_lock() noexcept {
        return word_.load(std::memory_order_relaxed) == 0 && word_.exchange(1, std::memory_order_acquire) == 0;
    }
    void lock() noexcept {
        if (!try_lock()) lock_slowly();
    }
    void unlock() noexcept { word_.store(0, std::memory_order_release); }

private:
    void lock_slowly() noexcept;

    std::atomic<std::uint32_t> word_{0};  // 0: nobody has it
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
