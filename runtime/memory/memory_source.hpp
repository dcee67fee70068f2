// SPDX-License-Identifier: Apache-2.0
// MemorySource: the allocator behind Device::allocator(), for one kind of memory of one device.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include "buffer_lanes.hpp"
#include "composed.hpp"
#include "lane_rules.hpp"
#include "ledger.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;
struct PoolState;
struct StreamState;

// Order of checks: the lanes of memory released by block → limits of any machine → this device's features → an open
// capture → memory kept from a release → the budget and the driver call, both retried by memory_pressure.hpp → the
// ledger. A failed step leaves nothing behind; the first three call no driver. Thread-safe.
class MemorySource {
public:
    // `placement` is for kinds of system memory (host, host_numa, registered).
    MemorySource(std::shared_ptr<DeviceState> device, MemoryKind kind, HostPlacement placement = {});
    // Allocates from this pool.
    MemorySource(std::shared_ptr<DeviceState> device, std::shared_ptr<PoolState> pool);

    // From here on its memory is fresh from the driver or the system, and goes back there at its release.
    MemorySource&& uncached() && noexcept {
        cached_ = false;
        of_lanes_ = {};
        return std::move(*this);
    }

    // From here on small memory may share its pages with other small memory of this device (rules::small_place).
    MemorySource&& sharing_pages() && noexcept {
        shares_pages_ = true;
        return std::move(*this);
    }

    MemoryKind kind() const noexcept { return kind_; }
    // What the ledger records of where the block lies; pool: of pool memory.
    struct Origin {
        std::shared_ptr<PoolState> pool;
        std::size_t lead_bytes = 0;
        Piece* piece = nullptr;  // in the ledger
    };
    Result<MemoryBlock> allocate(const AllocationRequest& request, Origin* origin = nullptr);
    // Releases any block of this device, from whichever source (K9).
    Result<void> release(const MemoryBlock& block, Stream* after);

private:
    Result<void> allowed(const AllocationRequest& request) const;
    bool may_keep(const AllocationRequest& request) const;
    std::size_t place_of(const AllocationRequest& request) const noexcept;  // 0: whole pages
    // As from_lane(), out of the lane of the thread, where nothing is in the way; `looked`: it was searched.
    Piece* at_once(const AllocationRequest& request, bool& looked) const;
    Result<MemoryBlock> allocate_looking(const AllocationRequest& request, Origin* origin, bool looked);
    // A parked piece that rests in a lane for this request; nullptr: none, or the request has to be judged first.
    Piece* from_lane(const AllocationRequest& request, BufferLanes::Among lanes) const;
    Piece* in_exchange(const AllocationRequest& request) const;  // the same where requests change in size
    Result<MemoryBlock> hand_out(Piece& resting, const AllocationRequest& request, Origin* origin);
    // The same for a piece of the cache, which may have had another size and alignment.
    Result<MemoryBlock> hand_out_kept(Piece& kept, const AllocationRequest& request, Origin* origin);
    // What of_lanes_ makes of the request; empty: no lane serves it, or it has to be judged first. `order`: see there.
    rules::SharedRequest request_of_lanes(const AllocationRequest& request, StreamState*& order) const;
    // allocate() without the observer. `was_kept` becomes true where kept memory served.
    Result<MemoryBlock> allocate_untold(const AllocationRequest& request, Origin* origin, bool& was_kept);
    Result<MemoryBlock> enter(MemoryBlock block, Piece piece, Stream* stream, Origin* origin);
    void place(const AllocationRequest& request, const Piece& piece, MemoryBlock& block) const;
    // `in_segment`: device memory may be a block of the device's segment.
    Result<void> obtain(const AllocationRequest& request, MemoryBlock& block, Piece& piece, bool in_segment);
    // obtain() within the budget, after making room where memory is missing. `asked_bytes`: what the caller of the
    // runtime asked for, which an error and the handler for shortages name. `least_bytes`: serves where
    // request.bytes are not there; the same: nothing less does.
    struct Amounts {
        std::size_t asked_bytes;
        std::size_t least_bytes;
    };
    Result<void> within_memory(const AllocationRequest& request, const Amounts& amounts, MemoryBlock& block,
                               Piece& piece, bool in_segment = false);
    Result<void> from_slab(std::size_t place_bytes, std::size_t asked_bytes, Piece& piece);
    Result<void> from_driver(std::size_t bytes, Piece& piece, bool in_segment);
    bool from_segment(std::size_t bytes, Piece& piece, platform::Status& status);
    Result<void> from_pool(const AllocationRequest& request, Piece& piece);
    Result<void> from_slabs(const AllocationRequest& request, MemoryBlock& block, Piece& piece);
    Result<void> from_system(const AllocationRequest& request, MemoryBlock& block, Piece& piece);

    std::shared_ptr<DeviceState> device_;
    MemoryKind asked_;  // kind asked of the driver
    MemoryKind kind_;   // kind obtained: the CPU device has host memory only
    HostPlacement placement_;
    std::shared_ptr<PoolState> pool_;  // nullptr: the device's own pool, for pool kinds
    rules::BlockSort of_lanes_;        // of what rests for this source; empty: nothing does
    bool shares_pages_ = false;        // with other small memory
    bool cached_ = true;               // memory that was released is taken again, where the kind allows it
};

inline bool is_system(MemoryKind kind) noexcept {
    return kind == MemoryKind::host || kind == MemoryKind::host_numa;
}
// Pages of the system, cut out of slabs or mapped, which align by themselves. The driver's memory does not.
inline bool is_of_pages(MemoryKind kind) noexcept {
    return is_system(kind) || kind == MemoryKind::registered;
}
// What is refused or failed, for errors.
Words allocating(std::size_t bytes, MemoryKind kind);

// An error if a GPU device lacks the feature that the kind needs (K7).
Result<void> offers(const DeviceState& device, MemoryKind kind);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
