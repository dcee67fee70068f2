// SPDX-License-Identifier: Apache-2.0
// Thread block clusters. clusters.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_90 clusters.cu
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

// What each block knows of its cluster.
extern "C" __global__ void describe(unsigned* out) {
    const auto cluster = cg::this_cluster();
    const dim3 own = cluster.block_index(), size = cluster.dim_blocks();
    unsigned group_x, group_y, groups;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(group_x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(group_y));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(groups));
    unsigned to_flag;
    asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(to_flag));
    if (threadIdx.x != 0) return;
    unsigned* const to = out + 8 * (blockIdx.x + gridDim.x * blockIdx.y);
    to[0] = cluster.block_rank();
    to[1] = cluster.num_blocks();
    to[2] = own.x + 100 * own.y;
    to[3] = size.x + 100 * size.y;
    to[4] = group_x + 100 * group_y + 10000 * groups;
    to[5] = cluster.num_threads();
    to[6] = cluster.thread_rank();
    to[7] = to_flag;
}

// Each block writes its numbers, and reads those of the next one.
extern "C" __global__ void exchange(int* out) {
    __shared__ int values[64];
    const auto cluster = cg::this_cluster();
    values[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
    cluster.sync();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    const int* const theirs = cluster.map_shared_rank(values, next);
    out[blockIdx.x * blockDim.x + threadIdx.x] = theirs[blockDim.x - 1 - threadIdx.x];
    cluster.sync();
}

// A histogram whose bins lie in the blocks of the cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) histogram(const unsigned char* in, int n, int* bins) {
    __shared__ int own[64];
    const auto cluster = cg::this_cluster();
    for (unsigned at = threadIdx.x; at < 64; at += blockDim.x) own[at] = 0;
    cluster.sync();
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) {
        const unsigned bin = in[at];
        atomicAdd(cluster.map_shared_rank(own, bin / 64) + bin % 64, 1);
    }
    cluster.sync();
    for (unsigned at = threadIdx.x; at < 64; at += blockDim.x) atomicAdd(&bins[cluster.block_rank() * 64 + at], own[at]);
}

// One barrier of the cluster, split into its halves, and a store into the memory of block 0 in between.
extern "C" __global__ void split(int* out) {
    __shared__ int sums[4];
    const auto cluster = cg::this_cluster();
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    cluster.sync();
    if (threadIdx.x == 0) *cluster.map_shared_rank(&sums[cluster.block_rank()], 0) = 10 + cluster.block_rank();
    cluster.barrier_arrive();
    cluster.barrier_wait();
    if (cluster.block_rank() == 0 && threadIdx.x < cluster.num_blocks()) out[threadIdx.x] = sums[threadIdx.x];
}

extern "C" __global__ void beyond(int* out, int at) {
    __shared__ int values[64];
    const auto cluster = cg::this_cluster();
    values[threadIdx.x] = 1;
    cluster.sync();
    out[threadIdx.x] = cluster.map_shared_rank(values, 0)[at];
    cluster.sync();
}
extern "C" __global__ void after_its_end(int* out) {
    __shared__ int values[64];
    const auto cluster = cg::this_cluster();
    values[threadIdx.x] = 1;
    cluster.sync();
    if (cluster.block_rank() == 0) return;
    for (int wait = 0; wait < 20000; ++wait) __nanosleep(1);
    out[threadIdx.x] = cluster.map_shared_rank(values, 0)[threadIdx.x];
}
