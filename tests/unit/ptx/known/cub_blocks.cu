// SPDX-License-Identifier: Apache-2.0
// CUB's block algorithms, each in a kernel of its own.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

template <cub::BlockReduceAlgorithm algorithm>
__device__ void reduce_block(const int* in, int* out, int count) {
    using Reduce = cub::BlockReduce<int, 128, algorithm>;
    __shared__ typename Reduce::TempStorage storage;
    const int at = static_cast<int>(blockIdx.x * 128 + threadIdx.x);
    const int valid = count - static_cast<int>(blockIdx.x) * 128;
    const int sum = Reduce(storage).Sum(at < count ? in[at] : 0, valid < 128 ? valid : 128);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
extern "C" __global__ void reduce_by_shuffles(const int* in, int* out, int count) {
    reduce_block<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out, count);
}
extern "C" __global__ void reduce_by_raking(const int* in, int* out, int count) {
    reduce_block<cub::BLOCK_REDUCE_RAKING>(in, out, count);
}
extern "C" __global__ void reduce_commutative(const int* in, int* out, int count) {
    reduce_block<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, out, count);
}

// The least and the place of it: a struct through shared memory and shuffles.
struct Place {
    double value;
    int at;
};
struct Least {
    __device__ Place operator()(const Place& a, const Place& b) const {
        return b.value < a.value || (b.value == a.value && b.at < a.at) ? b : a;
    }
};
extern "C" __global__ void least_of_block(const double* in, Place* out) {
    using Reduce = cub::BlockReduce<Place, 96>;
    __shared__ typename Reduce::TempStorage storage;
    const int at = static_cast<int>(blockIdx.x * 96 + threadIdx.x);
    const Place least = Reduce(storage).Reduce(Place{in[at], at}, Least());
    if (threadIdx.x == 0) out[blockIdx.x] = least;
}

template <cub::BlockScanAlgorithm algorithm>
__device__ void scan_block(const int* in, int* out, int* total) {
    using Load = cub::BlockLoad<int, 128, 5, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, 128, 5, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 128, algorithm>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Scan::TempStorage scan;
    } storage;
    int items[5], sum = 0;
    Load(storage.load).Load(in, items);
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(items, items, sum);
    __syncthreads();
    Store(storage.store).Store(out, items);
    if (threadIdx.x == 0) *total = sum;
}
extern "C" __global__ void scan_by_warps(const int* in, int* out, int* total) {
    scan_block<cub::BLOCK_SCAN_WARP_SCANS>(in, out, total);
}
extern "C" __global__ void scan_by_raking(const int* in, int* out, int* total) {
    scan_block<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, out, total);
}

// Floats of both signs by keys of their bits, with the values of their places.
extern "C" __global__ void sort_block(float* keys, unsigned short* values) {
    using Sort = cub::BlockRadixSort<float, 128, 4, unsigned short>;
    __shared__ typename Sort::TempStorage storage;
    float key[4];
    unsigned short value[4];
    for (int i = 0; i < 4; ++i) key[i] = keys[threadIdx.x * 4 + i], value[i] = values[threadIdx.x * 4 + i];
    Sort(storage).Sort(key, value);
    for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = key[i], values[threadIdx.x * 4 + i] = value[i];
}
extern "C" __global__ void sort_block_down(unsigned long long* keys) {
    using Sort = cub::BlockRadixSort<unsigned long long, 64, 3>;
    __shared__ typename Sort::TempStorage storage;
    unsigned long long key[3];
    for (int i = 0; i < 3; ++i) key[i] = keys[threadIdx.x * 3 + i];
    Sort(storage).SortDescending(key);
    for (int i = 0; i < 3; ++i) keys[threadIdx.x * 3 + i] = key[i];
}
