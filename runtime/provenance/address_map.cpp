// SPDX-License-Identifier: Apache-2.0
// AddressMap: slots that hold the allocations, the tree that leads to them, and a lock that admits one writer at a
// time.
#include "address_map.hpp"

#include "address_tree.hpp"
#include "composed.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace isthmus::provenance {
namespace {

using namespace nodes;

void construct_slot(void* block, std::size_t) {
    new (block) Slot;
}
void construct_table(void* block, std::size_t bytes) {
    auto* const table = new (block) PlaceTable;
    for (std::size_t at = 0; PlaceTable::bytes(at) < bytes; ++at) new (table->owners() + at) PlaceTable::Owner(nullptr);
}

// Tables for 1, 2, 4 … places.
constexpr std::size_t table_sizes = std::bit_width(Divided::most_places);
std::size_t table_size(std::size_t places) {
    return static_cast<std::size_t>(std::bit_width(places - 1));
}
template <std::size_t... size>
std::array<BlockPool, sizeof...(size)> make_tables(Budget& budget, std::index_sequence<size...>) {
    return {BlockPool(budget, PlaceTable::bytes(std::size_t{1} << size), construct_table)...};
}

// Calls visit(place, owner) for each place of this memory that has one.
template <class Visit>
void for_each_owner(const Slot& slot, Visit visit) {
    const PlaceTable& table = slot.table();
    const std::uint32_t places = PlaceTable::places(table.shape.load(std::memory_order_relaxed));
    for (std::uint32_t place = 0; place < places; ++place) {
        const PlaceOwner* const owner = table.owners()[place].load(std::memory_order_acquire);
        if (owner != nullptr && PlaceOwner::is_somebody(owner->word.load(std::memory_order_acquire))) {
            visit(place, *owner);
        }
    }
}

// Whether all of it lies within address_bits, and does not wrap round.
bool is_range(std::uint64_t base, std::uint64_t bytes) {
    constexpr std::uint64_t end = std::uint64_t{1} << AddressMap::address_bits;
    return bytes != 0 && base < end && bytes <= end - base;
}

std::string text(std::uint64_t base, std::uint64_t bytes) {
    std::string hex;
    for (std::uint64_t rest = base; rest != 0 || hex.empty(); rest >>= 4)
        hex.insert(0, 1, "0123456789abcdef"[rest & 15]);
    return composed("{} bytes at 0x{}", bytes, hex);
}
// Whether a place that has an owner meets this range.
bool owns_any(const Slot& slot, std::uint64_t base, std::uint64_t last) {
    const std::uint64_t bytes = PlaceTable::place_bytes(slot.table().shape.load(std::memory_order_relaxed));
    bool any = false;
    for_each_owner(slot, [&](std::uint32_t place, const PlaceOwner&) {
        const std::uint64_t first = slot.first() + place * bytes;
        any = any || (first <= last && base <= first + (bytes - 1));
    });
    return any;
}

}  // namespace

struct AddressMap::State {
    explicit State(std::size_t max_bytes) : budget{max_bytes} {}

    // Expects the mutex.
    void disconnect(Slot& slot) {
        if (slot.connected()) tree.remove(slot, {slot.first(), slot.last()});
        slot.extent.store(0, std::memory_order_relaxed);
    }
    void give_up(Slot& slot) {
        slot.turn();
        disconnect(slot);
        slots.give(&slot);
    }
    // What a word holds keeps its slot until the owner discards it: the owner may be about to fill it.
    void take_down(Slot& slot) {
        if (slot.divided()) {  // its places stay their owners', and none of them is found
            slot.turn();
            return disconnect(slot);
        }
        if (slot.holder.load(std::memory_order_relaxed) == &slot.id) return give_up(slot);
        slot.holder.store(&nobody, std::memory_order_release);
        disconnect(slot);
    }

    Budget budget;
    Tree tree{budget};
    BlockPool slots{budget, sizeof(Slot), construct_slot};
    std::array<BlockPool, table_sizes> tables = make_tables(budget, std::make_index_sequence<table_sizes>());
    std::atomic<bool> ever_parked{false};  // without it, no parked record need be searched for
    alignas(64) mutable std::mutex mutex;  // held while the tree changes; not on the line of the flag
};

AddressMap::AddressMap(std::size_t max_bytes) : state_(std::make_unique<State>(max_bytes)) {}
AddressMap::~AddressMap() = default;

Result<void> AddressMap::insert(const Record& record) {
    Result<Slot*> added = add(record, record.bytes, nullptr);
    return added ? Result<void>() : std::move(added).error();
}

