// SPDX-License-Identifier: Apache-2.0
// Which small memory shares its pages with others, and how large the memory is that it is cut out of. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace isthmus::rules {

// Places are multiples of this: what every allocation is aligned to, and two lines of 128 bytes, so that what CPU and
// GPU write in two places shares no line.
inline constexpr std::size_t place_step = 256;
inline constexpr std::size_t largest_place = 2048;
inline constexpr int place_count = static_cast<int>(largest_place / place_step);

// The place for memory of so many bytes: at least one byte behind it stays unused, so that an overrun by one byte
// leaves what may be accessed.
constexpr std::size_t place_for(std::size_t bytes) noexcept {
    return (bytes / place_step + 1) * place_step;
}
constexpr int place_class(std::size_t place_bytes) noexcept {
    return static_cast<int>(place_bytes / place_step) - 1;
}

// The place for a request of allocate_shared() on this device; 0: it gets memory of its own.
// * Managed memory where attribute 89 = 0 is attached to streams as a whole: never divided (K6).
// * Pools of the driver cut small memory out of larger themselves. Write-combined memory is never small.
// * Memory that is not kept (may_be_kept()) and coarser alignments promise pages of their own.
// * Memory of the system with a place is cut out of slabs already (DeviceSlabs::serve).
std::size_t small_place(const Capabilities& device, MemoryKind kind, const HostPlacement& placement, std::size_t bytes,
                        std::size_t alignment) noexcept;

// How large the next slab of places is, where places of `live_bytes` are in use: an eighth of them, at least a page and
// at most 64 KiB. So what is unused stays small beside what is used.
inline constexpr std::size_t largest_slab = std::size_t{64} << 10;
inline constexpr std::size_t most_places = largest_slab / place_step;
constexpr std::size_t slab_bytes(std::uint64_t live_bytes, std::size_t page_bytes) noexcept {
    const std::size_t least = std::min(std::max(std::bit_ceil(page_bytes), std::size_t{4096}), largest_slab);
    const std::uint64_t share = std::bit_floor(std::max<std::uint64_t>(live_bytes / 8, 1));
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(share, least, largest_slab));
}

}  // namespace isthmus::rules
