// SPDX-License-Identifier: Apache-2.0
// A fence between CPU threads that ThreadSanitizer understands, too.
#pragma once

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define ISTHMUS_DETAIL_FENCE_BY_UPDATE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ISTHMUS_DETAIL_FENCE_BY_UPDATE 1
#endif
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {

// ThreadSanitizer does not support fences (g++ refuses to compile them with it). An update of one word shared by all
// threads orders at least as much.
template <std::memory_order order>
inline void host_fence() noexcept {
#if defined(ISTHMUS_DETAIL_FENCE_BY_UPDATE)
    static std::atomic<int> word{0};
    (void)word.fetch_add(0, order);
#else
    std::atomic_thread_fence(order);
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
