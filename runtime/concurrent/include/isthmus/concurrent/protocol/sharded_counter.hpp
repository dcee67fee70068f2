// SPDX-License-Identifier: Apache-2.0
// A counter for two sides, without a read-modify-write between them: each side adds to its own lane, and the reader
// adds up the lanes.
#pragma once

#include <isthmus/detail/host_device.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace protocol {

// One lane, written by one thread, on its own line.
template <class Atomics>
class CounterLane {
public:
    using Cell = typename Atomics::Cell;
    // Continues from the lane's present value.
    ISTHMUS_KERNEL_FUNCTION CounterLane(const Atomics& atomics, Cell lane)
        : atomics_(atomics), lane_(lane), own_(atomics_.load_relaxed(lane)) {}
    ISTHMUS_KERNEL_FUNCTION void add(std::uint32_t amount) {
        own_ += amount;
        // Pairs with the acquire in merged(): a reader that sees the sum also sees the writes before the addition.
        atomics_.store_release(lane_, own_);
    }

private:
    Atomics atomics_;
    Cell lane_;
    std::uint32_t own_;
};

// The sum of both lanes, modulo 2^32. It never includes an amount that was not added and never decreases for one
// reader. It is exact once the reader knows by other means (a message that publishes all memory, the end of a kernel)
// that both sides have added.
template <class Atomics>
ISTHMUS_KERNEL_FUNCTION std::uint32_t merged(const Atomics& atomics, typename Atomics::Cell first,
                                             typename Atomics::Cell second) {
    return atomics.load_acquire(first) + atomics.load_acquire(second);
}

}  // namespace protocol
}  // namespace v0
}  // namespace isthmus