Result<Place> AddressMap::place(const Record& record, std::uint64_t extent_bytes, const HolderWord& holder) {
    Result<Slot*> added = add(record, extent_bytes, &holder);
    if (!added) return std::move(added).error();
    Place made;
    made.slot_ = *added;
    return made;
}

Result<Slot*> AddressMap::add(const Record& record, std::uint64_t extent_bytes, const HolderWord* holder) {
    const std::uint64_t extent = std::max(record.bytes, extent_bytes);
    if (record.bytes == 0 || record.id == 0 || !is_range(record.base, extent)) {
        return make_error<errors::record_is_no_allocation>(text(record.base, record.bytes));
    }
    const Range range{record.base, record.base + (extent - 1)};
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    if (const Slot* met = state.tree.first_met(range); met != nullptr) {
        return make_error<errors::record_overlaps_another>(text(record.base, record.bytes),
                                                           text(met->first(), met->last() - met->first() + 1));
    }
    void* block = state.slots.take();
    if (block == nullptr) return make_error<errors::address_map_is_full>();
    Slot& slot = *static_cast<Slot*>(block);
    slot.fill(record);
    slot.holder.store(holder != nullptr ? holder : &slot.id, std::memory_order_release);
    slot.extent.store(extent, std::memory_order_relaxed);
    if (!state.tree.add(slot, range)) {
        slot.extent.store(0, std::memory_order_relaxed);
        state.slots.give(&slot);
        return make_error<errors::address_map_is_full>();
    }
    slot.turn();
    return &slot;
}

bool AddressMap::erase(std::uint64_t base, std::uint64_t id) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    Slot& slot = const_cast<Slot&>(state.tree.arrive(base));
    Record found;
    if (!slot.read(base, found) || found.base != base || found.id != id || slot.divided()) return false;
    state.take_down(slot);
    return true;
}

// Written once, so that later ones only read the line.
void AddressMap::note_parked() noexcept {
    if (!state_->ever_parked.load(std::memory_order_relaxed))
        state_->ever_parked.store(true, std::memory_order_relaxed);
}

bool AddressMap::revive(const Place& place, const Record& record) noexcept {
    if (!place || place.slot_->first() != record.base || record.bytes == 0 ||
        record.bytes > place.slot_->extent.load(std::memory_order_relaxed)) {
        return false;
    }
    place.slot_->fill_again(record);
    return true;
}

void AddressMap::discard(Place& place) noexcept {
    if (!place) return;
    const std::lock_guard lock(state_->mutex);
    state_->give_up(*place.slot_);
    place = {};
}

Result<void> AddressMap::divide(Divided& divided, std::uint64_t base, std::uint64_t first_base, std::size_t place_bytes,
                                std::size_t places) {
    const std::uint64_t extent = std::uint64_t{place_bytes} * places;
    if (!is_range(base, extent) || places > Divided::most_places || place_bytes > PlaceOwner::most_bytes) {
        return make_error<errors::record_is_no_allocation>(text(base, extent));
    }
    const Range range{base, base + (extent - 1)};
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    Place& place = base == first_base ? divided.at_ : divided.beside_;
    if (place && place.slot_->connected()) return {};
    if (const Slot* met = state.tree.first_met(range); met != nullptr) {
        return make_error<errors::record_overlaps_another>(text(base, extent),
                                                           text(met->first(), met->last() - met->first() + 1));
    }
    if (divided.table_ == nullptr) {
        divided.table_ = static_cast<PlaceTable*>(state.tables[table_size(places)].take());
        if (divided.table_ == nullptr) return make_error<errors::address_map_is_full>();
        divided.table_->shape.store(PlaceTable::packed(place_bytes, places), std::memory_order_release);
    }
    auto* const slot = place ? place.slot_ : static_cast<Slot*>(state.slots.take());
    if (slot == nullptr) return make_error<errors::address_map_is_full>();
    slot->fill_divided(base, first_base, *divided.table_);
    slot->extent.store(extent, std::memory_order_relaxed);
    if (!state.tree.add(*slot, range)) {
        slot->extent.store(0, std::memory_order_relaxed);
        if (!place) state.slots.give(slot);
        return make_error<errors::address_map_is_full>();
    }
    slot->turn();
    place.slot_ = slot;
    state.ever_parked.store(true, std::memory_order_relaxed);  // places that nobody has
    return {};
}

void AddressMap::own(const Divided& divided, std::size_t place, const PlaceOwner* owner) noexcept {
    divided.table_->owners()[place].store(owner, std::memory_order_release);
}

