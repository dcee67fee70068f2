// SPDX-License-Identifier: Apache-2.0
// Groups of several warps, which exchange values in shared memory that CUDA reserves. tiles.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_80 tiles.cu
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(int* out) {
    __shared__ cg::block_tile_memory<128> memory;
    __shared__ int own[128];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    const int thread = static_cast<int>(threadIdx.x);
    own[thread] = thread;
    tile.sync();
    const int far = own[thread ^ 32];
    const int sum = cg::reduce(tile, thread * 3, cg::plus<int>());
    const int first = tile.shfl(thread, 5);
    const int any = tile.any(thread == 100);
    out[4 * thread] = far;
    out[4 * thread + 1] = sum;
    out[4 * thread + 2] = first;
    out[4 * thread + 3] = any;
}
