// AddressMap: address → live allocation, for any interior address, read without a lock.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

namespace isthmus::provenance {

namespace nodes {
class Tree;
}

// What is known about one live allocation: a value, copied out to readers.
struct Record {
    std::uint64_t base = 0;  // first address
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;      // identity: never used again, never 0 for a live allocation
    std::uint32_t device = 0;  // Device::index() of the owner
    MemoryKind kind = MemoryKind::unknown;
    std::uint8_t flags = 0;  // bits of record_flags
    explicit operator bool() const noexcept { return id != 0; }
};

namespace record_flags {
inline constexpr std::uint8_t foreign = 1;  // not ours: the driver was asked once, this is its answer
inline constexpr std::uint8_t device_address =
    2;  // a second range of a host allocation: what the device calls it (K23)
}  // namespace record_flags

// Live allocations do not overlap. One id may stand at two bases (a host range and its device address).
// Thread safety: every function from any thread; insert, erase and for_each take turns, find, covers and size wait
// for nobody.
class AddressMap {
public:
    // x86-64 with five levels of page tables; device addresses have 49 bits, aarch64 at most 52.
    static constexpr int address_bits = 57;

    // `most_bytes` limits what it takes from the system beyond its fixed part.
    explicit AddressMap(std::size_t most_bytes = std::numeric_limits<std::size_t>::max());
    ~AddressMap();  // nobody may be reading any more
    AddressMap(const AddressMap&) = delete;
    AddressMap& operator=(const AddressMap&) = delete;

    // invalid_argument: no bytes, id 0, beyond address_bits (which includes wrapping round), or it overlaps a live
    // allocation. out_of_memory: the map could not grow. Either leaves the map as it was.
    Result<void> insert(const Record& record);
    // False, and nothing is changed, where no live allocation begins at `base` with this `id`.
    bool erase(std::uint64_t base, std::uint64_t id);
    // The allocation that `address` lies in; empty where there is none. Beside an insert or erase of the same range:
    // the record before, the record after, or none, never a mix.
    Record find(std::uint64_t address) const noexcept;
    // Does all of [address, address + bytes) lie inside one live allocation? No bytes: does `address`?
    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept;
    std::size_t size() const noexcept;          // live allocations
    std::size_t memory_bytes() const noexcept;  // its own; never shrinks, what was erased is used again
    // Each live allocation once, in no particular order. `visit` may read the map, not change it.
    void for_each(const std::function<void(const Record&)>& visit) const;

    // What find() follows, for tests that come between its loads.
    const nodes::Tree& tree() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace isthmus::provenance
