// SPDX-License-Identifier: Apache-2.0
// The number that tells kernels and images apart which lay at one address one after the other (ADR 94).
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {

// Draws the number at the first call. Never 0. Thread-safe.
std::uint64_t draw_first_use(const FirstUseStamp& of) noexcept;

inline std::uint64_t first_use_of(const FirstUseStamp& of) noexcept {
    // Relaxed: only the number itself is compared.
    const std::uint64_t drawn = of.ns.load(std::memory_order_relaxed);
    return drawn != 0 ? drawn : draw_first_use(of);
}

}  // namespace v0
}  // namespace isthmus
