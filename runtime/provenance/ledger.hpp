// SPDX-License-Identifier: Apache-2.0
// Ledger: every piece of memory that a runtime handed out and that is not released, by identity, with its undo.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include "address_map.hpp"
#include "brief_mutex.hpp"
#include "ledger_entries.hpp"
#include "piece.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace isthmus::rules {
struct Released;
}

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe. Every live piece is also in the address map, with two ranges where its device address differs from its
// host address (K23). A piece is removed from map and ledger before the driver frees it: its addresses may be reused
// immediately afterwards. A piece that is kept for a later allocation stays where it is, parked: its identity is not
// valid any more, nobody finds its addresses, and nobody else gets them.
class Ledger {
public:
    explicit Ledger(provenance::AddressMap& addresses) : addresses_(addresses) {}

    // Records new memory of the device with this index and answers its identity. Older map entries at its addresses are
    // dropped: the driver would not have handed out the addresses twice. On an error nothing is recorded, and the
    // caller keeps `piece`. `entered`: where it is from then on.
    Result<std::uint64_t> enter(const MemoryBlock& block, std::size_t device, Piece& piece, Piece** entered = nullptr);
    // As enter(), for memory that was not handed out by this runtime. Error: in_use where it overlaps a live allocation
    // of this runtime, or memory adopted before.
    Result<std::uint64_t> enter_adopted(const MemoryBlock& block, std::size_t device, Piece& piece);
    Result<void> refuse_overlap(const MemoryBlock& block) const;
    // For memory that was recorded here and grows or shrinks in place: it keeps its identity. On an error nothing
    // changes.
    Result<void> resize(std::uint64_t id, std::size_t bytes);
    // Records in the address map only, replacing stale entries: the driver has just handed out the addresses.
    Result<void> insert(const provenance::Record& record);
    // Records memory of a user-defined allocator: known by address while its buffer lives. Where the memory is a part
    // of memory that is already known, lookups keep answering the owner's record.
    std::uint64_t enter_users(const MemoryBlock& block, std::size_t device);
    void leave(std::uint64_t id);

    // Parks the piece, where rules::keeping() keeps it: the caller then has to hand it to wake() or take_parked(),
    // and may read it until then. nullptr, and nothing changes: it is not kept. `how` lacks what the ledger knows.
    // Takes the lock only where it is not parked, and for what was put back. Errors as take().
    Result<Piece*> park(const MemoryBlock& block, std::size_t device, rules::Released how, std::uint64_t limit_bytes);
    // park() for what needs no lock. nullptr: nothing has changed, and park() has the answer.
    Piece* park_at_once(const MemoryBlock& block, std::size_t device, rules::Released how, std::uint64_t limit_bytes);
    // Records and parks a piece that take() removed. nullptr: not possible, and the caller keeps `piece`.
    Piece* park_again(std::size_t device, Piece& piece);
    // park() for a piece that one owner alone knows: nobody else has its identity. false: nothing has changed, and the
    // piece stays as it is.
    bool rest(Piece& piece, std::uint64_t id, rules::Released how, std::uint64_t limit_bytes);
    // Hands a parked piece out again, as this block, which gets its new identity, and answers that. 0: the piece stays
    // parked and has to be taken and entered anew. Its records begin elsewhere or have left the map, or its identities
    // are used up. Takes no lock: nobody but the caller knows a piece that is parked, nor its next identity.
    std::uint64_t wake(Piece& parked, MemoryBlock& block);
    // Removes a parked piece: the caller has to free it.
    Piece take_parked(Piece& parked);
    // Removes the piece: the caller then has to free it, and every other release is refused. Errors, which change
    // nothing: unknown_pointer, interior_pointer, already_released, wrong_device (K8).
    Result<Piece> take(const MemoryBlock& block, std::size_t device);
    // The piece is given back to the driver at its release, instead of being kept: something may use it that the
    // runtime does not know, or has changed more than its content. Unknown identities are ignored.
    void exclude_from_cache(std::uint64_t id);
    // Records again, under its old identity, a piece that take() removed and that could not be freed.
    void put_back(std::size_t device, Piece& piece);
    // Records adopted memory without a buffer as plain host memory in the address map, because the driver still counts
    // it as registered: copies from and to it then wait as for pageable memory. Lasts until leave(piece.block.id).
    void enter_unreturned(std::size_t device, Piece& piece);
    // Removes the driver's answer about this address from the map, because it is out of date.
    void forget_foreign(const void* address);
    // Records adopted memory that was returned to its owner although a lost device's driver keeps it registered for
    // good: the drivers of other devices take memory that is at these addresses later for pinned memory.
    void leave_registered(const void* address, std::size_t bytes);
    bool left_registered(std::uint64_t address, std::size_t bytes) const;  // does any of it overlap such memory?
    // Removes every piece of a device that is left when the device closes.
    std::vector<Piece> take_all(std::size_t device);

    PlacementReport placement(std::uint64_t id) const;
    struct Origin {
        bool known = false;
        std::size_t device = 0;
        std::shared_ptr<PoolState> pool;  // nullptr: not from a pool
        std::size_t lead_bytes = 0;       // from the beginning of the driver's allocation to the block (alignment)
    };
    Origin origin(std::uint64_t id) const;
    std::shared_ptr<PoolState> pool_of(std::uint64_t id) const { return origin(id).pool; }
    std::size_t size() const;  // looks at every entry

private:
    struct Range {
        std::uint64_t first;
        std::uint64_t last;
    };
    // The first expects no lock, the others mutex_ to be held.
    LedgerEntry* claim(const MemoryBlock& block, std::size_t device);
    LedgerEntry* live(std::uint64_t id) const;
    bool end(LedgerEntry& entry, std::uint64_t id);
    Result<LedgerEntry*> released(const MemoryBlock& block, std::size_t device) const;
    Error refusal(const MemoryBlock& block) const;
    Result<LedgerEntry*> add(const MemoryBlock& block, std::size_t device, Piece& piece);
    void remove(LedgerEntry& entry);
    rules::Released with_facts(const LedgerEntry& entry, rules::Released how) const noexcept;
    void take_out(LedgerEntry& entry, Piece& piece);
    Result<provenance::Place> place(const provenance::Record& record, std::uint64_t extent_bytes,
                                    const provenance::HolderWord& holder);
    Result<void> divide(PieceSlab& slab, std::uint64_t base, std::uint64_t first_base);
    Result<void> map_place(LedgerEntry& entry, const MemoryBlock& block, PieceSlab& slab,
                           provenance::PlaceOwner& owner);
    Result<void> map(LedgerEntry& entry, const MemoryBlock& block, Piece& piece, provenance::PlaceOwner& owner);
    Result<void> map(LedgerEntry& entry, const MemoryBlock& block, Piece& piece) {
        return map(entry, block, piece, entry);
    }
    void unmap(LedgerEntry& entry);
    bool revive_records(LedgerEntry& entry, const MemoryBlock& block);
    static bool renew_records(LedgerEntry& entry, const MemoryBlock& block) noexcept;

    provenance::AddressMap& addresses_;
    mutable BriefMutex mutex_;
    LedgerEntries entries_;
    // By put_back(), under an identity of an earlier entry, which a word has until that ends. The words stay, because
    // readers of the address map may look at them.
    struct Returned {
        LedgerEntry* entry;
        provenance::PlaceOwner* owner;
    };
    std::unordered_map<std::uint64_t, Returned> returned_;
    std::deque<provenance::PlaceOwner> words_;
    std::vector<Range> left_;  // address ranges that stay registered, first and last
    std::atomic<bool> any_left_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
