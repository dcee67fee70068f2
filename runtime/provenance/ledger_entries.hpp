// SPDX-License-Identifier: Apache-2.0
// LedgerEntries: the entries of a ledger, which never move, and the identities by which they are found.
#pragma once

#include "address_map.hpp"
#include "piece.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Identities are unique in the process and never reused, so blocks of another runtime and stale blocks are recognized.
// There are two sorts: numbers for everything that is no entry, with the highest bit set, and those of entries, which
// consist of the entry's number and of how many owners it has had.
namespace identity {
inline constexpr std::uint64_t no_entry = std::uint64_t{1} << 63;
inline constexpr int number_bits = 30;
inline constexpr std::uint64_t one_owner = std::uint64_t{1} << number_bits;
inline constexpr std::uint64_t last_owner = (no_entry >> number_bits) - 1;
constexpr std::uint64_t number(std::uint64_t id) noexcept {
    return id & (one_owner - 1);
}
constexpr std::uint64_t owner(std::uint64_t id) noexcept {  // from 1; 0: no identity
    return id >> number_bits;
}
}  // namespace identity

// For everything that is no entry. Answers the first of `count` identities.
std::uint64_t reserve_ids(std::uint64_t count) noexcept;

// A piece and its records in the address map. `block.id` is the identity by which it is found.
struct LedgerEntry : Piece {
    enum class State : std::uint8_t { free, live, parked };
    // The ledger's lock guards the rest; these two are also read, and changed by rest() and wake(), without it: an
    // entry whose identity is not the one asked for is looked at no further.
    std::atomic<State> state{State::free};  // parked: its owner has released it, and a cache keeps it
    std::uint32_t device = 0;               // Device::index() of the owner
    std::atomic<std::uint64_t> id{0};       // the last identity of this entry
    provenance::Place at, beside;           // of the first address; of the device address where that is another one
    LedgerEntry* next_free = nullptr;
};

// Not thread-safe. Takes memory from the heap only to hold more entries than ever before.
class LedgerEntries {
public:
    // An entry of nothing, with a fresh identity, which the caller makes live or parked. nullptr: the process has no
    // number left.
    LedgerEntry* add();
    // A fresh identity for the next owner of this piece. false: it has had as many as can be told apart.
    static bool renew(LedgerEntry& entry) noexcept;
    void remove(LedgerEntry& entry) noexcept;
    // The entry of this number, whatever its identity and state; nullptr: not of this ledger.
    LedgerEntry* at(std::uint64_t id) const noexcept;
    bool handed_out(std::uint64_t id) const noexcept;             // by this ledger, now or earlier
    static bool handed_out_somewhere(std::uint64_t id) noexcept;  // in this process, by all that is known of it

    template <class Visit>
    void for_each(Visit visit) const {
        for (const std::unique_ptr<Chunk>& chunk : chunks_) {
            if (!chunk) continue;
            for (LedgerEntry& entry : *chunk) visit(entry);
        }
    }

private:
    static constexpr std::size_t per_chunk = 64;
    using Chunk = std::array<LedgerEntry, per_chunk>;
    bool grow();

    std::vector<std::unique_ptr<Chunk>> chunks_;  // by number; null: another ledger's
    std::uint64_t first_chunk_ = 0;
    LedgerEntry* free_ = nullptr;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
