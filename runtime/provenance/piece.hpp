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
#include <utility>

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
    platform::Allocation allocation;  // from the driver; bytes 0: none
    std::shared_ptr<PoolState> pool;  // the pool that the allocation came from
    std::size_t asked_bytes = 0;      // Piece::asked_bytes()
    std::uint64_t allocated_on = 0;   // while Piece::allocated_in_order: StreamState::id
    // 1 + the lane of the thread that it serves whatever that asks for; the cache counts it apart then. 0: none.
    std::uint8_t loose_of = 0;
    provenance::Place at, beside;          // the ledger's: of the first address; of the device's where that is another
    std::unique_ptr<HostPart> host_part;   // from the system
    std::unique_ptr<AdoptedPart> adopted;  // memory of another owner
    std::shared_ptr<StreamState> after;    // out of the cache: freed behind the work of this stream, unless null
};

// One word: the slab that a piece is a place of, or its own memory, or nothing. Owns the latter.
class SlabOrOwn {
public:
    SlabOrOwn() = default;
    SlabOrOwn(SlabOrOwn&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
    SlabOrOwn& operator=(SlabOrOwn&& other) noexcept {
        if (this != &other) {
            delete own();
            word_ = std::exchange(other.word_, 0);
        }
        return *this;
    }
    ~SlabOrOwn() { delete own(); }

    PieceSlab* slab() const noexcept {
        return (word_ & is_slab) != 0 ? reinterpret_cast<PieceSlab*>(word_ & ~is_slab) : nullptr;
    }
    OwnMemory* own() const noexcept { return (word_ & is_slab) == 0 ? reinterpret_cast<OwnMemory*>(word_) : nullptr; }
    // Expects that it is no memory of its own.
    void be_place_of(PieceSlab& slab) noexcept { word_ = reinterpret_cast<std::uintptr_t>(&slab) | is_slab; }
    // Expects that it is no place.
    OwnMemory& make_own() {
        if (word_ == 0) word_ = reinterpret_cast<std::uintptr_t>(std::make_unique<OwnMemory>().release());
        return *own();
    }

private:
    static constexpr std::uintptr_t is_slab = 1;  // beside the address
    std::uintptr_t word_ = 0;
};

// A piece of memory, with everything that is needed to free it. Movable; its destructor frees only the pages. It is a
// place of a slab, or memory of its own, or nothing.
struct Piece {
    SlabOrOwn memory;
    [[no_unique_address]] MemoryBlock block;  // as recorded in the ledger; of a place, also where that is
    // Behind the block's last byte, and so is what derives from it.
    bool may_be_kept = false;         // after its release, for the next allocation (rules::may_be_kept)
    bool unused = false;              // of a slab, at its release: nothing uses it any more
    bool allocated_in_order = false;  // pool memory: usable in the order of one stream at first
    std::uint16_t asked_of_place = 0;

    PieceSlab* slab() const noexcept { return memory.slab(); }  // nullptr: it is not cut out of a larger piece
    OwnMemory* own() const noexcept { return memory.own(); }    // nullptr: a place, or nothing
    OwnMemory& make_own() { return memory.make_own(); }
    std::size_t bytes() const noexcept {  // adopted: 0
        if (const PieceSlab* const of = slab()) return of->place_bytes;
        const OwnMemory* const mine = own();
        if (mine == nullptr) return 0;
        return mine->host_part ? mine->host_part->bytes() : mine->allocation.bytes;
    }
    // As the cache counts it while it is handed out; 0: it does not.
    std::size_t asked_bytes() const noexcept {
        const OwnMemory* const mine = own();
        return mine != nullptr ? mine->asked_bytes : asked_of_place;
    }
    void set_asked_bytes(std::size_t bytes) noexcept {
        OwnMemory* const mine = own();
        if (mine != nullptr) {
            mine->asked_bytes = bytes;
        } else {
            asked_of_place = static_cast<std::uint16_t>(bytes);
        }
    }
    // Whether pool memory is usable in the order of one stream at first, and of which (StreamState::id). 0: of none.
    void be_in_order_of(std::uint64_t stream) noexcept {
        allocated_in_order = stream != 0;
        if (stream != 0) own()->allocated_on = stream;
    }
    bool is_loose() const noexcept { return own() != nullptr && own()->loose_of != 0; }
    // From the driver, or cut out of a slab; bytes 0: none.
    platform::Allocation allocation() const noexcept {
        if (const PieceSlab* const of = slab()) return {of->kind, block.host, block.device, of->place_bytes};
        const OwnMemory* const mine = own();
        return mine != nullptr ? mine->allocation : platform::Allocation();
    }
    PoolState* pool() const noexcept { return own() != nullptr ? own()->pool.get() : nullptr; }
    std::shared_ptr<PoolState> shared_pool() const noexcept { return own() != nullptr ? own()->pool : nullptr; }
    HostPart* host_part() const noexcept { return own() != nullptr ? own()->host_part.get() : nullptr; }
    AdoptedPart* adopted() const noexcept { return own() != nullptr ? own()->adopted.get() : nullptr; }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
