// SPDX-License-Identifier: Apache-2.0
// Which released memory is kept for the next allocation of its class, how much of it, and which request it serves.
// Pure.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::rules {

// Kinds whose memory may be kept, numbered for tables; -1: never kept. Pool kinds are kept by the driver's pools,
// placed host memory by slabs.
constexpr int kept_kind_count = 6;
int kept_kind(MemoryKind kind) noexcept;

// Whether memory of this kind and placement means the same to its next owner. It does not where the place depends on
// the thread that touches it first (local) or is promised for each allocation (strict). Where pages have moved since is
// no part of that (unbound, managed): the next owner's uses move them again.
bool may_be_kept(MemoryKind kind, const HostPlacement& placement) noexcept;
bool same_placement(const HostPlacement& one, const HostPlacement& other) noexcept;

// Size classes: steps of 512 bytes up to 4 KiB, above four steps for each power of two. A class ends where the next
// begins; bytes > 0.
namespace size_steps {
constexpr std::size_t bytes = 512;
constexpr int bits = 12;  // of the largest size in steps
constexpr int classes = (1 << bits) / static_cast<int>(bytes);
}  // namespace size_steps
constexpr int size_class_count = size_steps::classes + 4 * (46 - size_steps::bits) + 1;
constexpr int size_class(std::size_t bytes) noexcept {
    if (bytes == 0) return 0;
    const std::size_t below = bytes - 1;  // a power of two is the largest of its class
    const int bits = static_cast<int>(std::bit_width(below)) - 1;
    if (bits < size_steps::bits) return static_cast<int>(below / size_steps::bytes);
    const int step = static_cast<int>((below >> (bits - 2)) & 3);
    return std::min(size_steps::classes + 4 * (bits - size_steps::bits) + step, size_class_count - 1);
}
std::size_t largest_of_class(int size_class) noexcept;
// Whether a kept piece serves this request: it is large enough, and of the request's class or of the next one. At most
// a third of it is then unused, or 1 023 bytes where that is more.
constexpr bool serves(std::size_t piece_bytes, std::size_t requested_bytes) noexcept {
    return piece_bytes >= requested_bytes && size_class(piece_bytes) - size_class(requested_bytes) <= 1;
}

// How a piece was released.
struct Released {
    bool made_for_it = false;   // allocated as memory that may be kept, and not excluded since
    bool in_stream = false;     // behind the work of a stream, which may not have ended
    bool device_usable = true;  // neither lost nor of a forked parent, and not in a host function
    std::size_t bytes = 0;
};
enum class Keeping : std::uint8_t { keep, free_not_made_for_it, free_in_stream, free_unusable, free_too_large };
// What happens with it where `limit_bytes` may be kept; 0 keeps nothing. Every free waits in the driver as before, so
// memory that something may still use is never kept.
Keeping keeping(const Released& piece, std::uint64_t limit_bytes) noexcept;

// An order of giving back: what was released first goes first. Numbers of releases.
constexpr bool goes_before(std::uint64_t one, std::uint64_t other) noexcept {
    return one < other;
}

// How much a device keeps. The option decides; without one, the environment (digits; bytes); without that, 256 MiB or a
// sixteenth of the host's memory, whichever is less. nullopt: the environment does not state a number.
std::optional<std::uint64_t> cache_limit(std::optional<std::uint64_t> option, std::string_view environment,
                                         std::uint64_t host_total_bytes) noexcept;

}  // namespace isthmus::rules
