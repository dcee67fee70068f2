// SPDX-License-Identifier: Apache-2.0
// PieceCache: shelves by kind and size class.
#include "piece_cache.hpp"

#include <algorithm>

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

#ifdef ISTHMUS_ADDRESS_SANITIZER
void* host_of(const Piece& piece) noexcept {
    return piece.host_part ? piece.host_part->pages.data() : piece.allocation.host;
}
#endif

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

Piece* PieceCache::take(MemoryKind kind, const HostPlacement& placement, std::size_t bytes, std::size_t alignment) {
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0 || !keeps_anything()) return nullptr;
    Piece* found = nullptr;
    {
        const std::lock_guard lock(mutex_);
        std::vector<Shelf>& shelves = shelves_[static_cast<std::size_t>(of_kind)];
        const int first = rules::size_class(bytes);
        for (int at = first; !shelves.empty() && found == nullptr && at <= first + 1 && at < rules::size_class_count;
             ++at) {
            found = take_from(shelves[static_cast<std::size_t>(at)], placement, bytes, alignment);
        }
        ++(found != nullptr ? taken_ : missed_);
    }
    if (found != nullptr) open(*found, bytes);
    return found;
}

Piece* PieceCache::take_from(Shelf& shelf, const HostPlacement& placement, std::size_t bytes, std::size_t alignment) {
    const std::size_t last = shelf.size() - std::min(shelf.size(), most_looks);
    for (std::size_t at = shelf.size(); at > last; --at) {
        if (fits(*shelf[at - 1].piece, placement, bytes, alignment)) return take_at(shelf, at - 1);
    }
    return nullptr;
}

Piece* PieceCache::take_at(Shelf& shelf, std::size_t at) {
    Piece* const piece = shelf[at].piece;
    shelf.erase(shelf.begin() + static_cast<std::ptrdiff_t>(at));
    bytes_ -= piece->bytes();
    --pieces_;
    return piece;
}

std::vector<Piece*> PieceCache::keep(Piece& piece) {
    std::vector<Piece*> out;
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
    shelves[static_cast<std::size_t>(rules::size_class(piece.bytes()))].push_back({&piece, ++releases_});
    return out;
}

std::vector<Piece*> PieceCache::take_out(std::uint64_t keep_bytes) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    take_oldest_until(keep_bytes, out);
    return out;
}

void PieceCache::take_oldest_until(std::uint64_t keep_bytes, std::vector<Piece*>& out) {
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
        open(*out.back(), out.back()->bytes());  // the driver and the system get it as they gave it
    }
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
