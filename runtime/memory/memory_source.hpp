// MemorySource: what stands behind Device::allocator(): one kind of memory of one device, as an allocator.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include "ledger.hpp"

#include <memory>
#include <string_view>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct PoolState;
struct StreamState;

// Steps of an allocation: what no machine accepts → what this device lacks → an open capture → the budget and the call,
// with the ladder of memory_pressure.hpp below both → the books. A step that fails leaves nothing behind, and the first
// three call no driver. Thread-safe.
class MemorySource {
public:
    // `placement` is for kinds that are the system's memory (host, host_numa, registered).
    MemorySource(std::shared_ptr<DeviceState> device, MemoryKind kind, HostPlacement placement = {});
    // Memory of this pool.
    MemorySource(std::shared_ptr<DeviceState> device, std::shared_ptr<PoolState> pool);

    MemoryKind kind() const noexcept { return kind_; }  // of the blocks
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    // Any block of this device, whichever of its sources handed it out (K9).
    Result<void> release(const MemoryBlock& block, Stream* after);

private:
    Result<void> allowed(const AllocationRequest& request) const;
    Result<void> obtain(const AllocationRequest& request, MemoryBlock& block, Piece& piece);
    Result<void> from_driver(std::size_t bytes, Piece& piece);
    Result<void> from_pool(const AllocationRequest& request, Piece& piece);
    Result<void> from_slabs(std::size_t bytes, MemoryBlock& block, Piece& piece);
    Result<void> from_system(std::size_t bytes, MemoryBlock& block, Piece& piece);

    std::shared_ptr<DeviceState> device_;
    MemoryKind asked_;  // what the driver is asked for
    MemoryKind kind_;   // the CPU device has host memory only
    HostPlacement placement_;
    std::shared_ptr<PoolState> pool_;  // nullptr: the device's own, where the kind is one of a pool
};

// The feature without which a kind cannot be had on a GPU (K7).
Result<void> offers(const DeviceState& device, MemoryKind kind);

}  // namespace isthmus::inline v0::detail
