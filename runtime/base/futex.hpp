// SPDX-License-Identifier: Apache-2.0
// Sleeping until a word changes, and waking the threads that sleep: futexes of one process.
#pragma once

#include <chrono>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The waits and notifications of std::atomic throw if the system call fails. Here a failure only costs time: a thread
// that is not woken looks again after `longest`. Where a filter of system calls (seccomp) refuses the call, the thread
// sleeps for a short time: if it yielded its core, a thread of a real-time priority would keep one of a lower priority
// from running that has what it waits for. Neither function changes errno.
void sleep_while(const void* word, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept;
// Does not look at the word, which may be gone.
void wake_sleepers(const void* word, int most) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
