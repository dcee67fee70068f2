// SPDX-License-Identifier: Apache-2.0
// The kernels of CUB's device algorithms on ints for NVRTC, which compiles no dispatch of the host: their policies are
// stated here.
#include <cub/device/dispatch/kernels/radix_sort.cuh>
#include <cub/device/dispatch/kernels/reduce.cuh>
#include <cub/device/dispatch/kernels/scan.cuh>

namespace chosen {

using Plus = cuda::std::plus<>;
using Same = cuda::std::__identity;

struct Reduce {
    struct ActivePolicy {
        using ReducePolicy =
            cub::AgentReducePolicy<256, 16, int, 4, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::LOAD_DEFAULT>;
        using SingleTilePolicy = ReducePolicy;
    };
};
struct Scan {
    struct ActivePolicy {
        using ScanPolicyT = cub::AgentScanPolicy<
            128, 15, int, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::LOAD_DEFAULT, cub::BLOCK_STORE_WARP_TRANSPOSE,
            cub::BLOCK_SCAN_WARP_SCANS, cub::detail::MemBoundScaling<128, 15, int>>;
    };
};
struct Sort {
    struct ActivePolicy {
        static constexpr int ONESWEEP_RADIX_BITS = 8;
        using SingleTilePolicy =
            cub::AgentRadixSortDownsweepPolicy<256, 19, unsigned, cub::BLOCK_LOAD_DIRECT, cub::LOAD_LDG,
                                               cub::RADIX_RANK_MEMOIZE, cub::BLOCK_SCAN_WARP_SCANS, 6>;
        using HistogramPolicy = cub::AgentRadixSortHistogramPolicy<128, 16, 1, unsigned, ONESWEEP_RADIX_BITS>;
        using ExclusiveSumPolicy = cub::AgentRadixSortExclusiveSumPolicy<256, ONESWEEP_RADIX_BITS>;
        using OnesweepPolicy =
            cub::AgentRadixSortOnesweepPolicy<384, 21, unsigned, 1, cub::RADIX_RANK_MATCH_EARLY_COUNTS_ANY,
                                              cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::RADIX_SORT_STORE_DIRECT,
                                              ONESWEEP_RADIX_BITS>;
    };
};

using Tiles = cub::ScanTileState<int>;
using First = cub::detail::InputValue<int, int*>;
using Keys = cub::detail::identity_decomposer_t;
constexpr cub::SortOrder up = cub::SortOrder::Ascending;

}  // namespace chosen

template __global__ void cub::detail::reduce::DeviceReduceSingleTileKernel<chosen::Reduce, const int*, int*, unsigned,
                                                                           chosen::Plus, int, int, chosen::Same>(
    const int*, int*, unsigned, chosen::Plus, int, chosen::Same);
template __global__ void cub::detail::reduce::DeviceReduceSingleTileKernel<chosen::Reduce, int*, int*, int,
                                                                           chosen::Plus, int, int, chosen::Same>(
    int*, int*, int, chosen::Plus, int, chosen::Same);
template __global__ void
cub::detail::reduce::DeviceReduceKernel<chosen::Reduce, const int*, unsigned, chosen::Plus, int, chosen::Same>(
    const int*, int*, unsigned, cub::GridEvenShare<unsigned>, chosen::Plus, chosen::Same);
template __global__ void cub::detail::scan::DeviceScanInitKernel<chosen::Tiles>(chosen::Tiles, int);
template __global__ void cub::detail::scan::DeviceScanKernel<chosen::Scan, const int*, int*, chosen::Tiles,
                                                             chosen::Plus, chosen::First, unsigned, int, false, int>(
    const int*, int*, chosen::Tiles, int, chosen::Plus, chosen::First, unsigned);
template __global__ void cub::detail::radix_sort::DeviceRadixSortSingleTileKernel<
    chosen::Sort, chosen::up, unsigned, cub::NullType, unsigned, chosen::Keys>(const unsigned*, unsigned*,
                                                                               const cub::NullType*, cub::NullType*,
                                                                               unsigned, int, int, chosen::Keys);
template __global__ void cub::detail::radix_sort::DeviceRadixSortHistogramKernel<chosen::Sort, chosen::up, unsigned,
                                                                                 unsigned, chosen::Keys>(
    unsigned*, const unsigned*, unsigned, int, int, chosen::Keys);
template __global__ void cub::detail::radix_sort::DeviceRadixSortExclusiveSumKernel<chosen::Sort, unsigned>(unsigned*);
template __global__ void
cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<chosen::Sort, chosen::up, unsigned, cub::NullType, unsigned, int,
                                                       int, chosen::Keys>(int*, int*, unsigned*, const unsigned*,
                                                                          unsigned*, const unsigned*, cub::NullType*,
                                                                          const cub::NullType*, int, int, int,
                                                                          chosen::Keys);

template <class Policy>
__device__ unsigned tile_of() {
    return Policy::BLOCK_THREADS * Policy::ITEMS_PER_THREAD;
}

// As that of cub_device.cu.
extern "C" __global__ void describe(unsigned* out) {
    out[0] = tile_of<chosen::Reduce::ActivePolicy::ReducePolicy>();
    out[1] = tile_of<chosen::Scan::ActivePolicy::ScanPolicyT>();
    out[2] = tile_of<chosen::Sort::ActivePolicy::SingleTilePolicy>();
    out[3] = tile_of<chosen::Sort::ActivePolicy::OnesweepPolicy>();
    out[4] = chosen::Sort::ActivePolicy::ONESWEEP_RADIX_BITS;
    out[5] = chosen::Sort::ActivePolicy::ExclusiveSumPolicy::BLOCK_THREADS;
}
