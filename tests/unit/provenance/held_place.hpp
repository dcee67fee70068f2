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

}  // namespace isthmus::provenance
