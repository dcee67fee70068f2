// SPDX-License-Identifier: Apache-2.0
// The rules of the memory cache.
#include "cache_rules.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace isthmus::rules {
namespace {

constexpr std::size_t step_bytes = 512;
constexpr std::size_t small_bytes = 4096;
constexpr int small_classes = small_bytes / step_bytes;
constexpr int small_bits = 12;  // of small_bytes

}  // namespace

int kept_kind(MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::device: return 0;
        case MemoryKind::pinned: return 1;
        case MemoryKind::write_combined: return 2;
        case MemoryKind::managed: return 3;
        case MemoryKind::registered: return 4;
        case MemoryKind::host: return 5;
        default: return -1;
    }
}

bool may_be_kept(MemoryKind kind, const HostPlacement& placement) noexcept {
    if (kept_kind(kind) < 0) return false;
    if (kind != MemoryKind::host && kind != MemoryKind::registered) return true;  // the driver places it
    if (placement.strict || placement.locality == Locality::local) return false;
    // Other placed host memory is cut out of slabs.
    return kind == MemoryKind::registered || placement.locality == Locality::anywhere ||
           placement.locality == Locality::unbound;
}

bool same_placement(const HostPlacement& one, const HostPlacement& other) noexcept {
    return one.locality == other.locality && one.node == other.node && one.strict == other.strict &&
           one.page_size == other.page_size && one.prefault == other.prefault && one.lock == other.lock;
}

int size_class(std::size_t bytes) noexcept {
    if (bytes <= small_bytes) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / step_bytes);
    const std::size_t below = bytes - 1;  // a power of two is the largest of its class
    const int bits = static_cast<int>(std::bit_width(below)) - 1;
    const int step = static_cast<int>((below >> (bits - 2)) & 3);
    return std::min(small_classes + 4 * (bits - small_bits) + step, size_class_count - 1);
}

std::size_t largest_of_class(int size_class) noexcept {
    if (size_class < small_classes) return step_bytes * static_cast<std::size_t>(size_class + 1);
    const int bits = small_bits + (size_class - small_classes) / 4;
    const int step = (size_class - small_classes) % 4;
    return static_cast<std::size_t>(5 + step) << (bits - 2);
}

bool serves(std::size_t piece_bytes, std::size_t requested_bytes) noexcept {
    return piece_bytes >= requested_bytes && size_class(piece_bytes) - size_class(requested_bytes) <= 1;
}

Keeping keeping(const Released& piece, std::uint64_t limit_bytes) noexcept {
    if (!piece.made_for_it || piece.bytes == 0) return Keeping::free_not_made_for_it;
    if (piece.in_stream) return Keeping::free_in_stream;
    if (!piece.device_usable) return Keeping::free_unusable;
    return piece.bytes > limit_bytes ? Keeping::free_too_large : Keeping::keep;
}

std::optional<std::uint64_t> cache_limit(std::optional<std::uint64_t> option, std::string_view environment,
                                         std::uint64_t host_total_bytes) noexcept {
    if (option) return option;
    if (environment.empty()) return std::min(std::uint64_t{256} << 20, host_total_bytes / 16);
    std::uint64_t bytes = 0;
    const char* const end = environment.data() + environment.size();
    const auto [rest, error] = std::from_chars(environment.data(), end, bytes);
    if (error != std::errc() || rest != end) return std::nullopt;
    return bytes;
}

}  // namespace isthmus::rules
