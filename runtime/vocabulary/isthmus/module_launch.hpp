// SPDX-License-Identifier: Apache-2.0
// LaunchShape: the grid of a kernel of a ready-made module; and what drivers are told about such a launch.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {

// Blocks, threads per block, blocks per cluster, and bytes of dynamic shared memory per block, as in <<<grid, block,
// shared>>>. A cluster of no blocks (the default): as the kernel was compiled.
struct LaunchShape {
    Extent grid{};
    Extent block{};
    Extent cluster{0, 0, 0};
    std::uint64_t shared_bytes = 0;
};

namespace detail {

// KernelInfo::rank of a kernel of a ready-made module: its extent counts blocks (with own_layout: items), and its pack
// begins with a ModuleLaunch.
inline constexpr std::uint8_t module_rank = 4;

// Its pointers are valid during the launch; drivers that keep the pack use only `twin`, which what they were given
// keeps alive.
struct ModuleLaunch {
    std::uint64_t function = 0;  // platform::FunctionHandle
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t cluster[3] = {};
    std::uint32_t shared_bytes = 0;
    // false: each parameter of the kernel is one of the entry, a view by its address alone. true: the entry takes the
    // extent, then a Pack that begins at `pack_offset`, as entries of ISTHMUS_KERNEL do.
    bool own_layout = false;
    std::uint8_t item_rank = 1;  // own_layout: the dimensions of the index space
    std::uint32_t pack_offset = 0;
    const void* twin = nullptr;                    // for KernelInfo::twin
    const std::shared_ptr<void>* keeps = nullptr;  // what a graph that records the launch has to hold
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
