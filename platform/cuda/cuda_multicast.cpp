// SPDX-License-Identifier: Apache-2.0
// Creates, joins, binds and unbinds multicast objects.
#include "cuda_multicast.hpp"

#include "virtual_memory_words.hpp"

namespace isthmus::platform::cuda {
namespace {

CUmulticastObjectProp properties_of(const TeamRequest& request) noexcept {
    CUmulticastObjectProp properties{};
    properties.numDevices = static_cast<unsigned>(request.devices);
    properties.size = request.bytes;
    properties.handleTypes = static_cast<unsigned long long>(handle_types(request.exports));
    return properties;
}

}  // namespace

bool CudaMulticast::complete(const Api& api) noexcept {
    return api.multicast_get_granularity && api.multicast_create && api.multicast_add_device &&
           api.multicast_bind_mem && api.multicast_unbind;
}

Status CudaMulticast::granularity(const TeamRequest& request, Granularity& out) {
    constexpr const char* call = "cuMulticastGetGranularity";
    const CUmulticastObjectProp properties = properties_of(request);
    Granularity found;
    Status status = context_.anywhere(call, [&] {
        return context_.api().multicast_get_granularity(&found.minimum_bytes, &properties, granularity_minimum);
    });
    if (!status.ok()) return status;
    status = context_.anywhere(call, [&] {
        return context_.api().multicast_get_granularity(&found.recommended_bytes, &properties, granularity_recommended);
    });
    if (status.ok()) out = found;
    return status;
}

Status CudaMulticast::create(const TeamRequest& request, PhysicalHandle& out) {
    const CUmulticastObjectProp properties = properties_of(request);
    CUmemGenericAllocationHandle made = 0;
    const Status status =
        context_.anywhere("cuMulticastCreate", [&] { return context_.api().multicast_create(&made, &properties); });
    if (status.ok()) out = static_cast<PhysicalHandle>(made);
    return status;
}

Status CudaMulticast::add_device(PhysicalHandle team) {
    return context_.anywhere("cuMulticastAddDevice", [&] {
        return context_.api().multicast_add_device(driver_handle(team), context_.device());
    });
}

Status CudaMulticast::bind(PhysicalHandle team, std::size_t offset, PhysicalHandle memory, std::size_t memory_offset,
                           std::size_t bytes) {
    return context_.anywhere("cuMulticastBindMem", [&] {
        return context_.api().multicast_bind_mem(driver_handle(team), offset, driver_handle(memory), memory_offset,
                                                 bytes, 0);
    });
}

Status CudaMulticast::bind_address(PhysicalHandle team, std::size_t offset, std::uint64_t address, std::size_t bytes) {
    constexpr const char* call = "cuMulticastBindAddr";
    if (!context_.api().multicast_bind_addr) return {Code::unsupported, 0, call};
    return context_.anywhere(
        call, [&] { return context_.api().multicast_bind_addr(driver_handle(team), offset, address, bytes, 0); });
}

Status CudaMulticast::unbind(PhysicalHandle team, std::size_t offset, std::size_t bytes) {
    return context_.undo("cuMulticastUnbind", [&] {
        return context_.api().multicast_unbind(driver_handle(team), context_.device(), offset, bytes);
    });
}

}  // namespace isthmus::platform::cuda
