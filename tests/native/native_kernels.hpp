// SPDX-License-Identifier: Apache-2.0
// What native_kernels.cu offers to code that nvcc does not read.
#pragma once

#include <cstddef>

// Multiplies the numbers, on the CUstream. Returns a cudaError_t.
int scale_on(void* cu_stream, float* data, float by, std::size_t count);
