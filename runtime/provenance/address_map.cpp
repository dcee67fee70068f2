// SPDX-License-Identifier: Apache-2.0
// AddressMap: slots that hold the allocations, the tree that leads to them, and a lock that admits one writer at a
// time.
#include "address_map.hpp"

#include "address_tree.hpp"
#include "composed.hpp"
#include "provenance_errors.hpp"

#include <mutex>
#include <new>
#include <string>

namespace isthmus::provenance {
namespace {

using namespace nodes;

void construct_slot(void* block, std::size_t) {
    new (block) Slot;
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

    Budget budget;
    Tree tree{budget};
    BlockPool slots{budget, sizeof(Slot), construct_slot};
    std::atomic<std::size_t> live{0};
    mutable std::mutex mutex;  // held for all writing
};

AddressMap::AddressMap(std::size_t max_bytes) : state_(std::make_unique<State>(max_bytes)) {}
AddressMap::~AddressMap() = default;

Result<void> AddressMap::insert(const Record& record) {
    constexpr std::uint64_t end = std::uint64_t{1} << address_bits;
    if (record.bytes == 0 || record.id == 0 || record.base >= end || record.bytes > end - record.base) {
        return make_error<errors::record_is_no_allocation>(text(record.base, record.bytes));
    }
    const Range range{record.base, record.base + (record.bytes - 1)};
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
    if (!state.tree.add(slot, range)) {
        state.slots.give(&slot);
        return make_error<errors::address_map_is_full>();
    }
    slot.turn();  // alive
    state.live.store(state.live.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return {};
}

bool AddressMap::erase(std::uint64_t base, std::uint64_t id) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    Slot& slot = const_cast<Slot&>(state.tree.arrive(base));
    Record found;
    if (!slot.read(base, found) || found.base != base || found.id != id) return false;
    slot.turn();  // dead
    state.tree.remove(slot, {found.base, found.base + (found.bytes - 1)});
    state.slots.give(&slot);
    state.live.store(state.live.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return true;
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
    return state_->live.load(std::memory_order_relaxed);
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
