// SPDX-License-Identifier: Apache-2.0
// One driver call per copy, fill and hint; a fill of several slices takes one per slice.
#include "cuda_transfers.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace isthmus::platform::cuda {
namespace {

CUDA_MEMCPY2D copy_2d(const CopySide& to, const CopySide& from, const CopyExtent& extent) noexcept {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = from.host ? memory_type_host : memory_type_device;
    if (from.host) copy.srcHost = host_pointer(from.address);
    if (!from.host) copy.srcDevice = from.address;
    copy.srcPitch = from.row_pitch_bytes;
    copy.dstMemoryType = to.host ? memory_type_host : memory_type_device;
    if (to.host) copy.dstHost = host_pointer(to.address);
    if (!to.host) copy.dstDevice = to.address;
    copy.dstPitch = to.row_pitch_bytes;
    copy.WidthInBytes = extent.width_bytes;
    copy.Height = extent.rows;
    return copy;
}

// Fills CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER; the second also has contexts.
template <class Copy>
Copy copy_3d(const CopySide& to, const CopySide& from, const CopyExtent& extent) noexcept {
    Copy copy{};
    copy.srcMemoryType = from.host ? memory_type_host : memory_type_device;
    if (from.host) copy.srcHost = host_pointer(from.address);
    if (!from.host) copy.srcDevice = from.address;
    copy.srcPitch = from.row_pitch_bytes;
    copy.srcHeight = from.slice_rows;
    copy.dstMemoryType = to.host ? memory_type_host : memory_type_device;
    if (to.host) copy.dstHost = host_pointer(to.address);
    if (!to.host) copy.dstDevice = to.address;
    copy.dstPitch = to.row_pitch_bytes;
    copy.dstHeight = to.slice_rows;
    copy.WidthInBytes = extent.width_bytes;
    copy.Height = extent.rows;
    copy.Depth = extent.slices;
    return copy;
}

CUmem_advise advice_of(Advice advice) noexcept {
    switch (advice) {
        case Advice::read_mostly: return mem_advise::set_read_mostly;
        case Advice::not_read_mostly: return mem_advise::unset_read_mostly;
        case Advice::prefer: return mem_advise::set_preferred_location;
        case Advice::no_preference: return mem_advise::unset_preferred_location;
        case Advice::accessed_by: return mem_advise::set_accessed_by;
        case Advice::not_accessed_by: return mem_advise::unset_accessed_by;
    }
    return 0;
}

CUmemLocation location_of(const Place& place) noexcept {
    if (place.ordinal >= 0) return {location_type::device, place.ordinal};
    if (place.host_node >= 0) return {location_type::host_numa, place.host_node};
    return {location_type::host, 0};
}
// Before 12.2 the driver knows the host only as a whole, which suffices for a hint.
CUdevice device_of(const Place& place) noexcept {
    return place.ordinal >= 0 ? place.ordinal : device_cpu;
}
std::optional<Place> place_of(int type, int id) noexcept {
    if (type == location_type::device) return Place{id, -1};
    if (type == location_type::host_numa) return Place{-1, id};
    if (type == location_type::host) return Place{};
    return std::nullopt;
}
std::optional<Place> place_of(CUdevice device) noexcept {
    if (device == device_cpu) return Place{};
    return device >= 0 ? std::optional<Place>(Place{device, -1}) : std::nullopt;
}

// A batch in the driver's words: each entry of `places` is for the ranges from `first_of` on.
struct Batch {
    Batch(const HintedRange* ranges, std::size_t count) {
        for (std::size_t at = 0; at < count; ++at) {
            addresses.push_back(ranges[at].address);
            sizes.push_back(ranges[at].bytes);
            const CUmemLocation place = location_of(ranges[at].place);
            if (at != 0 && places.back().type == place.type && places.back().id == place.id) continue;
            places.push_back(place);
            first_of.push_back(at);
        }
    }
    std::vector<CUdeviceptr> addresses;
    std::vector<std::size_t> sizes;
    std::vector<CUmemLocation> places;
    std::vector<std::size_t> first_of;
};

}  // namespace

Status CudaTransfers::copy_shaped(const CopySide& destination, const CopySide& source, const CopyExtent& extent,
                                  StreamHandle stream) {
    if (extent.slices == 1) {
        const CUDA_MEMCPY2D copy = copy_2d(destination, source, extent);
        return context_.moves("cuMemcpy2DAsync_v2", stream,
                              [&] { return context_.api().memcpy_2d_async(&copy, stream_of(stream)); });
    }
    const auto copy = copy_3d<CUDA_MEMCPY3D>(destination, source, extent);
    return context_.moves("cuMemcpy3DAsync_v2", stream,
                          [&] { return context_.api().memcpy_3d_async(&copy, stream_of(stream)); });
}

Status CudaTransfers::context_of(int ordinal, const char* call, CUcontext& out) const {
    DeviceContext* context = context_.library().context(ordinal);
    return context ? context->handle(out) : Status{Code::wrong_device, 0, call};
}