bool AddressMap::is_whole(const Divided& divided) const noexcept {
    const auto there = [](const Place& place) { return place.slot_->connected(); };
    return divided.at_ && there(divided.at_) && (!divided.beside_ || there(divided.beside_));
}

void AddressMap::join(Divided& divided) noexcept {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    for (Place* const place : {&divided.at_, &divided.beside_}) {
        if (!*place) continue;
        if (place->slot_->filled()) place->slot_->turn();
        state.disconnect(*place->slot_);
        state.slots.give(place->slot_);
    }
    if (PlaceTable* const table = divided.table_) {
        const std::uint32_t places = PlaceTable::places(table->shape.load(std::memory_order_relaxed));
        for (std::uint32_t at = 0; at < places; ++at) table->owners()[at].store(nullptr, std::memory_order_release);
        state.tables[table_size(places)].give(table);
    }
    divided = {};
}

std::size_t AddressMap::make_way(std::uint64_t base, std::uint64_t bytes) {
    if (!is_range(base, bytes)) return 0;
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    std::size_t gone = 0;
    for (; const Slot* met = state.tree.first_met({base, base + (bytes - 1)}); ++gone) {
        state.take_down(const_cast<Slot&>(*met));
    }
    return gone;
}

bool AddressMap::is_parked(std::uint64_t address) const {
    if (!is_range(address, 1) || !state_->ever_parked.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(state_->mutex);
    const Slot* const met = state_->tree.first_met({address, address});
    if (met == nullptr || !met->divided()) return met != nullptr && !met->alive();
    const PlaceTable& table = met->table();
    const auto place = (address - met->first()) / PlaceTable::place_bytes(table.shape.load(std::memory_order_relaxed));
    const PlaceOwner* const owner = table.owners()[place].load(std::memory_order_acquire);
    return owner == nullptr || !PlaceOwner::is_somebody(owner->word.load(std::memory_order_acquire));
}

bool AddressMap::is_in_use(std::uint64_t base, std::uint64_t bytes) const {
    if (!is_range(base, bytes)) return false;
    const std::uint64_t last = base + (bytes - 1);
    bool in_use = false;
    const std::lock_guard lock(state_->mutex);
    state_->slots.for_each_block([&](const void* block) {
        const Slot& slot = *static_cast<const Slot*>(block);
        if (slot.divided()) {
            if (slot.connected() && slot.first() <= last && base <= slot.last()) {
                in_use = in_use || owns_any(slot, base, last);
            }
            return;
        }
        Record record;
        in_use = in_use || (slot.alive() && slot.read(slot.first(), record) &&
                            (record.flags & record_flags::foreign) == 0 && slot.first() <= last && base <= slot.last());
    });
    return in_use;
}

const Tree& AddressMap::tree() const noexcept {
    return state_->tree;
}

Record AddressMap::find(std::uint64_t address) const noexcept {
    return state_->tree.find(address);
}

bool AddressMap::covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const Record found = find(address);
    return found && bytes <= found.bytes - (address - found.base);
}

std::size_t AddressMap::size() const noexcept {
    std::size_t live = 0;
    const std::lock_guard lock(state_->mutex);
    state_->slots.for_each_block([&](const void* block) {
        const Slot& slot = *static_cast<const Slot*>(block);
        if (!slot.divided()) {
            live += slot.alive() ? 1u : 0u;
        } else if (slot.connected()) {
            for_each_owner(slot, [&](std::uint32_t, const PlaceOwner&) { ++live; });
        }
    });
    return live;
}

std::size_t AddressMap::memory_bytes() const noexcept {
    return sizeof(State) + state_->budget.used.load(std::memory_order_relaxed);
}

void AddressMap::for_each(const std::function<void(const Record&)>& visit) const {
    const std::lock_guard lock(state_->mutex);
    state_->slots.for_each_block([&](const void* block) {
        const Slot& slot = *static_cast<const Slot*>(block);
        if (!slot.divided()) {
            if (Record record; slot.alive() && slot.read(slot.first(), record)) visit(record);
        } else if (slot.connected()) {
            const std::uint64_t bytes = PlaceTable::place_bytes(slot.table().shape.load(std::memory_order_relaxed));
            for_each_owner(slot, [&](std::uint32_t place, const PlaceOwner&) {
                if (Record record; slot.read(slot.first() + place * bytes, record)) visit(record);
            });
        }
    });
}

}  // namespace isthmus::provenance
