// SPDX-License-Identifier: Apache-2.0
// Requests for memory, as the tests of allocators make them.
#pragma once

#include <isthmus/allocator.hpp>

#include <cstddef>

namespace isthmus::testing {

inline AllocationRequest bytes(std::size_t count) {
    AllocationRequest request;
    request.bytes = count;
    return request;
}

}  // namespace isthmus::testing
