// SPDX-License-Identifier: Apache-2.0
// Kernels over a mapped multicast object, which they take by its address.
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

namespace conformance {

// out[i]: the sum of word i of all devices.
ISTHMUS_DECLARE_KERNEL(multimem_sum, isthmus::Index i, isthmus::Out<std::int32_t> out, std::uint64_t object);
// The six combinations of word i, in the order add, min, max, and, or, xor.
ISTHMUS_DECLARE_KERNEL(multimem_combine, isthmus::Index i, isthmus::Out<std::int64_t> out, std::uint64_t object);
// Stores or updates word i of all devices. 0: store; then add, min, max, and, or, xor.
ISTHMUS_DECLARE_KERNEL(multimem_change, isthmus::Index i, std::uint64_t object, std::int32_t operation,
                       std::int32_t value);
// The same as a sum for words of floating point.
ISTHMUS_DECLARE_KERNEL(multimem_sum_floats, isthmus::Index i, isthmus::Out<float> out, std::uint64_t object);

}  // namespace conformance
