// SPDX-License-Identifier: Apache-2.0
// AtomicSet: the atomic operations requested on shared memory, and their scope. Part of types, so that operations which
// a kernel or a guard did not request do not compile.
#pragma once

#include <cstdint>

namespace isthmus {
inline namespace v0 {

// Bit n is AtomicOperation n (facts.hpp), in the driver's numbering. Loads and stores are always included.
enum class AtomicSet : std::uint32_t {
    load_store = 0,
    add = 1u << 0,  // also subtraction, which adds the negative
    min = 1u << 1,
    max = 1u << 2,
    bit_and = 1u << 5,
    bit_or = 1u << 6,
    bit_xor = 1u << 7,
    exchange = 1u << 8,
    compare_exchange = 1u << 9,
    float_add = 1u << 10,  // of float and double
    all = add | min | max | bit_and | bit_or | bit_xor | exchange | compare_exchange | float_add,
};

constexpr AtomicSet operator|(AtomicSet a, AtomicSet b) noexcept {
    return static_cast<AtomicSet>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
// Whether the set includes all of `wanted`.
constexpr bool contains(AtomicSet set, AtomicSet wanted) noexcept {
    return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(wanted)) == static_cast<std::uint32_t>(wanted);
}

// Updates whose final word does not depend on their order (G6), as long as all of them are of one operation; the old
// values that they return do. The order of concurrent updates is never promised: with exchange and compare_exchange any
// of them may be the last, and a floating-point sum differs from run to run unless all partial sums are exact.
inline constexpr AtomicSet order_free_updates =
    AtomicSet::add | AtomicSet::min | AtomicSet::max | AtomicSet::bit_and | AtomicSet::bit_or | AtomicSet::bit_xor;

// The operations of `set` that exist for integers (`is_float` false) or for floating-point numbers.
constexpr AtomicSet of_words(AtomicSet set, bool is_float) noexcept {
    const auto floats = static_cast<std::uint32_t>(AtomicSet::float_add);
    return static_cast<AtomicSet>(static_cast<std::uint32_t>(set) & (is_float ? floats : ~floats));
}

// The threads among which an operation is atomic.
enum class AtomicScope : std::uint8_t {
    system,  // all CPU threads and all GPUs, where the machine allows that
    gpu,     // the threads of one GPU (on the CPU device: of the CPU)
};

}  // namespace v0
}  // namespace isthmus
