// SPDX-License-Identifier: Apache-2.0
// The system calls of futexes.
#include "futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {

void sleep_while(const void* word, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    constexpr std::chrono::nanoseconds where_refused = std::chrono::microseconds(50);
    const int before = errno;
    const timespec time{static_cast<time_t>(longest.count() / second), static_cast<long>(longest.count() % second)};
    const long slept = ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
    const bool refused = slept != 0 && errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT;
    if (refused) std::this_thread::sleep_for(std::min(longest, where_refused));
    errno = before;
}

void wake_sleepers(const void* word, int most) noexcept {
    const int before = errno;
    (void)::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
    errno = before;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
