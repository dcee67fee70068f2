// SPDX-License-Identifier: Apache-2.0
// The kernels of CUB's device algorithms on ints: whichever ones the functions below would launch.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

void instantiate(void* storage, size_t bytes, const int* in, int* out, unsigned* keys) {
    cub::DeviceReduce::Sum(storage, bytes, in, out, 0);
    cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, 0);
    cub::DeviceRadixSort::SortKeys(storage, bytes, keys, keys, 0);
}

template <class Policy>
__device__ unsigned tile_of() {
    return Policy::BLOCK_THREADS * Policy::ITEMS_PER_THREAD;
}

// What the dispatch on the host knows: items of a tile of each kernel, bits of a pass of the sort, threads of its sums.
extern "C" __global__ void describe(unsigned* out) {
    using Sum = cuda::std::plus<>;
    using Reduce = cub::detail::reduce::policy_hub<int, unsigned, Sum>::MaxPolicy::ActivePolicy;
    using Scan = cub::detail::scan::policy_hub<int, int, int, unsigned, Sum>::MaxPolicy::ActivePolicy;
    using Sort = cub::detail::radix::policy_hub<unsigned, cub::NullType, unsigned>::MaxPolicy::ActivePolicy;
    out[0] = tile_of<typename Reduce::ReducePolicy>();
    out[1] = tile_of<typename Scan::ScanPolicyT>();
    out[2] = tile_of<typename Sort::SingleTilePolicy>();
    out[3] = tile_of<typename Sort::OnesweepPolicy>();
    out[4] = Sort::ONESWEEP_RADIX_BITS;
    out[5] = Sort::ExclusiveSumPolicy::BLOCK_THREADS;  // has no __launch_bounds__
}
