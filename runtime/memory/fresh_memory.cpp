// SPDX-License-Identifier: Apache-2.0
// Where fresh memory of a source comes from: the driver, a segment, a pool, the system, slabs.
#include "memory_source.hpp"

#include "access_rules.hpp"
#include "alignment_rules.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"
#include "memory_pool_state.hpp"
#include "piece_release.hpp"
#include "recording.hpp"
#include "registered_placement.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The block within memory of the driver; memory of the system begins where its last block began.
void MemorySource::place(const AllocationRequest& request, const Piece& piece, MemoryBlock& block) const {
    if (piece.host_part() != nullptr) {
        block.host = piece.block.host;
        block.device = piece.block.device;
        return;
    }
    // Where CPU and device have different addresses of the memory, the CPU's address is aligned.
    const platform::Allocation allocation = piece.allocation();
    void* const host = rules::host_finds(kind_) ? allocation.host : nullptr;
    const std::uint64_t first = host != nullptr ? reinterpret_cast<std::uintptr_t>(host) : allocation.device;
    const std::size_t lead =
        request.alignment > rules::driver_alignment ? rules::lead_bytes(first, request.alignment) : 0;
    block.device = allocation.device + lead;
    if (host != nullptr) block.host = static_cast<std::byte*>(host) + lead;
}

Result<void> MemorySource::obtain(const AllocationRequest& request, MemoryBlock& block, Piece& piece, bool in_segment) {
    if (is_of_pages(kind_)) return from_system(request, block, piece);
    Result<void> made =
        rules::is_pooled(kind_) ? from_pool(request, piece) : from_driver(request.bytes, piece, in_segment);
    if (!made) return made;
    place(request, piece, block);
    if (piece.allocation().kind == MemoryKind::graph) {  // only the graph frees it
        block.kind = MemoryKind::graph;
        block.host = nullptr;
        piece = {};
    }
    return {};
}

// false: the segment has no place, or a service runs, which a change of mappings may wait for; the driver's own memory
// serves instead. So it does where the context has died, which no call of virtual memory would tell (K11).
bool MemorySource::from_segment(std::size_t bytes, Piece& piece, platform::Status& status) {
    DeviceState& device = *device_;
    const std::optional<CallInFlight> call = device.services.enter(rules::DriverUse::change_mapping);
    if (!call || device.driver->context_died()) return false;
    status = device.segment.allocate(bytes, piece.make_own().allocation);
    return status.code != Code::unsupported;
}

Result<void> MemorySource::from_driver(std::size_t bytes, Piece& piece, bool in_segment) {
    DeviceState& device = *device_;
    platform::Status of_segment;
    if (in_segment && from_segment(bytes, piece, of_segment)) {
        if (of_segment.ok()) return {};
        return device.failure(of_segment, allocating(bytes, asked_));
    }
    const bool guarded = device.capabilities.managed == ManagedModel::phase_guarded;
    const platform::Attachment attachment = guarded ? platform::Attachment::host : platform::Attachment::global;
    platform::Allocation& allocation = piece.make_own().allocation;
    const platform::Status status =
        device.driver->memory().allocate(asked_, bytes, attachment, platform::StreamHandle::none, allocation);
    if (status.ok()) return {};
    Error why = device.failure(status, allocating(bytes, asked_));
    if (allocation.bytes != 0) {  // the second of two steps failed: undone now, or when no service runs
        device.unreturned.add(std::exchange(piece, {}));
        return_unreturned(device);
    }
    return why;
}

