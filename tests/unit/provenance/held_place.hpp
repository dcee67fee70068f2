// SPDX-License-Identifier: Apache-2.0
// HeldPlace: a place in the address map with its owner's word, as an entry of the ledger has both.
#pragma once

#include <address_map.hpp>

#include <atomic>
#include <cstdint>

namespace isthmus::provenance {

struct HeldPlace {
    explicit HeldPlace(AddressMap& of) : map(of) {}
    HeldPlace(AddressMap& of, const Record& record, std::uint64_t extent_bytes) : map(of) {
        begin(record, extent_bytes);
    }

    void begin(const Record& record, std::uint64_t extent_bytes) {
        word.store(record.id, std::memory_order_release);
        place = map.place(record, extent_bytes, word).value();
    }
    void park() {
        word.store(0, std::memory_order_release);
        map.note_parked();
    }
    bool revive(const Record& record) {
        if (!map.revive(place, record)) return false;
        word.store(record.id, std::memory_order_release);
        return true;
    }
    void discard() { map.discard(place); }

    AddressMap& map;
    HolderWord word{0};  // outlives the readers of the map
    Place place;
};

// Divided memory with an owner for one of its places, as the ledger has slabs.
struct OwnedPlace {
    static constexpr std::size_t place_bytes = 256, places = 16;
    static constexpr std::size_t bytes = place_bytes * places;

    OwnedPlace(AddressMap& of, std::uint64_t first) : map(of), base(first) {
        divided = map.divide(memory, base, base, place_bytes, places);
    }
    // `record.base`: in the memory.
    void own(const Record& record) {
        tell(record);
        map.own(memory, at(record.base), &owner);
        owner.word.store(record.id, std::memory_order_release);
    }
    void tell(const Record& record) {
        owner.first.store(record.base, std::memory_order_release);
        owner.facts.store(PlaceOwner::packed(record.device, record.kind, record.bytes), std::memory_order_release);
    }
    void park() { owner.word.fetch_or(PlaceOwner::nobody, std::memory_order_acq_rel); }
    void revive(const Record& record) {
        tell(record);
        owner.word.store(record.id, std::memory_order_release);
    }
    void leave() { map.own(memory, at(owner.first.load(std::memory_order_relaxed)), nullptr); }
    void join() { map.join(memory); }
    std::size_t at(std::uint64_t address) const { return static_cast<std::size_t>(address - base) / place_bytes; }

    AddressMap& map;
    const std::uint64_t base;
    PlaceOwner owner;  // outlives the readers of the map
    Divided memory;
    Result<void> divided;
};

}  // namespace isthmus::provenance
