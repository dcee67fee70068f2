// SPDX-License-Identifier: Apache-2.0
// Grid and block from index space and kernel: a pure function.
#include "launch_shape.hpp"

#include <gtest/gtest.h>

namespace isthmus::platform::cuda {
namespace {

KernelInfo kernel_of_rank(std::uint8_t rank, std::uint32_t block_threads = 0) {
    return {"k", "isthmus_k", "", nullptr, 0, 0, rank, block_threads, nullptr, nullptr};
}
std::uint64_t covered(const LaunchShape& shape, int d) {
    return std::uint64_t{shape.grid[d]} * shape.block[d];
}

TEST(LaunchShape, EveryItemHasAThreadAndNoBlockIsIdle) {
    for (std::uint8_t rank = 1; rank <= 3; ++rank) {
        for (const std::uint64_t n : {1, 2, 7, 8, 31, 32, 33, 255, 256, 257, 4096, 65537}) {
            const Extent extent{n, rank > 1 ? n + 3 : 1, rank > 2 ? n + 5 : 1};
            const LaunchShape shape = launch_shape(kernel_of_rank(rank), extent);
            const std::uint64_t items[3] = {extent.x, extent.y, extent.z};
            ASSERT_TRUE(shape.possible);
            for (int d = 0; d < 3; ++d) {
                EXPECT_GE(covered(shape, d), items[d]);
                EXPECT_LT(covered(shape, d) - items[d], shape.block[d]);
            }
            EXPECT_EQ(shape.block[0] * shape.block[1] * shape.block[2], 256u);
        }
    }
}

TEST(LaunchShape, ABlockKernelGetsOneBlockPerUnitOfItsExtent) {
    const LaunchShape shape = launch_shape(kernel_of_rank(0, 128), {10, 20, 30});
    EXPECT_EQ(shape.grid[0], 10u);
    EXPECT_EQ(shape.grid[1], 20u);
    EXPECT_EQ(shape.grid[2], 30u);
    EXPECT_EQ(shape.block[0], 128u);
    EXPECT_EQ(shape.block[1] * shape.block[2], 1u);
}

TEST(LaunchShape, TheLargestGridPassesAndOneBlockMoreIsRefused) {
    constexpr std::uint64_t x = 2147483647, yz = 65535;
    EXPECT_TRUE(launch_shape(kernel_of_rank(1), {x * 256, 1, 1}).possible);
    EXPECT_FALSE(launch_shape(kernel_of_rank(1), {x * 256 + 1, 1, 1}).possible);
    EXPECT_TRUE(launch_shape(kernel_of_rank(2), {1, yz * 8, 1}).possible);
    EXPECT_FALSE(launch_shape(kernel_of_rank(2), {1, yz * 8 + 1, 1}).possible);
    EXPECT_TRUE(launch_shape(kernel_of_rank(3), {1, 1, yz * 4}).possible);
    EXPECT_FALSE(launch_shape(kernel_of_rank(3), {1, 1, yz * 4 + 1}).possible);
    EXPECT_FALSE(launch_shape(kernel_of_rank(0, 64), {1, yz + 1, 1}).possible);
    EXPECT_FALSE(launch_shape(kernel_of_rank(1), {UINT64_MAX, 1, 1}).possible);
}

// keeps L12: what the runtime lets through, the grid expresses; one more in any dimension, and it does not
TEST(LaunchShape, TheLargestExtentOfALaunchIsTheLargestGrid) {
    for (std::uint8_t rank = 0; rank < 4; ++rank) {
        const Extent most = largest_extent(rank);
        const KernelInfo kernel = kernel_of_rank(rank, rank == 0 ? 64 : 0);
        const bool has_y = rank != 1;
        const bool has_z = rank == 0 || rank == 3;
        EXPECT_TRUE(launch_shape(kernel, most).possible) << int{rank};
        EXPECT_FALSE(launch_shape(kernel, {most.x + 1, most.y, most.z}).possible) << int{rank};
        EXPECT_EQ(launch_shape(kernel, {most.x, most.y + 1, most.z}).possible, !has_y) << int{rank};
        EXPECT_EQ(launch_shape(kernel, {most.x, most.y, most.z + 1}).possible, !has_z) << int{rank};
    }
}

TEST(LaunchShape, AnEmptyIndexSpaceIsEmpty) {
    EXPECT_TRUE(launch_shape(kernel_of_rank(1), {0, 1, 1}).empty);
    EXPECT_TRUE(launch_shape(kernel_of_rank(3), {4, 4, 0}).empty);
    EXPECT_FALSE(launch_shape(kernel_of_rank(1), {1, 1, 1}).empty);
}

}  // namespace
}  // namespace isthmus::platform::cuda