Result<void> MemorySource::from_pool(const AllocationRequest& request, Piece& piece) {
    DeviceState& device = *device_;
    std::shared_ptr<PoolState> pool = pool_;
    if (!pool) {
        Result<std::shared_ptr<PoolState>> own = device.pools.own(device, asked_);
        if (!own) return std::move(own).error();
        pool = std::move(own).value();
    }
    platform::Allocation& allocation = piece.make_own().allocation;
    const auto take = [&](platform::StreamHandle order) {
        return device.driver->pools()->allocate(pool->handle, request.bytes, order, allocation);
    };
    platform::Status status;
    if (request.stream != nullptr) {
        StreamState& stream = *request.stream->state();
        const std::lock_guard lock(stream.mutex);
        if (Result<void> opened = stream.open_handle(); !opened) return opened;
        Result<HeldCapture> captured = stream.capture();
        if (!captured) return std::move(captured).error();
        if (*captured && (*captured)->outer) return make_error<errors::allocation_in_body>();
        std::uint64_t elsewhere = 0;  // capture of other code that the allocation becomes part of
        if (stream.external && !*captured) {
            Result<std::uint64_t> foreign = stream.foreign_capture();
            if (!foreign) return std::move(foreign).error();
            elsewhere = *foreign;
        }
        status = take(stream.handle);
        if (elsewhere != 0) {
            if (!status.ok()) return device.failure(status, allocating(request.bytes, asked_));
            allocation.kind = MemoryKind::graph;
            return {};
        }
        if (*captured) {
            if (!status.ok()) return device.failure(status, allocating(request.bytes, asked_));
            (*captured)->graph_memory.emplace_back(&device, allocation);
            (*captured)->allocates = true;
            RecordedOperation operation;
            operation.name = "an allocation";
            (*captured)->add(stream, std::move(operation));
            allocation.kind = MemoryKind::graph;
            return {};
        }
        (void)stream.advance("a pool allocation");
        if (status.ok()) stream.fence_external();
    } else {
        Result<platform::StreamHandle> own = pool->own_stream(device);
        if (!own) return std::move(own).error();
        status = take(*own);
    }
    if (!status.ok()) {
        allocation = {};
        return device.failure(status, allocating(request.bytes, asked_));
    }
    pool->live_bytes.fetch_add(allocation.bytes, std::memory_order_relaxed);
    piece.own()->pool = std::move(pool);
    if (request.stream != nullptr) return {};
    // Usable everywhere at return. Reused pool memory may have to wait for the work that its free was ordered behind.
    Result<void> settled = piece.pool()->settle(device);
    if (!settled) free_or_keep(device, std::exchange(piece, {}), "after an allocation that failed");
    return settled;
}

Result<void> MemorySource::from_system(const AllocationRequest& request, MemoryBlock& block, Piece& piece) {
    DeviceState& device = *device_;
    const std::size_t bytes = request.bytes;
    const bool registers = kind_ == MemoryKind::registered;
    if (!registers && DeviceSlabs::serve(placement_)) return from_slabs(request, block, piece);
    const HostPlacement placement =
        registers ? rules::placement_to_register(device.capabilities, placement_) : placement_;
    Result<platform::os::HostPages> pages =
        platform::os::HostPages::allocate(bytes, placement, device.capabilities.host_numa_node, device.config->machine,
                                          platform::os::SystemCalls::real(), {}, request.alignment);
    if (!pages) return std::move(pages).error();
    auto part = std::make_unique<HostPart>();
    part->pages = std::move(pages).value();
    std::uint64_t address = reinterpret_cast<std::uintptr_t>(part->pages.data());
    if (registers) {
        const platform::Status status =
            device.driver->memory().register_host(part->pages.data(), bytes, false, address);
        part->registered = status.ok() || address == 0;
        Result<void> verified;
        if (!status.ok()) {
            verified = device.failure(status, "registering host memory");
        } else if (device.capabilities.has(Feature::host_page_tables)) {
            verified = part->pages.verify_again();
        }
        if (!verified) {
            Piece undone;
            undone.make_own().host_part = std::move(part);
            free_or_keep(device, std::move(undone), "after an allocation that failed");
            return verified;
        }
    }
    block.host = part->pages.data();
    block.device = address;
    piece.make_own().host_part = std::move(part);
    return {};
}

Result<void> MemorySource::from_slabs(const AllocationRequest& request, MemoryBlock& block, Piece& piece) {
    auto part = std::make_unique<HostPart>();
    part->slabs = device_->slabs.of(*device_, placement_);
    Result<SlabPiece> cut = part->slabs->allocate(request.bytes, request.alignment);
    if (!cut) return std::move(cut).error();
    part->cut = std::move(cut).value();
    block.host = part->cut.data;
    block.device = reinterpret_cast<std::uintptr_t>(block.host);
    piece.make_own().host_part = std::move(part);
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
