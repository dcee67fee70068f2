// SPDX-License-Identifier: Apache-2.0
// ShardedCounterView: the device lane of a ShardedCounter (sharded_counter.hpp), as a kernel uses it.
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/detail/pack.hpp>

#include <concepts>
#include <cstdint>

namespace isthmus {
inline namespace v0 {

namespace detail {
// A separate type, so that a buffer of numbers is not accepted as a lane.
struct CounterCell {
    std::uint64_t count = 0;
};
}  // namespace detail

// A kernel parameter; its argument is a ShardedCounter. All threads of all kernels on the counter's device may add at
// the same time: between them the additions are atomic in any memory that the device reaches.
struct ShardedCounterView {
    detail::CounterCell* data = nullptr;
    std::uint64_t count = 0;  // slots

    // Wraps at 2^64. Orders no other memory. Integers only: their sum does not depend on the order of the additions
    // (G6).
    template <std::convertible_to<std::uint64_t> I, std::integral A>
    ISTHMUS_KERNEL_FUNCTION void add(I slot, A amount) const noexcept {
        GpuAtomicRef<std::uint64_t, AtomicSet::add>(detail::element(data, count, slot).count)
            .add_relaxed(static_cast<std::uint64_t>(amount));
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
};

namespace detail {
template <>
struct Parameter<ShardedCounterView> : ViewParameter<CounterCell, ArgumentUse::concurrent> {
    static constexpr bool own_device = true;
};
}  // namespace detail

}  // namespace v0
}  // namespace isthmus
