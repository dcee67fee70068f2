// A counter of two sides without a read-modify-write between them: each adds to a lane of its own, and the sum is made
// by whoever reads.
#pragma once

#include <isthmus/detail/host_device.hpp>

#include <cstdint>

namespace isthmus::inline v0::protocol {

// One lane, of one thread, on a line of its own.
template <class Atomics>
class CounterLane {
public:
    using Cell = typename Atomics::Cell;
    // Goes on from what the lane holds.
    ISTHMUS_KERNEL_FUNCTION CounterLane(const Atomics& atomics, Cell lane)
        : atomics_(atomics), lane_(lane), own_(atomics_.load_relaxed(lane)) {}
    ISTHMUS_KERNEL_FUNCTION void add(std::uint32_t amount) {
        own_ += amount;
        // Pairs with the acquire in merged(): who sees the sum sees what was done before it was counted.
        atomics_.store_release(lane_, own_);
    }

private:
    Atomics atomics_;
    Cell lane_;
    std::uint32_t own_;
};

// The sum of both lanes, modulo 2^32. Never counts what was not added, never goes back for one reader, and is exact
// once the reader knows by other means (a message that publishes all memory, the end of a kernel) that both have added.
template <class Atomics>
ISTHMUS_KERNEL_FUNCTION std::uint32_t merged(const Atomics& atomics, typename Atomics::Cell first,
                                             typename Atomics::Cell second) {
    return atomics.load_acquire(first) + atomics.load_acquire(second);
}

}  // namespace isthmus::inline v0::protocol
