// SPDX-License-Identifier: Apache-2.0
// Kernels that go over a buffer at the speed of the memory: thread i takes lanes i, i + threads, i + 2 × threads, …
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

namespace isthmus::tools::tune {

// What one access of a thread moves: 16 bytes, the widest that a GPU has.
struct alignas(16) Lane {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

inline constexpr std::uint64_t most_threads = 256 * 1024;

// Reads all lanes. `never` is a number that the sum does not take: only then something is written, so that the reads
// cannot be left out.
ISTHMUS_DECLARE_KERNEL(tune_read, isthmus::Index i, isthmus::View<std::uint64_t> sum,
                       isthmus::View<const isthmus::tools::tune::Lane> lanes, std::uint64_t threads,
                       std::uint64_t never);
// Writes all lanes.
ISTHMUS_DECLARE_KERNEL(tune_write, isthmus::Index i, isthmus::Out<isthmus::tools::tune::Lane> lanes,
                       std::uint64_t threads, std::uint64_t salt);
// Adds to all lanes.
ISTHMUS_DECLARE_KERNEL(tune_update, isthmus::Index i, isthmus::View<isthmus::tools::tune::Lane> lanes,
                       std::uint64_t threads, std::uint64_t salt);

}  // namespace isthmus::tools::tune
