// SPDX-License-Identifier: Apache-2.0
// Creates pools, allocates from them and trims them.
#include "cuda_pools.hpp"

namespace isthmus::platform::cuda {
namespace {

// The driver's handles are pointers to its objects, so their lowest bit is free; here it marks pools of managed memory.
constexpr std::uintptr_t managed_bit = 1;

bool is_managed(PoolHandle pool) noexcept {
    return (static_cast<std::uintptr_t>(pool) & managed_bit) != 0;
}
CUmemoryPool pool_of(PoolHandle pool) noexcept {
    return reinterpret_cast<CUmemoryPool>(static_cast<std::uintptr_t>(pool) & ~managed_bit);
}
PoolHandle handle_with_kind(CUmemoryPool pool, bool managed) noexcept {
    return static_cast<PoolHandle>(reinterpret_cast<std::uintptr_t>(pool) | (managed ? managed_bit : 0));
}

constexpr int since_most_bytes = 12020;  // CUmemPoolProps::maxSize; before that, reserved and required to be 0
constexpr int since_managed_pools = 13000;

}  // namespace

bool CudaPools::complete(const Api& api) noexcept {
    return api.mem_alloc_async && api.mem_free_async && api.mem_alloc_from_pool_async && api.pool_create &&
           api.pool_destroy && api.pool_trim_to && api.pool_set_attribute && api.pool_get_attribute &&
           api.pool_set_access;
}

// The device holds the memory, or is the preferred location of managed memory.
Status CudaPools::create(const PoolRequest& request, PoolHandle& out) {
    const Api& api = context_.api();
    const bool managed = request.kind == MemoryKind::managed_pool;
    const bool possible = (managed ? api.driver_version >= since_managed_pools : request.kind == MemoryKind::pool) &&
                          (request.max_bytes == 0 || api.driver_version >= since_most_bytes);
    if (!possible) return {Code::unsupported, 0, "cuMemPoolCreate"};
    CUmemPoolProps properties{};
    properties.allocType = managed ? allocation_type::managed : allocation_type::pinned;
    properties.handleTypes = handle_type::none;
    properties.location = {location_type::device, context_.device()};
    properties.maxSize = request.max_bytes;
    CUmemoryPool pool = nullptr;
    Status status = context_.inside("cuMemPoolCreate", [&] { return api.pool_create(&pool, &properties); });
    if (!status.ok()) return status;
    const PoolHandle made = handle_with_kind(pool, managed);
    if (request.release_threshold_bytes != 0) {
        status = set_release_threshold(made, request.release_threshold_bytes);
        if (!status.ok()) {
            (void)destroy(made);
            return status;
        }
    }
    out = made;
    return status;
}

// A pool needs no context and survives all of them (observed: 0 in any state), so it is destroyed in any state.
Status CudaPools::destroy(PoolHandle pool) {
    const CaptureCare care(context_.library());
    const CUresult code = insist([&] { return context_.api().pool_destroy(pool_of(pool)); });
    return context_.library().status(code, "cuMemPoolDestroy");
}

Status CudaPools::allocate(PoolHandle pool, std::size_t bytes, StreamHandle stream, Allocation& out) {
    CUdeviceptr address = 0;
    const Status status = context_.beside_captures("cuMemAllocFromPoolAsync", stream, [&] {
        return context_.api().mem_alloc_from_pool_async(&address, bytes, pool_of(pool), stream_of(stream));
    });
    if (!status.ok()) return status;
    if (is_managed(pool)) {
        out = {MemoryKind::managed_pool, host_pointer(address), address, bytes};
    } else {
        out = {MemoryKind::pool, nullptr, address, bytes};
    }
    return status;
}

Status CudaPools::trim(PoolHandle pool, std::size_t keep_bytes) {
    return context_.anywhere("cuMemPoolTrimTo", [&] { return context_.api().pool_trim_to(pool_of(pool), keep_bytes); });
}

Status CudaPools::usage(PoolHandle pool, PoolUsage& out) {
    PoolUsage usage;
    const std::pair<CUmemPool_attribute, std::uint64_t*> asked[] = {
        {mempool_attribute::reserved_mem_current, &usage.reserved_bytes},
        {mempool_attribute::reserved_mem_high, &usage.reserved_high_bytes},
        {mempool_attribute::used_mem_current, &usage.used_bytes},
        {mempool_attribute::used_mem_high, &usage.used_high_bytes},
    };
    for (const auto& [attribute, value] : asked) {
        const Status status = context_.anywhere("cuMemPoolGetAttribute", [&, id = attribute, to = value] {
            return context_.api().pool_get_attribute(pool_of(pool), id, to);
        });
        if (!status.ok()) return status;
    }
    out = usage;
    return {Code::ok, 0, "cuMemPoolGetAttribute"};
}

// High marks can only be set to 0, which restarts them from now.
Status CudaPools::reset_high_marks(PoolHandle pool) {
    const Status status = set(pool_of(pool), mempool_attribute::reserved_mem_high, 0);
    return status.ok() ? set(pool_of(pool), mempool_attribute::used_mem_high, 0) : status;
}

Status CudaPools::set_release_threshold(PoolHandle pool, std::uint64_t bytes) {
    return set(pool_of(pool), mempool_attribute::release_threshold, bytes);
}

Status CudaPools::set(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t value) {
    return context_.anywhere("cuMemPoolSetAttribute",
                             [&] { return context_.api().pool_set_attribute(pool, attribute, &value); });
}

Status CudaPools::set_access(PoolHandle pool, int ordinal, bool allowed) {
    const DeviceContext* other = context_.library().context(ordinal);
    if (!other) return {Code::wrong_device, 0, "cuMemPoolSetAccess"};
    const CUmemAccessDesc description{{location_type::device, other->device()},
                                      allowed ? access_read_write : access_none};
    return context_.anywhere("cuMemPoolSetAccess",
                             [&] { return context_.api().pool_set_access(pool_of(pool), &description, 1); });
}

}  // namespace isthmus::platform::cuda
