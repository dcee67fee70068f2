// SPDX-License-Identifier: Apache-2.0
// Piece: memory that a runtime handed out, with everything that is needed to free it.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>

#include <platform/driver.hpp>
#include <platform/os.hpp>

#include "address_map.hpp"
#include "host_slabs.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct PoolState;
struct StreamState;

// Memory from the system: separate pages, or cut out of slabs.
struct HostPart {
    platform::os::HostPages pages;
    bool registered = false;  // the pages are registered with the device's driver
    HostPlacement asked;      // of memory that may be kept: as requested
    std::shared_ptr<HostSlabs> slabs;
    SlabPiece cut;
    std::size_t bytes() const noexcept { return slabs ? cut.bytes : pages.bytes(); }
};

// What small pieces have in common that are cut out of one larger one (cache/small_slabs.hpp): its places.
struct PieceSlab {
    MemoryKind kind = MemoryKind::unknown;
    std::byte* host = nullptr;  // where the first place begins; nullptr: the CPU may not access it
    std::uint64_t device = 0;
    std::size_t place_bytes = 0;
    std::size_t places = 0;
    HostPlacement asked;
    const platform::os::HostPages* pages = nullptr;  // of memory of the system
    // The ledger's, by its lock: what leads readers from an address to a place, and how many places are recorded there.
    provenance::Divided records;
    std::size_t recorded = 0;
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
    bool registered = false;            // with the device's driver, or imported by it
    platform::ImportedDmaBuf imported;  // how it was imported; none: registered
    std::shared_ptr<void> own_mapping;  // the mapping that contains it; null: memory of another owner

private:
    Release release_;
    isthmus_adopt_callbacks c_release_;
    std::uint64_t generation_;
    bool told_ = false;
};

// What a piece has that is no place of a slab. On the heap, so that places are small.
struct OwnMemory {
    platform::Allocation allocation;       // from the driver; bytes 0: none
    std::shared_ptr<PoolState> pool;       // the pool that the allocation came from
    provenance::Place at, beside;          // the ledger's: of the first address; of the device's where that is another
    std::unique_ptr<HostPart> host_part;   // from the system
    std::unique_ptr<AdoptedPart> adopted;  // memory of another owner
    std::shared_ptr<StreamState> after;    // out of the cache: freed behind the work of this stream, unless null
};

// A piece of memory, with everything that is needed to free it. Movable; its destructor frees only the pages. It is a
// place of a slab, or memory of its own, or nothing.
struct Piece {
    PieceSlab* slab = nullptr;                // nullptr: it is not cut out of a larger piece
    std::unique_ptr<OwnMemory> own;           // nullptr: a place, or nothing
    std::size_t asked_bytes = 0;              // as the cache counts it while it is handed out; 0: it does not
    [[no_unique_address]] MemoryBlock block;  // as recorded in the ledger; of a place, also where that is
    // Behind the block's last byte, and so is what derives from it.
    bool may_be_kept = false;         // after its release, for the next allocation (rules::may_be_kept)
    bool unused = false;              // of a slab, at its release: nothing uses it any more
    bool allocated_in_order = false;  // pool memory: usable in the order of one stream at first

    OwnMemory& make_own() {
        if (!own) own = std::make_unique<OwnMemory>();
        return *own;
    }
    std::size_t bytes() const noexcept {  // adopted: 0
        if (slab != nullptr) return slab->place_bytes;
        if (!own) return 0;
        return own->host_part ? own->host_part->bytes() : own->allocation.bytes;
    }
    // From the driver, or cut out of `slab`; bytes 0: none.
    platform::Allocation allocation() const noexcept {
        if (slab != nullptr) return {slab->kind, block.host, block.device, slab->place_bytes};
        return own ? own->allocation : platform::Allocation();
    }
    PoolState* pool() const noexcept { return own ? own->pool.get() : nullptr; }
    std::shared_ptr<PoolState> shared_pool() const noexcept { return own ? own->pool : nullptr; }
    HostPart* host_part() const noexcept { return own ? own->host_part.get() : nullptr; }
    AdoptedPart* adopted() const noexcept { return own ? own->adopted.get() : nullptr; }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
