// SPDX-License-Identifier: Apache-2.0
// Converts virtual-memory terms to the driver's types, for the facets that use them.
#pragma once

#include "abi.hpp"

#include <platform/virtual_memory.hpp>

namespace isthmus::platform::cuda {

inline CUmemGenericAllocationHandle driver_handle(PhysicalHandle memory) noexcept {
    return static_cast<CUmemGenericAllocationHandle>(memory);
}

inline CUmemAllocationHandleType handle_types(ExportKinds exports) noexcept {
    int types = handle_type::none;
    if (includes(exports, ExportKinds::posix_fd)) types |= handle_type::posix_file_descriptor;
    if (includes(exports, ExportKinds::fabric)) types |= handle_type::fabric;
    return static_cast<CUmemAllocationHandleType>(types);
}

inline unsigned short usage_bits(PhysicalUsage usage) noexcept {
    unsigned bits = 0;
    if (includes(usage, PhysicalUsage::tile_pool)) bits |= usage_tile_pool;
    if (includes(usage, PhysicalUsage::hardware_decompress)) bits |= usage_hardware_decompress;
    return static_cast<unsigned short>(bits);
}
inline PhysicalUsage usage_of(unsigned short bits) noexcept {
    PhysicalUsage usage = PhysicalUsage::none;
    if ((bits & usage_tile_pool) != 0) usage = usage | PhysicalUsage::tile_pool;
    if ((bits & usage_hardware_decompress) != 0) usage = usage | PhysicalUsage::hardware_decompress;
    return usage;
}

}  // namespace isthmus::platform::cuda
