// SPDX-License-Identifier: Apache-2.0
// Draws the numbers of first uses.
#include "private/first_use.hpp"

#include <algorithm>
#include <chrono>

namespace isthmus {
inline namespace v0 {

// The time, because several copies of this library may draw numbers in one process: what lay at an address before was
// used before what lies there now. Counted on from the last number, because a clock may stand still for milliseconds.
std::uint64_t draw_first_use(const FirstUseStamp& of) noexcept {
    static std::atomic<std::uint64_t> last{0};
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    std::uint64_t before = last.load(std::memory_order_relaxed);
    std::uint64_t drawn = 0;
    do {
        drawn = std::max(now, before + 1);
    } while (!last.compare_exchange_weak(before, drawn, std::memory_order_relaxed));
    std::uint64_t known = 0;  // another thread may have drawn meanwhile
    return of.ns.compare_exchange_strong(known, drawn, std::memory_order_relaxed) ? drawn : known;
}

}  // namespace v0
}  // namespace isthmus
