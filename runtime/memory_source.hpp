// MemorySource: what stands behind Device::allocator(): one kind of memory of one device, as an allocator.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include "ledger.hpp"
#include "running_services.hpp"

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
// What a call that would end an open capture of this thread is refused with (K13).
Error in_capture(std::string_view what);

inline bool is_pooled(MemoryKind kind) noexcept {
    return kind == MemoryKind::pool || kind == MemoryKind::managed_pool;
}
// May the CPU find it at all? Whether it may touch it now is access_rules' matter.
inline bool host_finds(MemoryKind kind) noexcept {
    return kind != MemoryKind::device && kind != MemoryKind::pool && kind != MemoryKind::imported;
}

// Frees what was taken from the ledger, behind the work of `after` where it is pooled (nullptr: nothing uses it any
// more). Success says that the caller has released it: while a capture is open it is put off, and memory of the runtime
// that the driver does not take back now is kept and tried again (ADR 78). On an error nothing has changed and the
// piece is whole: the driver still has adopted memory registered, or work still runs that pooled memory cannot be freed
// behind.
Result<void> free_piece(DeviceState& device, Piece& piece, std::shared_ptr<StreamState> after);
// Now, whatever is open. `call`: what keeps a service from starting meanwhile.
Result<void> free_now(DeviceState& device, Piece& piece, StreamState* after, CallInFlight call = {});
// For a caller that nobody can tell of an error: what cannot be freed now is tried again later.
void free_or_keep(DeviceState& device, Piece piece, std::string_view when);
// … for a block of the ledger whose buffer is gone.
void release_later(DeviceState& device, const MemoryBlock& block);
// Tries again what the driver did not take back, oldest first, up to the first failure. Owners of adopted memory may be
// told. Expects no lock. One load where there is nothing.
void return_unreturned(DeviceState& device);
// As the device closes, for the last time. Adopted memory that is registered even then is kept until the process ends,
// and its owner is not told.
void free_at_end(DeviceState& device, Piece piece);

}  // namespace isthmus::inline v0::detail
