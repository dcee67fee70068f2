// SPDX-License-Identifier: Apache-2.0
// cpu_pause(): what a thread does between two looks at a lock that is given back within some tens of nanoseconds.
#pragma once

namespace isthmus {
inline namespace v0 {
namespace detail {

// 10 to 40 ns, in which the core leaves its resources to the other thread on it.
inline void cpu_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
