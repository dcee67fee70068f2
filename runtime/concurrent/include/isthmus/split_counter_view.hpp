// SplitCounterView: how a kernel counts in its side's lane of a SplitCounter (split_counter.hpp).
#pragma once

#include <isthmus/atomic_ref.hpp>
#include <isthmus/detail/pack.hpp>

#include <concepts>
#include <cstdint>

namespace isthmus::inline v0 {

namespace detail {
// A type of its own, so that no buffer of numbers passes for a lane.
struct CounterCell {
    std::uint64_t count = 0;
};
}  // namespace detail

// A kernel's parameter; a SplitCounter is passed for it. All threads of all kernels on the device that the counter was
// made for may add at the same time: among themselves that is atomic in any memory that the device reaches.
struct SplitCounterView {
    detail::CounterCell* data = nullptr;
    std::uint64_t count = 0;  // slots

    // Wraps at 2^64. Says nothing about the order of other memory. Whole numbers only: their sum does not depend on the
    // order of the additions (G6).
    template <std::convertible_to<std::uint64_t> I, std::integral A>
    ISTHMUS_KERNEL_FUNCTION void add(I slot, A amount) const noexcept {
        GpuAtomicRef<std::uint64_t, AtomicSet::add>(detail::element(data, count, slot).count)
            .add_relaxed(static_cast<std::uint64_t>(amount));
    }
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t size() const noexcept { return count; }
};

namespace detail {
template <>
struct Parameter<SplitCounterView> : ViewParameter<CounterCell, ArgumentUse::concurrent> {
    static constexpr bool own_device = true;
};
}  // namespace detail

}  // namespace isthmus::inline v0
