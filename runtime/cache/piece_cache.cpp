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

#ifdef ISTHMUS_ADDRESS_SANITIZER
void* host_of(const Piece& piece) noexcept {
    return piece.host_part ? piece.block.host : piece.allocation.host;
}
#endif

std::uint64_t device_of(const Piece& piece) noexcept {
    return piece.host_part ? piece.block.device : piece.allocation.device;
}

bool fits(const Piece& piece, const HostPlacement& placement, std::size_t bytes, std::size_t alignment) noexcept {
    if (!rules::serves(piece.bytes(), bytes)) return false;
    if (!piece.host_part) return true;
    return rules::same_placement(piece.host_part->asked, placement) &&
           reinterpret_cast<std::uintptr_t>(piece.block.host) % alignment == 0;
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
        for (int at = first; !shelves.empty() && found == nullptr && at <= first + rules::classes_above; ++at) {
            if (at == rules::size_class_count) break;
            found = take_from(shelves[static_cast<std::size_t>(at)], placement, bytes, alignment);
        }
        if (found != nullptr) count(*found, bytes);
        ++(found != nullptr ? taken_ : missed_);
    }
    if (found != nullptr) open(*found, bytes);
    return found;
}

Piece* PieceCache::take_from(Shelf& shelf, const HostPlacement& placement, std::size_t bytes, std::size_t alignment) {
    const std::size_t last = shelf.size() - std::min(shelf.size(), most_looks);
    for (std::size_t at = shelf.size(); at > last; --at) {
        const Piece& piece = *shelf[at - 1].piece;
        if (!fits(piece, placement, bytes, alignment)) continue;
        if (rules::may_leave_unused(handed_out_, piece.bytes(), bytes)) return take_at(shelf, at - 1);
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
    uncount(piece);
    bytes_ += piece.bytes();
    ++pieces_;
    shelves[static_cast<std::size_t>(rules::size_class(piece.bytes()))].push_back({&piece, ++releases_});
    take_out_until(rules::most_kept(handed_out_, limit_bytes_), out);
    return out;
}

std::vector<Piece*> PieceCache::make_way(std::size_t bytes) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    rules::HandedOut then = handed_out_;
    then.bytes += bytes;
    then.asked_bytes += bytes;
    then.peak_bytes = std::max(then.peak_bytes, then.asked_bytes);
    take_out_until(rules::most_kept(then, limit_bytes_), out);
    return out;
}

void PieceCache::handed_out(Piece& piece, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    count(piece, bytes);
}

void PieceCache::returned(Piece& piece) {
    if (piece.asked_bytes == 0) return;
    open(piece, piece.bytes());
    const std::lock_guard lock(mutex_);
    uncount(piece);
}

void PieceCache::count(Piece& piece, std::size_t bytes) noexcept {
    piece.asked_bytes = bytes;
    handed_out_.bytes += piece.bytes();
    handed_out_.asked_bytes += bytes;
    handed_out_.peak_bytes = std::max(handed_out_.peak_bytes, handed_out_.asked_bytes);
}

void PieceCache::uncount(Piece& piece) noexcept {
    if (piece.asked_bytes == 0) return;
    handed_out_.bytes -= piece.bytes();
    handed_out_.asked_bytes -= std::exchange(piece.asked_bytes, std::size_t{0});
}

std::vector<Piece*> PieceCache::take_out(std::uint64_t keep_bytes) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    handed_out_.peak_bytes = handed_out_.asked_bytes;
    take_out_until(keep_bytes, out);
    return out;
}

void PieceCache::take_out_until(std::uint64_t keep_bytes, std::vector<Piece*>& out) {
    while (bytes_ > keep_bytes) {
        Shelf* next = nullptr;
        rules::Waiting most;
        for (std::vector<Shelf>& shelves : shelves_) {
            for (Shelf& shelf : shelves) {
                if (shelf.empty()) continue;
                const rules::Waiting oldest{releases_ - shelf[0].release + 1, shelf[0].piece->bytes()};
                if (next != nullptr && !rules::goes_before(oldest, most)) continue;
                next = &shelf;
                most = oldest;
            }
        }
        out.push_back(take_at(*next, 0));
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
