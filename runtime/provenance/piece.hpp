// SPDX-License-Identifier: Apache-2.0
// Piece: memory that a runtime handed out, with everything that is needed to free it.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>

#include <platform/driver.hpp>
#include <platform/os.hpp>

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

// What small pieces have in common that are cut out of one larger one (cache/small_slabs.hpp).
struct PieceSlab {
    HostPlacement asked;
    const platform::os::HostPages* pages = nullptr;  // of memory of the system
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

// A piece of memory, with everything that is needed to free it. Movable; its destructor frees only the pages.
struct Piece {
    platform::Allocation allocation;       // from the driver, or cut out of `slab`; bytes 0: none
    PieceSlab* slab = nullptr;             // nullptr: it is not cut out of a larger piece
    std::shared_ptr<PoolState> pool;       // the pool that the allocation came from
    std::unique_ptr<HostPart> host_part;   // from the system
    std::unique_ptr<AdoptedPart> adopted;  // memory of another owner
    MemoryBlock block;                     // as recorded in the ledger
    std::size_t asked_bytes = 0;           // as the cache counts it while it is handed out; 0: it does not
    std::shared_ptr<StreamState> after;    // out of the cache: freed behind the work of this stream, unless null
    // Last, so that what derives from it has room behind them.
    bool may_be_kept = false;         // after its release, for the next allocation (rules::may_be_kept)
    bool unused = false;              // of a slab, at its release: nothing uses it any more
    bool allocated_in_order = false;  // pool memory: usable in the order of one stream at first
    std::size_t bytes() const noexcept { return host_part ? host_part->bytes() : allocation.bytes; }  // adopted: 0
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
