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

}  // namespace isthmus::platform::cuda
