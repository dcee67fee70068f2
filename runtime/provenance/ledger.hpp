// SPDX-License-Identifier: Apache-2.0
// Ledger: every piece of memory that a runtime handed out and that is not released, by identity, with its undo.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>
#include <platform/os.hpp>

#include "address_map.hpp"
#include "host_slabs.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct PoolState;

// Identities are unique in the process, so blocks of another runtime and stale blocks are recognized.
std::uint64_t reserve_ids(std::uint64_t count) noexcept;  // answers the first of them

// Memory from the system: separate pages, or cut out of slabs.
struct HostPart {
    platform::os::HostPages pages;
    bool registered = false;  // the pages are registered with the device's driver
    HostPlacement asked;      // of memory that may be kept: as requested
    std::shared_ptr<HostSlabs> slabs;
    SlabPiece cut;
    std::size_t bytes() const noexcept { return slabs ? cut.bytes : pages.bytes(); }
};

// Memory of another owner, and the release callback that tells the owner when it is no longer used.
class AdoptedPart {
public:
    using Release = std::function<void(void*, std::size_t)>;
    AdoptedPart(void* memory, std::size_t length, Release release, isthmus_adopt_callbacks c_release);
    AdoptedPart(const AdoptedPart&) = delete;
    AdoptedPart& operator=(const AdoptedPart&) = delete;
    ~AdoptedPart();                           // calls the release; not in a forked child: the parent still uses it
    void forget() noexcept { told_ = true; }  // adoption failed: do not call the owner's release

    void* const pointer;
    const std::size_t bytes;
    bool registered = false;            // with the device's driver
    std::shared_ptr<void> own_mapping;  // the mapping that contains it; null: memory of another owner

private:
    Release release_;
    isthmus_adopt_callbacks c_release_;
    std::uint64_t generation_;
    bool told_ = false;
};

// A piece of memory, with everything that is needed to free it. Movable; its destructor frees only the pages.
struct Piece {
    platform::Allocation allocation;       // from the driver; bytes 0: none
    std::shared_ptr<PoolState> pool;       // the pool that the allocation came from
    std::unique_ptr<HostPart> host_part;   // from the system
    std::unique_ptr<AdoptedPart> adopted;  // memory of another owner
    MemoryBlock block;                     // as recorded in the ledger; set by take()
    bool may_be_kept = false;              // after its release, for the next allocation (rules::may_be_kept)
    std::size_t bytes() const noexcept { return host_part ? host_part->bytes() : allocation.bytes; }  // adopted: 0
};

// Thread-safe. Every live piece is also in the address map, with two ranges where its device address differs from its
// host address (K23). A piece is removed from map and ledger before the driver frees it: its addresses may be reused
// immediately afterwards.
class Ledger {
public:
    explicit Ledger(provenance::AddressMap& addresses) : addresses_(addresses) {}

    // Records new memory of the device with this index and answers its identity. Older map entries at its addresses are
    // dropped: the driver would not have handed out the addresses twice. On an error nothing is recorded, and the
    // caller keeps `piece`.
    Result<std::uint64_t> enter(const MemoryBlock& block, std::size_t device, Piece& piece);
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
    std::size_t size() const;

private:
    struct Entry {
        MemoryBlock block;
        std::size_t device = 0;
        Piece piece;
    };
    struct Range {
        std::uint64_t first;
        std::uint64_t last;
    };
    std::uint64_t next_id();                  // expects mutex_ to be held
    bool handed_out(std::uint64_t id) const;  // expects mutex_ to be held
    Error refusal(const MemoryBlock& block) const;
    Result<void> map(const MemoryBlock& block, std::size_t device);
    void unmap(const MemoryBlock& block);

    provenance::AddressMap& addresses_;
    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, Entry> entries_;
    std::vector<Range> ours_;  // identities of this ledger, ascending
    std::vector<Range> left_;  // address ranges that stay registered, first and last
    std::atomic<bool> any_left_{false};
    std::uint64_t next_ = 1;  // greater than last_: a further range is needed
    std::uint64_t last_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
