// SPDX-License-Identifier: Apache-2.0
// PieceCache: shelves by kind and size class.
#include "piece_cache.hpp"

#include <algorithm>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define ISTHMUS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ISTHMUS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ISTHMUS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// A piece is searched for among so many that were released last in its class.
constexpr std::size_t most_looks = 8;

void* host_of(const Piece& piece) noexcept {
    return piece.host_part ? piece.host_part->pages.data() : piece.allocation.host;
}

std::uint64_t device_of(const Piece& piece) noexcept {
    return piece.host_part ? piece.block.device : piece.allocation.device;
}

bool fits(const Piece& piece, const HostPlacement& placement, std::size_t bytes, std::size_t alignment) noexcept {
    if (!rules::serves(piece.bytes(), bytes)) return false;
    if (!piece.host_part) return true;
    return rules::same_placement(piece.host_part->asked, placement) &&
           reinterpret_cast<std::uintptr_t>(piece.host_part->pages.data()) % alignment == 0;
}

}  // namespace

std::optional<Piece> PieceCache::take(MemoryKind kind, const HostPlacement& placement, std::size_t bytes,
                                      std::size_t alignment) {
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0 || !keeps_anything()) return std::nullopt;
    std::optional<Piece> found;
    {
        const std::lock_guard lock(mutex_);
        std::vector<Shelf>& shelves = shelves_[static_cast<std::size_t>(of_kind)];
        const int first = rules::size_class(bytes);
        for (int at = first; !shelves.empty() && !found && at <= first + 1 && at < rules::size_class_count; ++at) {
            found = take_from(shelves[static_cast<std::size_t>(at)], placement, bytes, alignment);
        }
        ++(found ? taken_ : missed_);
    }
    if (found) open(*found, bytes);
    return found;
}

std::optional<Piece> PieceCache::take_from(Shelf& shelf, const HostPlacement& placement, std::size_t bytes,
                                           std::size_t alignment) {
    const std::size_t last = shelf.size() - std::min(shelf.size(), most_looks);
    for (std::size_t at = shelf.size(); at > last; --at) {
        if (fits(shelf[at - 1].piece, placement, bytes, alignment)) return take_at(shelf, at - 1);
    }
    return std::nullopt;
}

Piece PieceCache::take_at(Shelf& shelf, std::size_t at) {
    Piece piece = std::move(shelf[at].piece);
    shelf.erase(shelf.begin() + static_cast<std::ptrdiff_t>(at));
    bytes_ -= piece.bytes();
    --pieces_;
    remove(of_device_, device_of(piece));
    if (void* const host = host_of(piece)) remove(of_host_, reinterpret_cast<std::uintptr_t>(host));
    return piece;
}

std::vector<Piece> PieceCache::keep(Piece& piece) {
    std::vector<Piece> out;
    close(piece);
    const std::lock_guard lock(mutex_);
    const MemoryKind kind = !piece.host_part              ? piece.allocation.kind
                            : piece.host_part->registered ? MemoryKind::registered
                                                          : MemoryKind::host;
    std::vector<Shelf>& shelves = shelves_[static_cast<std::size_t>(rules::kept_kind(kind))];
    if (shelves.empty()) shelves.resize(rules::size_class_count);
    take_oldest_until(limit_bytes_ - piece.bytes(), out);
    bytes_ += piece.bytes();
    ++pieces_;
    add(of_device_, device_of(piece), piece.bytes());
    if (void* const host = host_of(piece)) add(of_host_, reinterpret_cast<std::uintptr_t>(host), piece.bytes());
    shelves[static_cast<std::size_t>(rules::size_class(piece.bytes()))].push_back(
        {std::exchange(piece, {}), ++releases_});
    return out;
}

std::vector<Piece> PieceCache::take_out(std::uint64_t keep_bytes) {
    std::vector<Piece> out;
    const std::lock_guard lock(mutex_);
    take_oldest_until(keep_bytes, out);
    return out;
}

void PieceCache::take_oldest_until(std::uint64_t keep_bytes, std::vector<Piece>& out) {
    while (bytes_ > keep_bytes) {
        Shelf* oldest = nullptr;
        for (std::vector<Shelf>& shelves : shelves_) {
            for (Shelf& shelf : shelves) {
                if (shelf.empty()) continue;
                const bool first = oldest == nullptr || rules::goes_before(shelf[0].release, (*oldest)[0].release);
                if (first) oldest = &shelf;
            }
        }
        out.push_back(take_at(*oldest, 0));
        open(out.back(), out.back().bytes());  // the driver and the system get it as they gave it
    }
}

std::size_t PieceCache::count_up_to(const Ranges& ranges, std::uint64_t address) noexcept {
    const auto behind = std::upper_bound(ranges.begin(), ranges.end(), address,
                                         [](std::uint64_t at, const Range& range) { return at < range.begin; });
    return static_cast<std::size_t>(behind - ranges.begin());
}

void PieceCache::add(Ranges& ranges, std::uint64_t begin, std::size_t bytes) {
    ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(count_up_to(ranges, begin)), {begin, bytes});
}

void PieceCache::remove(Ranges& ranges, std::uint64_t begin) {
    const std::size_t count = count_up_to(ranges, begin);
    if (count == 0 || ranges[count - 1].begin != begin) return;
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(count) - 1);
}

bool PieceCache::contain(const Ranges& ranges, std::uint64_t address) noexcept {
    const std::size_t count = count_up_to(ranges, address);
    return count > 0 && address - ranges[count - 1].begin < ranges[count - 1].bytes;
}

bool PieceCache::holds(std::uint64_t address) const {
    const std::lock_guard lock(mutex_);
    return contain(of_device_, address) || contain(of_host_, address);
}

PieceCache::Usage PieceCache::usage() const {
    const std::lock_guard lock(mutex_);
    return {bytes_, pieces_, taken_, missed_};
}

void PieceCache::close(const Piece& piece) const {
    const bool of_driver = !piece.host_part || piece.host_part->registered;
    if (of_driver) memory_.lend(device_of(piece), 0);
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) __asan_poison_memory_region(host, piece.bytes());
#endif
}

void PieceCache::open(const Piece& piece, std::size_t bytes) const {
    const bool of_driver = !piece.host_part || piece.host_part->registered;
    if (of_driver) memory_.lend(device_of(piece), bytes);
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) __asan_unpoison_memory_region(host, bytes);
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
