// SPDX-License-Identifier: Apache-2.0
// cuda::barrier, cuda::pipeline and memcpy_async. barriers_80.ptx and barriers_90.ptx were made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_80 barriers.cu
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void barriers(int* data, int rounds) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    __shared__ int x[256];
    for (int r = 0; r < rounds; ++r) {
        x[threadIdx.x] = data[threadIdx.x];
        auto token = bar.arrive();
        bar.wait(std::move(token));
        int y = x[(threadIdx.x + 1) % blockDim.x];
        bar.arrive_and_wait();
        data[threadIdx.x] = y;
    }
}
extern "C" __global__ void async_barrier(const int* in, int* out, int n) {
    __shared__ int x[1024];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, x, in, sizeof(int) * n, bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[n - 1 - i];
}
extern "C" __global__ void async_aligned(const int* in, int* out, int n) {
    __shared__ alignas(16) int x[1024];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, x, in, cuda::aligned_size_t<16>(sizeof(int) * n), bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[n - 1 - i];
}
extern "C" __global__ void pipelined(const int* in, int* out, int batches) {
    constexpr int stages = 2;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int x[stages][128];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int fetch = 0;
    for (int b = 0; b < batches; ++b) {
        for (; fetch < batches && fetch < b + stages; ++fetch) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, x[fetch % stages], in + fetch * 128, sizeof(int) * 128, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[b * 128 + threadIdx.x] = x[b % stages][127 - threadIdx.x] * 2;
        pipe.consumer_release();
    }
}
extern "C" __global__ void thread_pipe(const int4* in, int4* out) {
    __shared__ int4 x[64];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&x[threadIdx.x], &in[threadIdx.x], cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    out[threadIdx.x] = x[threadIdx.x];
    pipe.consumer_release();
}
extern "C" __global__ void groups_copy(const int* in, int* out, int n) {
    __shared__ int x[1024];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, x, in, sizeof(int) * n);
    cg::wait(block);
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[n - 1 - i];
}
