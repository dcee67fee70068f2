// SPDX-License-Identifier: Apache-2.0
// A host file: it includes what users include, and declares no hook of the simulator.
#include "shared_update.hpp"

#include <isthmus/isthmus.hpp>

#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
#error "a host file plays no GPU"
#endif
namespace isthmus {
inline namespace v0 {
namespace detail {
// Does not compile where the hook of that name is declared.
[[maybe_unused]] constexpr bool simulated_gpu = false;
}  // namespace detail
}  // namespace v0
}  // namespace isthmus

std::uint32_t add_in_host_file(std::uint32_t& word) {
    return add_in_shared_function(word);
}

std::uint32_t update_in_host_file(std::uint32_t& word) {
    const isthmus::AtomicRef<std::uint32_t> ref(word);
    const std::uint32_t old = ref.add_acq_rel(1);
    ref.sub_relaxed(1);
    ref.min_relaxed(6);
    ref.max_relaxed(7);
    ref.and_relaxed(5);
    ref.or_relaxed(2);
    ref.xor_relaxed(1);
    std::uint32_t expected = ref.exchange_relaxed(2) - 4;  // 6 − 4 = 2
    ref.compare_exchange_relaxed(expected, 1);
    return old;
}

void fence_in_host_file() {
    isthmus::alias_fence();
}