Status CudaTransfers::copy_between(std::uint64_t destination, int destination_ordinal, std::uint64_t source,
                                   int source_ordinal, std::size_t bytes, StreamHandle stream) {
    const char* const call = "cuMemcpyPeerAsync";
    CUcontext to = nullptr;
    CUcontext from = nullptr;
    if (Status found = context_of(destination_ordinal, call, to); !found.ok()) return found;
    if (Status found = context_of(source_ordinal, call, from); !found.ok()) return found;
    return context_.on_stream(call, stream, [&] {
        return context_.api().memcpy_peer_async(destination, to, source, from, bytes, stream_of(stream));
    });
}

Status CudaTransfers::copy_shaped_between(const CopySide& destination, int destination_ordinal, const CopySide& source,
                                          int source_ordinal, const CopyExtent& extent, StreamHandle stream) {
    const char* const call = "cuMemcpy3DPeerAsync";
    auto copy = copy_3d<CUDA_MEMCPY3D_PEER>(destination, source, extent);
    if (Status found = context_of(destination_ordinal, call, copy.dstContext); !found.ok()) return found;
    if (Status found = context_of(source_ordinal, call, copy.srcContext); !found.ok()) return found;
    return context_.on_stream(call, stream,
                              [&] { return context_.api().memcpy_3d_peer_async(&copy, stream_of(stream)); });
}

Status CudaTransfers::fill_elements(std::uint64_t destination, std::uint32_t value, std::size_t element_bytes,
                                    std::size_t count, StreamHandle stream) {
    const Api& api = context_.api();
    const CUstream on = stream_of(stream);
    switch (element_bytes) {
        case 1:
            return context_.moves("cuMemsetD8Async", stream, [&] {
                return api.memset_d8_async(destination, static_cast<unsigned char>(value), count, on);
            });
        case 2:
            return context_.moves("cuMemsetD16Async", stream, [&] {
                return api.memset_d16_async(destination, static_cast<unsigned short>(value), count, on);
            });
        case 4:
            return context_.moves("cuMemsetD32Async", stream,
                                  [&] { return api.memset_d32_async(destination, value, count, on); });
        default: return {Code::invalid_argument, 0, "cuMemsetD32Async"};
    }
}

// The driver fills rows only. Slices without a gap between them count as more rows.
Status CudaTransfers::fill_shaped(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                                  const CopyExtent& extent, StreamHandle stream) {
    const std::size_t width = element_bytes == 0 ? 0 : extent.width_bytes / element_bytes;
    const std::size_t pitch = destination.row_pitch_bytes;
    if (extent.slices == 1 || destination.slice_rows == extent.rows) {
        return fill_rows(destination.address, pitch, value, element_bytes, width, extent.rows * extent.slices, stream);
    }
    Status status;
    for (std::size_t slice = 0; slice < extent.slices && status.ok(); ++slice) {
        const CUdeviceptr first = destination.address + slice * destination.slice_rows * pitch;
        status = fill_rows(first, pitch, value, element_bytes, width, extent.rows, stream);
    }
    return status;
}

Status CudaTransfers::fill_rows(CUdeviceptr first, std::size_t pitch_bytes, std::uint32_t value,
                                std::size_t element_bytes, std::size_t width, std::size_t rows, StreamHandle stream) {
    const Api& api = context_.api();
    const CUstream on = stream_of(stream);
    switch (element_bytes) {
        case 1:
            return context_.moves("cuMemsetD2D8Async", stream, [&] {
                return api.memset_2d_d8_async(first, pitch_bytes, static_cast<unsigned char>(value), width, rows, on);
            });
        case 2:
            return context_.moves("cuMemsetD2D16Async", stream, [&] {
                return api.memset_2d_d16_async(first, pitch_bytes, static_cast<unsigned short>(value), width, rows, on);
            });
        case 4:
            return context_.moves("cuMemsetD2D32Async", stream,
                                  [&] { return api.memset_2d_d32_async(first, pitch_bytes, value, width, rows, on); });
        default: return {Code::invalid_argument, 0, "cuMemsetD2D32Async"};
    }
}

// Capturing streams refuse a prefetch (900, observed); on other streams it does not affect the capture.
Status CudaTransfers::prefetch(std::uint64_t address, std::size_t bytes, const Place& place, StreamHandle stream) {
    const Api& api = context_.api();
    const CUstream on = stream_of(stream);
    if (api.prefetch_to_location) {
        return context_.beside_captures("cuMemPrefetchAsync_v2", stream, [&] {
            return api.prefetch_to_location(address, bytes, location_of(place), 0, on);
        });
    }
    if (!api.prefetch_to_device) return {Code::unsupported, 0, "cuMemPrefetchAsync"};
    return context_.beside_captures("cuMemPrefetchAsync", stream,
                                    [&] { return api.prefetch_to_device(address, bytes, device_of(place), on); });
}

Status CudaTransfers::advise(std::uint64_t address, std::size_t bytes, Advice advice, const Place& place) {
    const Api& api = context_.api();
    if (api.advise_location) {
        return context_.inside("cuMemAdvise_v2", [&] {
            return api.advise_location(address, bytes, advice_of(advice), location_of(place));
        });
    }
    if (!api.advise_device) return {Code::unsupported, 0, "cuMemAdvise"};
    return context_.inside("cuMemAdvise",
                           [&] { return api.advise_device(address, bytes, advice_of(advice), device_of(place)); });
}

