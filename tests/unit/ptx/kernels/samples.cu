// SPDX-License-Identifier: Apache-2.0
// Kernels that everybody knows. samples.ptx was made of them:
//     nvcc -ptx -std=c++17 -arch=compute_75 -lineinfo samples.cu
#include <cassert>
#include <cstdio>

#include <cuda_fp16.h>

extern "C" __global__ void add_vectors(const float* a, const float* b, float* c, int count) {
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (at < count) c[at] = a[at] + b[at];
}

constexpr int tile = 8;
extern "C" __global__ void multiply_matrices(const float* a, const float* b, float* c, int width) {
    __shared__ float left[tile][tile], right[tile][tile];
    const int x = static_cast<int>(blockIdx.x) * tile + threadIdx.x, y = static_cast<int>(blockIdx.y) * tile + threadIdx.y;
    float sum = 0;
    for (int part = 0; part < width / tile; ++part) {
        left[threadIdx.y][threadIdx.x] = a[y * width + part * tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(part * tile + threadIdx.y) * width + x];
        __syncthreads();
        for (int k = 0; k < tile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[y * width + x] = sum;
}

extern "C" __global__ void histogram(const unsigned char* data, int count, unsigned* bins) {
    extern __shared__ unsigned own[];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x) atomicAdd(&own[data[at]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) atomicAdd(&bins[bin], own[bin]);
}

extern "C" __global__ void sum_warps(const int* data, int* sums) {
    int value = data[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if ((threadIdx.x & 31) == 0) sums[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = value;
}

// Loops of different lengths within a warp.
extern "C" __global__ void collatz(int* lengths) {
    unsigned long long value = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int length = 0;
    while (value != 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++length;
    }
    lengths[blockIdx.x * blockDim.x + threadIdx.x] = length;
}

__constant__ double factors[3] = {0.5, 2.0, -3.25};
__device__ int launches = 40;
extern "C" __global__ void functions(double* data, int count) {
    const int at = static_cast<int>(threadIdx.x);
    if (at == 0) atomicAdd(&launches, 2);
    if (at < count) data[at] = sin(data[at]) + exp(data[at]) / 3.0 + pow(data[at] + 1.0, 1.5) * factors[at % 3] + sqrtf(data[at]);
}

extern "C" __global__ void halves(const float* data, float* out) {
    const __half value = __float2half(data[threadIdx.x]);
    const __half2 pair = __halves2half2(value, __hadd(value, value));
    const __half2 done = __hfma2(pair, pair, pair);
    out[threadIdx.x] = __low2float(done) + __high2float(done);
}

extern "C" __global__ void print(int value) {
    printf("thread %d of block %d: %d %s %.3f\n", static_cast<int>(threadIdx.x), static_cast<int>(blockIdx.x), value, "text", value / 8.0);
}

extern "C" __global__ void check(int value) {
    assert(value == 7);
}

// Answers each request of the CPU, until it is the last one.
extern "C" __global__ void answer(volatile unsigned* words, unsigned last) {
    for (unsigned round = 1; round <= last; ++round) {
        while (words[0] != round) {
        }
        words[1] = round * round;
        __threadfence_system();
        atomicExch_system(const_cast<unsigned*>(words) + 2, round);
    }
}

extern "C" __global__ void count_up(unsigned* word, int times) {
    for (int time = 0; time < times; ++time) atomicAdd_system(word, 1u);
}

extern "C" __global__ void store(int* place, int step) {
    *reinterpret_cast<int*>(reinterpret_cast<char*>(place) + threadIdx.x * step) = 5;
}
