// SPDX-License-Identifier: Apache-2.0
// Memory of one CUDA device: one driver call per function, or two that belong together.
#include "cuda_memory.hpp"

#include <cstring>

namespace isthmus::platform::cuda {
namespace {

unsigned attach_flag(Attachment attachment) noexcept {
    switch (attachment) {
        case Attachment::global: return mem_attach_global;
        case Attachment::host: return mem_attach_host;
        case Attachment::stream: return mem_attach_single;
    }
    return mem_attach_global;
}

}  // namespace

Status CudaMemory::allocate(MemoryKind kind, std::size_t bytes, Attachment attachment, StreamHandle stream,
                            Allocation& out) {
    const Api& api = context_.api();
    CUdeviceptr address = 0;
    Status status;
    switch (kind) {
        case MemoryKind::device:
            status = context_.inside("cuMemAlloc_v2", [&] { return api.mem_alloc(&address, bytes); });
            break;
        case MemoryKind::pool:
            if (!api.mem_alloc_async || !api.mem_free_async) return {Code::unsupported, 0, "cuMemAllocAsync"};
            status = context_.beside_captures("cuMemAllocAsync", stream,
                                              [&] { return api.mem_alloc_async(&address, bytes, stream_of(stream)); });
            break;
        case MemoryKind::managed: return allocate_managed(bytes, attachment, stream, out);
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return allocate_host(kind, bytes, out);
        default: return {Code::unsupported, 0, "allocate"};
    }
    if (status.ok()) out = {kind, nullptr, address, bytes};
    return status;
}

// The driver allocates managed memory as global or host only; attaching to a stream is a second step.
Status CudaMemory::allocate_managed(std::size_t bytes, Attachment attachment, StreamHandle stream, Allocation& out) {
    const unsigned flag = attachment == Attachment::global ? mem_attach_global : mem_attach_host;
    CUdeviceptr address = 0;
    Status status =
        context_.inside("cuMemAllocManaged", [&] { return context_.api().mem_alloc_managed(&address, bytes, flag); });
    if (!status.ok()) return status;
    const Allocation made{MemoryKind::managed, host_pointer(address), address, bytes};
    if (attachment == Attachment::stream) status = attach(made, attachment, stream);
    out = made;
    return status;
}

// PORTABLE, so that every device of the process can access it; the device address is queried, because it may differ
// (attribute 91 = 0, write-combined memory).
Status CudaMemory::allocate_host(MemoryKind kind, std::size_t bytes, Allocation& out) {
    const Api& api = context_.api();
    unsigned flags = host_alloc_portable | host_alloc_device_map;
    if (kind == MemoryKind::write_combined) flags |= host_alloc_write_combined;
    void* host = nullptr;
    Status status = context_.inside("cuMemHostAlloc", [&] { return api.mem_host_alloc(&host, bytes, flags); });
    if (!status.ok()) return status;
    CUdeviceptr address = 0;
    status = context_.inside("cuMemHostGetDevicePointer_v2",
                             [&] { return api.mem_host_get_device_pointer(&address, host, 0); });
    out = {kind, host, address, bytes};
    return status;
}

Status CudaMemory::release(const Allocation& allocation, StreamHandle stream) {
    const Api& api = context_.api();
    switch (allocation.kind) {
        case MemoryKind::device:
        case MemoryKind::managed:
            return context_.give_back("cuMemFree_v2", [&] { return api.mem_free(allocation.device); });
        case MemoryKind::pool:
        case MemoryKind::managed_pool: return release_to_pool(allocation.device, stream);
        case MemoryKind::imported:
            return context_.give_back("cuIpcCloseMemHandle",
                                      [&] { return api.ipc_close_mem_handle(allocation.device); });
        case MemoryKind::pinned:
        case MemoryKind::write_combined:
            return context_.give_back("cuMemFreeHost", [&] { return api.mem_free_host(allocation.host); });
        default: return {Code::unsupported, 0, "release"};
    }
}

// Pool memory is the only kind that survives its context (observed), so it is freed in any case (K11).
Status CudaMemory::release_to_pool(CUdeviceptr address, StreamHandle stream) {
    const Api& api = context_.api();
    if (!api.mem_free_async) return {Code::unsupported, 0, "cuMemFreeAsync"};
    const auto free = [&] { return api.mem_free_async(address, stream_of(stream)); };
    const Status status = insist([&] { return context_.beside_captures("cuMemFreeAsync", stream, free); });
    if (status.ok() || !context_.known_dead()) return status;
    return context_.release_after_death("cuMemFreeAsync", [&] { return api.mem_free_async(address, nullptr); });
}

Status CudaMemory::register_host(void* host, std::size_t bytes, bool read_only, std::uint64_t& device) {
    const Api& api = context_.api();
    unsigned flags = host_register_portable | host_register_device_map;
    if (read_only) flags |= host_register_read_only;
    Status status = context_.inside("cuMemHostRegister_v2", [&] { return api.mem_host_register(host, bytes, flags); });
    if (!status.ok()) return status;
    CUdeviceptr address = 0;
    status = context_.inside("cuMemHostGetDevicePointer_v2",
                             [&] { return api.mem_host_get_device_pointer(&address, host, 0); });
    device = status.ok() ? address : 0;
    return status;
}

Status CudaMemory::unregister_host(void* host) {
    return context_.give_back("cuMemHostUnregister", [&] { return context_.api().mem_host_unregister(host); });
}

Status CudaMemory::share(std::uint64_t address, SharedHandle& out) {
    if (!context_.api().ipc_get_mem_handle) return {Code::unsupported, 0, "cuIpcGetMemHandle"};
    CUipcMemHandle made{};
    const Status status =
        context_.inside("cuIpcGetMemHandle", [&] { return context_.api().ipc_get_mem_handle(&made, address); });
    if (status.ok()) std::memcpy(out.data(), made.reserved, sizeof(made.reserved));
    return status;
}

// The flag is mandatory: without it the driver answers 1.
Status CudaMemory::open_shared(const SharedHandle& handle, Allocation& out) {
    const Api& api = context_.api();
    if (!api.ipc_open_mem_handle || !api.ipc_close_mem_handle) return {Code::unsupported, 0, "cuIpcOpenMemHandle"};
    CUipcMemHandle theirs{};
    std::memcpy(theirs.reserved, handle.data(), sizeof(theirs.reserved));
    CUdeviceptr address = 0;
    const Status status = context_.inside("cuIpcOpenMemHandle_v2", [&] {
        return api.ipc_open_mem_handle(&address, theirs, ipc_mem_lazy_enable_peer_access);
    });
    if (status.ok()) out = {MemoryKind::imported, nullptr, address, 0};
    return status;
}

Status CudaMemory::export_dma_buf(std::uint64_t address, std::size_t bytes, int& out) {
    const Api& api = context_.api();
    if (!api.mem_get_handle_for_address_range) return {Code::unsupported, 0, "cuMemGetHandleForAddressRange"};
    int descriptor = -1;
    const Status status = context_.inside("cuMemGetHandleForAddressRange", [&] {
        return api.mem_get_handle_for_address_range(&descriptor, address, bytes, mem_range_handle_dma_buf_fd, 0);
    });
    if (status.ok()) out = descriptor;
    return status;
}

// The header says nothing of the descriptor's ownership for dma-bufs, so it stays the caller's.
Status CudaMemory::import_dma_buf(int descriptor, std::uint64_t bytes, ImportedDmaBuf& out) {
    const Api& api = context_.api();
    if (!api.import_external_memory || !api.external_memory_get_mapped_buffer || !api.destroy_external_memory) {
        return {Code::unsupported, 0, "cuImportExternalMemory"};
    }
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
    from.type = external_memory_dma_buf_fd;
    from.handle.fd = descriptor;
    from.size = bytes;
    CUexternalMemory memory = nullptr;
    Status status =
        context_.inside("cuImportExternalMemory", [&] { return api.import_external_memory(&memory, &from); });
    if (!status.ok()) return status;
    out.memory = reinterpret_cast<std::uintptr_t>(memory);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC range{};
    range.size = bytes;
    CUdeviceptr address = 0;
    status = context_.inside("cuExternalMemoryGetMappedBuffer",
                             [&] { return api.external_memory_get_mapped_buffer(&address, memory, &range); });
    if (status.ok()) out.device = address;
    return status;
}

Status CudaMemory::release_dma_buf(ImportedDmaBuf& imported) {
    const Api& api = context_.api();
    if (imported.device != 0) {
        const Status freed = context_.give_back("cuMemFree_v2", [&] { return api.mem_free(imported.device); });
        if (!freed.ok()) return freed;
        imported.device = 0;
    }
    const Status ended = context_.give_back("cuDestroyExternalMemory", [&] {
        return api.destroy_external_memory(reinterpret_cast<CUexternalMemory>(imported.memory));
    });
    if (ended.ok()) imported.memory = 0;
    return ended;
}

Status CudaMemory::copy(std::uint64_t destination, std::uint64_t source, std::size_t bytes, CopyDirection direction,
                        StreamHandle stream) {
    const Api& api = context_.api();
    const CUstream on = stream_of(stream);
    switch (direction) {
        case CopyDirection::host_to_device:
            return context_.moves("cuMemcpyHtoDAsync_v2", stream,
                                  [&] { return api.memcpy_htod_async(destination, host_pointer(source), bytes, on); });
        case CopyDirection::device_to_host:
            return context_.moves("cuMemcpyDtoHAsync_v2", stream,
                                  [&] { return api.memcpy_dtoh_async(host_pointer(destination), source, bytes, on); });
        case CopyDirection::device_to_device:
            return context_.moves("cuMemcpyDtoDAsync_v2", stream,
                                  [&] { return api.memcpy_dtod_async(destination, source, bytes, on); });
        case CopyDirection::host_to_host: break;
    }
    return context_.moves("cuMemcpyAsync", stream, [&] { return api.memcpy_async(destination, source, bytes, on); });
}

Status CudaMemory::fill(std::uint64_t destination, std::uint8_t value, std::size_t bytes, StreamHandle stream) {
    return context_.moves("cuMemsetD8Async", stream,
                          [&] { return context_.api().memset_d8_async(destination, value, bytes, stream_of(stream)); });
}

// Attachments apply to whole allocations: length 0 means that.
Status CudaMemory::attach(const Allocation& allocation, Attachment attachment, StreamHandle stream) {
    return context_.beside_captures("cuStreamAttachMemAsync", stream, [&] {
        return context_.api().stream_attach_mem_async(stream_of(stream), allocation.device, 0, attach_flag(attachment));
    });
}

// Allocated and registered page-locked memory cannot be told apart: cuMemHostGetFlags gives both the same flags
// (observed on driver 580). Both are reported as pinned; only write-combined memory is distinguishable.
MemoryKind CudaMemory::host_kind(void* host) {
    if (!context_.api().mem_host_get_flags) return MemoryKind::pinned;
    unsigned flags = 0;
    const Status status =
        context_.inside("cuMemHostGetFlags", [&] { return context_.api().mem_host_get_flags(&flags, host); });
    return status.ok() && (flags & host_alloc_write_combined) ? MemoryKind::write_combined : MemoryKind::pinned;
}

// The plural call answers success and empty values for an unknown address; the singular one fails. The pool handle is
// queried last: attribute 17 is newer (11.3) than the others.
Status CudaMemory::pointer_facts(std::uint64_t address, PointerFacts& out) {
    CUmemorytype type = 0;
    unsigned managed = 0;
    int ordinal = -1;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUdeviceptr there = 0;
    CUmemoryPool pool = nullptr;
    CUpointer_attribute asked[] = {pointer_attribute::memory_type,    pointer_attribute::is_managed,
                                   pointer_attribute::device_ordinal, pointer_attribute::range_start_addr,
                                   pointer_attribute::range_size,     pointer_attribute::device_pointer,
                                   pointer_attribute::mempool_handle};
    void* answers[] = {&type, &managed, &ordinal, &base, &bytes, &there, &pool};
    const Status status = context_.anywhere(
        "cuPointerGetAttributes", [&] { return context_.api().pointer_get_attributes(7, asked, answers, address); });
    out = {};
    if (!status.ok() || type == 0) return status;
    if (managed) {
        out.kind = pool ? MemoryKind::managed_pool : MemoryKind::managed;
    } else if (type == memory_type_host) {
        out.kind = host_kind(host_pointer(address));
    } else if (type == memory_type_device) {
        out.kind = pool ? MemoryKind::pool : MemoryKind::device;
    }
    out.ordinal = ordinal < 0 ? -1 : ordinal;
    out.base = base;
    out.bytes = bytes;
    out.device = there;
    return status;
}

void CudaMemory::lend(std::uint64_t device, std::size_t bytes, StreamHandle stream) noexcept {
    const isthmus_sim_lend_fn tell = context_.library().lend_simulated;
    if (tell != nullptr) tell(device, bytes, stream_of(stream));
}

bool CudaMemory::lends() const noexcept {
    return context_.library().lend_simulated != nullptr || context_.library().lend_part_simulated != nullptr;
}

void CudaMemory::lend_part(std::uint64_t device, std::size_t bytes, std::size_t usable_bytes) noexcept {
    const isthmus_sim_lend_part_fn tell = context_.library().lend_part_simulated;
    if (tell != nullptr) tell(device, bytes, usable_bytes);
}

Status CudaMemory::memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) {
    std::size_t free_now = 0;
    std::size_t total = 0;
    const Status status =
        context_.inside("cuMemGetInfo_v2", [&] { return context_.api().mem_get_info(&free_now, &total); });
    if (status.ok()) {
        free_bytes = free_now;
        total_bytes = total;
    }
    return status;
}

}  // namespace isthmus::platform::cuda
