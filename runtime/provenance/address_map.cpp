// SPDX-License-Identifier: Apache-2.0
// AddressMap: slots that hold the allocations, the tree that leads to them, and a lock that admits one writer at a
// time.
#include "address_map.hpp"

#include "address_tree.hpp"
#include "composed.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>

namespace isthmus::provenance {
namespace {

using namespace nodes;

void construct_slot(void* block, std::size_t) {
    new (block) Slot;
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
        if (slot.holder.load(std::memory_order_relaxed) == &slot.id) return give_up(slot);
        slot.holder.store(&nobody, std::memory_order_release);
        disconnect(slot);
    }

    Budget budget;
    Tree tree{budget};
    BlockPool slots{budget, sizeof(Slot), construct_slot};
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
    if (!slot.read(base, found) || found.base != base || found.id != id) return false;
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
    return met != nullptr && !met->alive();
}

bool AddressMap::is_in_use(std::uint64_t base, std::uint64_t bytes) const {
    if (!is_range(base, bytes)) return false;
    const std::uint64_t last = base + (bytes - 1);
    bool in_use = false;
    const std::lock_guard lock(state_->mutex);
    state_->slots.for_each_block([&](const void* block) {
        const Slot& slot = *static_cast<const Slot*>(block);
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
    state_->slots.for_each_block(
        [&](const void* block) { live += static_cast<const Slot*>(block)->alive() ? 1u : 0u; });
    return live;
}

std::size_t AddressMap::memory_bytes() const noexcept {
    return sizeof(State) + state_->budget.used.load(std::memory_order_relaxed);
}

void AddressMap::for_each(const std::function<void(const Record&)>& visit) const {
    const std::lock_guard lock(state_->mutex);
    state_->slots.for_each_block([&](const void* block) {
        const Slot& slot = *static_cast<const Slot*>(block);
        if (Record record; slot.alive() && slot.read(slot.first(), record)) visit(record);
    });
}

}  // namespace isthmus::provenance