// The batches do not accept the default stream (documented), which the runtime never passes.
Status CudaTransfers::prefetch_batch(const HintedRange* ranges, std::size_t count, StreamHandle stream) {
    constexpr const char* call = "cuMemPrefetchBatchAsync";
    const Api& api = context_.api();
    if (!api.prefetch_batch) return {Code::unsupported, 0, call};
    Batch batch(ranges, count);
    return context_.beside_captures(call, stream, [&] {
        return api.prefetch_batch(batch.addresses.data(), batch.sizes.data(), count, batch.places.data(),
                                  batch.first_of.data(), batch.places.size(), 0, stream_of(stream));
    });
}

Status CudaTransfers::discard_batch(const HintedRange* ranges, std::size_t count, bool prefetch, StreamHandle stream) {
    const char* const call = prefetch ? "cuMemDiscardAndPrefetchBatchAsync" : "cuMemDiscardBatchAsync";
    const Api& api = context_.api();
    if (prefetch ? !api.discard_and_prefetch_batch : !api.discard_batch) return {Code::unsupported, 0, call};
    Batch batch(ranges, count);
    CUdeviceptr* const addresses = batch.addresses.data();
    std::size_t* const sizes = batch.sizes.data();
    return context_.beside_captures(call, stream, [&] {
        return prefetch
                   ? api.discard_and_prefetch_batch(addresses, sizes, count, batch.places.data(), batch.first_of.data(),
                                                    batch.places.size(), 0, stream_of(stream))
                   : api.discard_batch(addresses, sizes, count, 0, stream_of(stream));
    });
}

// Drivers before 12.2 do not tell nodes of the host. The list of devices has room for every device of the process.
Status CudaTransfers::advice(std::uint64_t address, std::size_t bytes, AdviceFacts& out) {
    constexpr const char* call = "cuMemRangeGetAttributes";
    const Api& api = context_.api();
    if (!api.range_get_attributes) return {Code::unsupported, 0, call};
    const bool locations = api.advise_location != nullptr;
    int read_mostly = 0;
    int preferred[2] = {};  // type and id
    int prefetched[2] = {};
    int preferred_device = device_invalid, prefetched_device = device_invalid;
    std::vector<int> accessed_by(context_.library().contexts.size(), device_invalid);
    namespace ask = range_attribute;
    CUmem_range_attribute asked[] = {ask::read_mostly,
                                     ask::accessed_by,
                                     ask::preferred_location,
                                     ask::last_prefetch_location,
                                     ask::preferred_location_type,
                                     ask::preferred_location_id,
                                     ask::last_prefetch_location_type,
                                     ask::last_prefetch_location_id};
    void* answers[] = {&read_mostly,  accessed_by.data(), &preferred_device, &prefetched_device,
                       &preferred[0], &preferred[1],      &prefetched[0],    &prefetched[1]};
    std::size_t sizes[] = {
        sizeof(int), accessed_by.size() * sizeof(int), sizeof(int), sizeof(int), sizeof(int), sizeof(int), sizeof(int),
        sizeof(int)};
    const Status status = context_.anywhere(
        call, [&] { return api.range_get_attributes(answers, sizes, asked, locations ? 8 : 4, address, bytes); });
    if (!status.ok()) return status;
    out.read_mostly = read_mostly != 0;
    out.accessed = std::find(accessed_by.begin(), accessed_by.end(), context_.device()) != accessed_by.end();
    // After advice for the host, driver 580.159.04 told no type of the preferred place (H100). Whether it tells the
    // older device number there has not been observed.
    out.preferred = place_of(preferred[0], preferred[1]);
    out.prefetched = place_of(prefetched[0], prefetched[1]);
    if (!out.preferred) out.preferred = place_of(preferred_device);
    if (!out.prefetched) out.prefetched = place_of(prefetched_device);
    return status;
}

Status CudaTransfers::can_reach(int other_ordinal, bool& out) {
    const char* const call = "cuDeviceCanAccessPeer";
    const DeviceContext* other = context_.library().context(other_ordinal);
    if (!other) return {Code::wrong_device, 0, call};
    int can = 0;
    const CUresult code = context_.api().device_can_access_peer(&can, context_.device(), other->device());
    if (code == result::success) out = can != 0;
    return context_.library().status(code, call);
}

// Other code of the process may have set the access of this context: already as requested counts as success.
Status CudaTransfers::set_peer_access(int other_ordinal, bool allowed) {
    const char* const call = allowed ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess";
    CUcontext other = nullptr;
    if (Status found = context_of(other_ordinal, call, other); !found.ok()) return found;
    const Api& api = context_.api();
    const Status status = context_.inside(call, [&] {
        return allowed ? api.context_enable_peer_access(other, 0) : api.context_disable_peer_access(other);
    });
    const bool already =
        status.driver_code == (allowed ? result::peer_access_already_enabled : result::peer_access_not_enabled);
    return already ? Status{Code::ok, 0, call} : status;
}

}  // namespace isthmus::platform::cuda
