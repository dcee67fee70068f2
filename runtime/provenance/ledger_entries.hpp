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
#include <utility>
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
    return (id & ~no_entry) >> number_bits;
}
// In LedgerEntry::word: nobody has the identity. No block that was handed out has such a number.
inline constexpr std::uint64_t released = no_entry;
static_assert(released == provenance::PlaceOwner::nobody);
}  // namespace identity

// For everything that is no entry. Answers the first of `count` identities.
std::uint64_t reserve_ids(std::uint64_t count) noexcept;

// A piece, and its owner's words. `block.id` is the identity by which it is found.
//
// The word is the last identity of the entry, with identity::released unless somebody has it. Whoever takes that bit
// away or sets it is the only one who may change the rest until the next such step: to hand the piece out is a store
// behind all that was written before, to end the identity is one compare-and-swap (claim()), of which one succeeds. So
// a piece is released and handed out again without the ledger's lock. The lock guards the list of free entries, and
// what leaves or enters the ledger: the piece's addresses and its owner's device stay while it is there.
//
// `first` is the first address; of a free entry, the next free one. Who compares it before claim() may find either, but
// after a claim that succeeded knows that it was the address. Of a place of a slab, the words are its record in the
// address map, too.
struct LedgerEntry : provenance::PlaceOwner, Piece {  // in this order, so that what follows has room behind the piece
    bool returned = false;  // has its owner still, who knows it by an identity of an earlier entry (put_back())
    bool recorded = false;  // of a place: the map leads to it

    std::uint64_t id() const noexcept { return word.load(std::memory_order_relaxed) & ~identity::released; }
    // Whether this identity is the entry's, and somebody has it. Acquire: what it was handed out with is there.
    bool is(std::uint64_t id) const noexcept { return word.load(std::memory_order_acquire) == id; }
    bool has_owner() const noexcept {
        return (word.load(std::memory_order_relaxed) & identity::released) == 0 || returned;
    }
    // Expects the ledger's lock, and an entry that nobody has.
    void belongs_to(std::size_t owner, std::uint64_t first_address) noexcept {
        facts.store(packed(static_cast<std::uint32_t>(owner), MemoryKind::unknown, 0), std::memory_order_release);
        first.store(first_address, std::memory_order_release);
    }
    bool is_of(std::size_t owner, std::uint64_t first_address) const noexcept {
        return first.load(std::memory_order_relaxed) == first_address && owner_device() == owner;
    }
    std::size_t owner_device() const noexcept { return device_of(facts.load(std::memory_order_relaxed)); }
    // Somebody has this identity from here on.
    void publish(std::uint64_t id) noexcept { word.store(id, std::memory_order_release); }
    // Ends this identity. false: another thread has ended it, or it was never this entry's.
    bool claim(std::uint64_t id) noexcept {
        return word.compare_exchange_strong(id, id | identity::released, std::memory_order_acq_rel,
                                            std::memory_order_relaxed);
    }
};

// at() may be called beside everything else; the rest is not thread-safe. Takes memory from the heap only to hold more
// entries than ever before.
class LedgerEntries {
public:
    // An entry of nothing, with an identity that is fresh and nobody's: the caller publishes it, or parks the entry.
    // nullptr: the process has no number left.
    LedgerEntry* add();
    // The identity of the next owner of this piece. 0: it has had as many as can be told apart.
    static std::uint64_t next_id(const LedgerEntry& entry) noexcept {
        const std::uint64_t last = entry.id();
        return identity::owner(last) == identity::last_owner ? 0 : last + identity::one_owner;
    }
    void remove(LedgerEntry& entry) noexcept;
    // The entry of this number, whatever its identity; nullptr: not of this ledger. A caller to whom an identity was
    // given finds its entry: what was published before is seen.
    LedgerEntry* at(std::uint64_t id) const noexcept {
        const Directory* const directory = directory_.load(std::memory_order_acquire);
        if (directory == nullptr || (id & identity::no_entry) != 0) return nullptr;
        const std::uint64_t place = identity::number(id) / per_chunk - directory->first;  // below the first: beyond all
        if (place >= directory->size) return nullptr;
        Chunk* const chunk = directory->chunks[place].load(std::memory_order_acquire);
        return chunk != nullptr ? &(*chunk)[identity::number(id) % per_chunk] : nullptr;
    }
    bool handed_out(std::uint64_t id) const noexcept;             // by this ledger, now or earlier
    static bool handed_out_somewhere(std::uint64_t id) noexcept;  // in this process, by all that is known of it

    template <class Visit>
    void for_each(Visit visit) const {
        for (const std::unique_ptr<Chunk>& chunk : chunks_) {
            for (LedgerEntry& entry : *chunk) visit(entry);
        }
    }

private:
    static constexpr std::size_t per_chunk = 64;
    using Chunk = std::array<LedgerEntry, per_chunk>;
    // The chunks by number. A larger one takes the place of one that is full, which stays for threads that look into
    // it.
    struct Directory {
        explicit Directory(std::uint64_t first_chunk, std::size_t places)
            : first(first_chunk), size(places), chunks(std::make_unique<std::atomic<Chunk*>[]>(places)) {}
        const std::uint64_t first;
        const std::size_t size;
        const std::unique_ptr<std::atomic<Chunk*>[]> chunks;  // null: another ledger's, or of no ledger yet
    };
    bool grow();
    void add_free(LedgerEntry& entry) noexcept {
        entry.first.store(reinterpret_cast<std::uintptr_t>(std::exchange(free_, &entry)), std::memory_order_release);
    }
    void enter_in_directory(std::uint64_t number, Chunk* chunk);

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<std::unique_ptr<Directory>> directories_;  // the newest last
    std::atomic<const Directory*> directory_{nullptr};
    LedgerEntry* free_ = nullptr;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
