// SPDX-License-Identifier: Apache-2.0
// SmallSlabs: free places as bits of their slab.
#include "small_slabs.hpp"

#include "cache_rules.hpp"
#include "process.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t none = ~std::size_t{0};
constexpr std::size_t word_bits = 64;

bool same(const SlabSort& one, const SlabSort& other) noexcept {
    return one.kind == other.kind && one.place_bytes == other.place_bytes &&
           rules::same_placement(one.placement, other.placement);
}

}  // namespace

struct SmallSlabs::Slab : PieceSlab {
    Slab(Set& of, const SlabSort& sort, Piece piece) : set(of), whole(std::move(piece)) {
        kind = sort.kind;
        asked = sort.placement;
        place_bytes = sort.place_bytes;
        const HostPart* const part = whole.host_part();
        const platform::Allocation allocation = whole.allocation();
        host = static_cast<std::byte*>(part != nullptr ? whole.block.host : allocation.host);
        device = part != nullptr ? whole.block.device : allocation.device;
        pages = part != nullptr ? &part->pages : nullptr;
        places = std::min(whole.bytes() / sort.place_bytes, rules::most_places);
        for (std::size_t place = 0; place < places; ++place) set_free(place);
    }
    void set_free(std::size_t place) noexcept { free[place / word_bits] |= std::uint64_t{1} << place % word_bits; }
    bool has_room() const noexcept {
        return std::any_of(free.begin(), free.end(), [](std::uint64_t word) { return word != 0; });
    }
    // Expects has_room(). The first ones first, so that the last ones stay together.
    std::size_t take() noexcept {
        const auto word = std::find_if(free.begin(), free.end(), [](std::uint64_t bits) { return bits != 0; });
        const auto bit = static_cast<std::size_t>(std::countr_zero(*word));
        *word &= *word - 1;
        return static_cast<std::size_t>(word - free.begin()) * word_bits + bit;
    }

    Set& set;
    Piece whole;
    std::size_t cut = 0;              // places that are in use
    std::size_t at = 0;               // in Set::slabs
    std::size_t at_with_room = none;  // in Set::with_room
    std::array<std::uint64_t, rules::most_places / word_bits> free{};
};

struct SmallSlabs::Set {
    SlabSort sort;
    std::uint64_t live_bytes = 0;
    std::vector<std::unique_ptr<Slab>> slabs;
    std::vector<Slab*> with_room;
};

SmallSlabs::SmallSlabs() = default;

SmallSlabs::~SmallSlabs() {
    for (const std::unique_ptr<Set>& set : sets_) {
        for (const std::unique_ptr<Slab>& slab : set->slabs) {
            process::keep_until_exit(std::make_shared<Piece>(std::move(slab->whole)));
        }
    }
}

SmallSlabs::Set* SmallSlabs::find(const SlabSort& sort) const {
    const auto found = std::find_if(sets_.begin(), sets_.end(), [&](const auto& set) { return same(set->sort, sort); });
    return found != sets_.end() ? found->get() : nullptr;
}

void SmallSlabs::leave_with_room(Slab& slab) {
    std::vector<Slab*>& list = slab.set.with_room;
    list.back()->at_with_room = slab.at_with_room;
    std::swap(list[slab.at_with_room], list.back());
    list.pop_back();
    slab.at_with_room = none;
}

void SmallSlabs::take_place(Slab& slab, Piece& piece) {
    Set& set = slab.set;
    const std::size_t bytes = set.sort.place_bytes;
    const std::size_t offset = slab.take() * bytes;
    if (!slab.has_room()) leave_with_room(slab);
    ++slab.cut;
    set.live_bytes += bytes;
    idle_.fetch_sub(bytes, std::memory_order_relaxed);
    piece.block.host = slab.host != nullptr ? slab.host + offset : nullptr;
    piece.block.device = slab.device + offset;
    piece.memory.be_place_of(slab);
}

bool SmallSlabs::cut(const SlabSort& sort, Piece& piece) {
    const std::lock_guard lock(mutex_);
    Set* const set = find(sort);
    if (set == nullptr || set->with_room.empty()) return false;
    take_place(*set->with_room.back(), piece);
    return true;
}

std::size_t SmallSlabs::next_bytes(const SlabSort& sort, std::size_t page_bytes) const {
    const std::lock_guard lock(mutex_);
    const Set* const set = find(sort);
    return rules::slab_bytes(set != nullptr ? set->live_bytes : 0, page_bytes);
}

void SmallSlabs::add(const SlabSort& sort, Piece whole, Piece& piece) {
    const std::lock_guard lock(mutex_);
    Set* set = find(sort);
    if (set == nullptr) {
        sets_.push_back(std::make_unique<Set>());
        set = sets_.back().get();
        set->sort = sort;
    }
    set->slabs.push_back(std::make_unique<Slab>(*set, sort, std::move(whole)));
    set->with_room.reserve(set->slabs.capacity());  // a place that comes back takes nothing from the heap
    Slab& slab = *set->slabs.back();
    slab.at = set->slabs.size() - 1;
    slab.at_with_room = set->with_room.size();
    set->with_room.push_back(&slab);
    bytes_.fetch_add(slab.whole.bytes(), std::memory_order_relaxed);
    idle_.fetch_add(slab.whole.bytes(), std::memory_order_relaxed);
    take_place(slab, piece);
}

Piece SmallSlabs::give_back(const Piece& piece) {
    const std::lock_guard lock(mutex_);
    auto& slab = static_cast<Slab&>(*piece.slab());
    Set& set = slab.set;
    const std::size_t bytes = set.sort.place_bytes;
    --slab.cut;
    set.live_bytes -= bytes;
    idle_.fetch_add(bytes, std::memory_order_relaxed);
    if (slab.cut != 0) {
        if (!piece.unused) return {};
        slab.set_free(static_cast<std::size_t>(piece.block.device - slab.device) / bytes);
        if (slab.at_with_room == none) {
            slab.at_with_room = set.with_room.size();
            set.with_room.push_back(&slab);
        }
        return {};
    }
    if (slab.at_with_room != none) leave_with_room(slab);
    Piece whole = std::move(slab.whole);
    bytes_.fetch_sub(whole.bytes(), std::memory_order_relaxed);
    idle_.fetch_sub(whole.bytes(), std::memory_order_relaxed);
    const std::size_t at = slab.at;
    if (at + 1 != set.slabs.size()) {
        std::swap(set.slabs[at], set.slabs.back());
        set.slabs[at]->at = at;
    }
    set.slabs.pop_back();
    return whole;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
