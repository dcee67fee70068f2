// SPDX-License-Identifier: Apache-2.0
// AddressMap: address → live allocation, for any interior address. Lookups take no lock.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

namespace isthmus::provenance {

namespace nodes {
struct PlaceTable;
struct Slot;
class Tree;
}  // namespace nodes

// Data of one live allocation: a value, copied out to readers.
struct Record {
    std::uint64_t base = 0;  // first address
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;      // identity: never reused, never 0 for a live allocation
    std::uint32_t device = 0;  // Device::index() of the owner
    MemoryKind kind = MemoryKind::unknown;
    std::uint8_t flags = 0;  // bits of record_flags
    explicit operator bool() const noexcept { return id != 0; }
};

namespace record_flags {
inline constexpr std::uint8_t foreign = 1;         // memory of other code: its kind is the driver's answer, asked once
inline constexpr std::uint8_t device_address = 2;  // a second range of a host allocation: its device address (K23)
}  // namespace record_flags

// The word of an allocation's owner: it has the allocation while this is the identity. It outlives the map's readers.
using HolderWord = std::atomic<std::uint64_t>;

// Where a record of an allocation stands that a word holds, so that it can be revived without a search. The place is
// its owner's until discard(), also if the record leaves the map before.
class Place {
public:
    explicit operator bool() const noexcept { return slot_ != nullptr; }

private:
    friend class AddressMap;
    nodes::Slot* slot_ = nullptr;
};

// What readers see of the owner of a place in memory that is divided. It outlives the map's readers. The word is an
// identity while the place has an owner, and otherwise 0 or has its highest bit. The rest is written while it is none,
// each by a release: a reader who finds one identity before and behind the rest has what belongs to that.
struct PlaceOwner {
    HolderWord word{0};
    std::atomic<std::uint64_t> first{0};  // its first address, in the first range of the memory
    std::atomic<std::uint64_t> facts{0};  // packed

    static constexpr std::uint64_t nobody = std::uint64_t{1} << 63;  // in the word
    static constexpr bool is_somebody(std::uint64_t word) noexcept { return word != 0 && (word & nobody) == 0; }
    static constexpr std::uint64_t packed(std::uint32_t device, MemoryKind kind, std::uint64_t bytes) noexcept {
        return device | std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | bytes << 40;
    }
    static constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 24) - 1;
    static constexpr std::uint32_t device_of(std::uint64_t packed) noexcept {
        return static_cast<std::uint32_t>(packed);
    }
    static constexpr MemoryKind kind_of(std::uint64_t packed) noexcept {
        return static_cast<MemoryKind>(static_cast<std::uint8_t>(packed >> 32));
    }
    static constexpr std::uint64_t bytes_of(std::uint64_t packed) noexcept { return packed >> 40; }
};

// Where memory stands that is divided into places of one size: one record for each of its ranges, and a table that
// leads from a place to its owner.
class Divided {
public:
    static constexpr std::size_t most_places = 256;

private:
    friend class AddressMap;
    Place at_, beside_;
    nodes::PlaceTable* table_ = nullptr;
};

// Live allocations do not overlap. One id may have two bases (a host range and its device address). Thread safety:
// every function may be called from any thread. insert, erase, size and for_each exclude one another; find and covers
// never block.
//
// Memory that is released and kept for a later allocation is parked: readers do not find it, but no other allocation
// can be inserted there, and it becomes alive again, as another allocation, without a change of the tree. For that its
// owner has a word: readers find the record while the word is its identity. Every function of one place is its owner's;
// those of different places may run at the same time, and beside all others.
class AddressMap {
public:
    // x86-64 with five levels of page tables needs 57; device addresses have 49 bits, aarch64 at most 52.
    static constexpr int address_bits = 57;

    // `max_bytes` limits the memory that the map takes from the system beyond its fixed part.
    explicit AddressMap(std::size_t max_bytes = std::numeric_limits<std::size_t>::max());
    ~AddressMap();  // no reader may be active any more
    AddressMap(const AddressMap&) = delete;
    AddressMap& operator=(const AddressMap&) = delete;

    // Errors: invalid_argument (no bytes, id 0, beyond address_bits, which includes wrapping round, or an overlap with
    // a live allocation), out_of_memory (the map could not grow). Either leaves the map unchanged.
    Result<void> insert(const Record& record);
    // false, and nothing changes: no live allocation begins at `base` with this `id`.
    bool erase(std::uint64_t base, std::uint64_t id);

    // As insert(), and nothing else can be inserted in the first `extent_bytes`, where those are more than
    // record.bytes. Readers find it while `holder` is record.id.
    Result<Place> place(const Record& record, std::uint64_t extent_bytes, const HolderWord& holder);
    // A holder has ended an identity, and what it held is parked from then on.
    void note_parked() noexcept;
    // Gives a parked record the data of `record`, which begins where the parked one did and reaches no further than its
    // extent: readers find it once its holder is record.id. false, and nothing changes: the record has left the map, or
    // does not fit.
    bool revive(const Place& place, const Record& record) noexcept;
    // revive() where the data stays but for the identity: one store. The same base, bytes, device, kind and flags.
    static bool renew(const Place& place, std::uint64_t base, std::uint64_t bytes, std::uint64_t id) noexcept;
    // The record leaves the map, alive or parked. Empties the place.
    void discard(Place& place) noexcept;
    // Records one range of memory that is divided into `places` of `place_bytes` each: nothing else can be inserted
    // there. Readers find a place while it has an owner (own()). `first_base`: where the first range begins; another
    // base than that is a second range of the same places. Does nothing where the range is recorded, and records it
    // again where it made way. Errors as insert(). One owner at a time calls this, own() and join().
    Result<void> divide(Divided& divided, std::uint64_t base, std::uint64_t first_base, std::size_t place_bytes,
                        std::size_t places);
    // Makes this the owner of the place; nullptr: nobody.
    void own(const Divided& divided, std::size_t place, const PlaceOwner* owner) noexcept;
    // Whether no range of it has left the map. Beside everything but the first divide() and join().
    bool is_whole(const Divided& divided) const noexcept;
    // All ranges leave the map, and the places have no owners.
    void join(Divided& divided) noexcept;
    // All records that meet this range leave the map, alive or parked: divided memory as a whole. Answers how many.
    std::size_t make_way(std::uint64_t base, std::uint64_t bytes);
    // Whether the extent of a parked record contains it, or a place of divided memory that nobody has.
    bool is_parked(std::uint64_t address) const;
    // Whether the extent of a live allocation of this runtime, not of other code, meets this range.
    bool is_in_use(std::uint64_t base, std::uint64_t bytes) const;

    // The allocation that contains `address`; empty without one. During an insert or erase of the same range: the
    // record before, the record after, or none, never a mix.
    Record find(std::uint64_t address) const noexcept;
    // Does one live allocation contain all of [address, address + bytes)? With 0 bytes: does one contain `address`?
    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept;
    std::size_t size() const noexcept;          // live allocations; looks at every record
    std::size_t memory_bytes() const noexcept;  // of the map itself; never shrinks, but erased blocks are reused
    // Visits each live allocation once, in no particular order. `visit` may read the map but not change it.
    void for_each(const std::function<void(const Record&)>& visit) const;

    // The tree that find() follows, for tests that interleave with its loads.
    const nodes::Tree& tree() const noexcept;

private:
    struct State;
    Result<nodes::Slot*> add(const Record& record, std::uint64_t extent_bytes, const HolderWord* holder);
    std::unique_ptr<State> state_;
};

}  // namespace isthmus::provenance
