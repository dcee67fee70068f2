// SPDX-License-Identifier: Apache-2.0
// What the driver is asked for physical memory: what it can create, granularities, imports.
#include "virtual_memory_state.hpp"

#include "mapping_errors.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr int compression_supported = 107;  // CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED
constexpr int rdma_supported = 110;         // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
constexpr int sparse_arrays = 112;          // CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED
constexpr int decompression = 136;          // CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK

}  // namespace

rules::CreationFacts creation_facts(const DeviceState& device) {
    const DeviceFacts& facts = device.driver->facts();
    return {device.driver->virtual_memory() != nullptr, facts.attribute(compression_supported).value_or(0) == 1,
            facts.attribute(rdma_supported).value_or(0) == 1, facts.attribute(sparse_arrays).value_or(0) == 1,
            facts.attribute(decompression).value_or(0) != 0};
}

rules::CreationWish creation_wish(const PhysicalOptions& options) {
    return {options.where, options.exports, options.compressible, options.gpudirect_rdma, options.usage};
}

platform::PhysicalRequest request_of(const DeviceState& device, std::size_t bytes, const PhysicalOptions& options) {
    platform::PhysicalRequest request;
    request.place.where = options.where;
    if (options.where == MemoryPlace::Where::device) request.place.id = device.driver->facts().ordinal;
    if (options.where == MemoryPlace::Where::host_node) {
        request.place.id = options.node >= 0 ? options.node : std::max(device.capabilities.host_numa_node, 0);
    }
    request.bytes = bytes;
    request.exports = options.exports;
    request.compressible = options.compressible;
    request.gpudirect_rdma = options.gpudirect_rdma;
    request.usage = options.usage;
    return request;
}

Result<platform::Granularity> ask_granularity(DeviceState& device, const PhysicalOptions& options) {
    platform::Granularity found;
    const platform::Status status = device.driver->virtual_memory()->granularity(request_of(device, 0, options), found);
    if (!status.ok()) return device.failure(status, "asking for the granularity of memory");
    if (found.minimum_bytes != 0) return found;
    return make_error<errors::driver_tells_no_granularity>();
}

Result<platform::PhysicalHandle> import_fd(DeviceState& device, const FileDescriptor& fd, std::string_view what) {
    if (!fd) return make_error<errors::import_without_descriptor>(what);
    platform::PhysicalHandle handle = platform::PhysicalHandle::none;
    const platform::Status status = device.driver->virtual_memory()->import_fd(fd.get(), handle);
    if (!status.ok()) return not_imported(device, status, what);
    return handle;
}

// For a wrong handle the driver answers only "unknown" (999).
Error not_imported(DeviceState& device, const platform::Status& status, std::string_view what) {
    Error why = device.failure(status, what);
    if (why.code() != Code::driver_error && why.code() != Code::invalid_argument) return why;
    return make_error<errors::imported_handle_unknown_to_driver>(what, why.message())
        .from_call(why.call(), why.driver_code());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
