// SPDX-License-Identifier: Apache-2.0
// extent × kernel → grid and block. Pure.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>

namespace isthmus::platform::cuda {

struct LaunchShape {
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    bool possible = true;  // false: more blocks than one launch may have
    bool empty = false;
};

// Grid limits of every GPU since compute capability 3.0 (attributes 5 to 7).
inline constexpr std::uint64_t max_grid[3] = {2147483647, 65535, 65535};

// Item i of a dimension is blockIdx * blockDim + threadIdx; kernels guard their bounds, so the grid is rounded up. 256
// threads in every rank: enough to hide latency, and the maximum that kernels are compiled for. Neighbouring threads of
// a warp lie along x, where memory is contiguous. Block sizes are powers of two, so that a launch needs no division.
inline LaunchShape launch_shape(const KernelInfo& kernel, const Extent& extent) noexcept {
    if (kernel.rank == 1 && extent.y == 1 && extent.z == 1) {  // most launches
        const std::uint64_t blocks = (extent.x >> 8) + ((extent.x & 255) != 0 ? 1 : 0);
        LaunchShape row;
        row.grid[0] = static_cast<unsigned>(blocks);
        row.block[0] = 256;
        row.possible = blocks <= max_grid[0];
        row.empty = blocks == 0;
        return row;
    }
    constexpr unsigned log2_threads[4][3] = {{0, 0, 0}, {8, 0, 0}, {5, 3, 0}, {3, 3, 2}};
    const unsigned* const log2_block = log2_threads[kernel.rank & 3];
    const std::uint64_t items[3] = {extent.x, extent.y, extent.z};
    LaunchShape shape;
    for (int d = 0; d < 3; ++d) {
        const std::uint64_t per_block = std::uint64_t{1} << log2_block[d];
        const std::uint64_t count = (items[d] >> log2_block[d]) + ((items[d] & (per_block - 1)) != 0 ? 1 : 0);
        if (count == 0) shape.empty = true;
        if (count > max_grid[d]) shape.possible = false;
        shape.grid[d] = static_cast<unsigned>(count);
        shape.block[d] = static_cast<unsigned>(per_block);
    }
    if (kernel.rank == 0) shape.block[0] = kernel.block_threads;
    return shape;
}

}  // namespace isthmus::platform::cuda
