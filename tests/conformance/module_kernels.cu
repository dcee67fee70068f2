// SPDX-License-Identifier: Apache-2.0
// Kernels as CUDA C++ has them, for the scenarios of ready-made modules; compiled by nvcc where there is one.
__device__ int bias;

extern "C" __global__ void scale_into(int* out, const int* in, int factor, unsigned count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i] * factor + bias;
}

struct Range {
    short first;
    double by;
};
extern "C" __global__ void add_in_range(char mark, Range range, int* data, unsigned count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && i >= static_cast<unsigned>(range.first)) data[i] += static_cast<int>(range.by) + mark;
}
