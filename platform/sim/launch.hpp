// SPDX-License-Identifier: Apache-2.0
// A kernel launch as requested: executed in a stream, or stored in a graph's kernel node.
#pragma once

#include "access.hpp"
#include "twins.hpp"

#include <driver_abi/sim_registration.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace isthmus::sim {

// The kernel that sets a graph's condition from a word of memory; its GPU code calls cudaGraphSetConditional.
inline constexpr const char* sets_condition_symbol = "isthmus_set_condition";
struct SetsCondition {
    std::uint64_t condition, word, count;
};

struct LaunchShape {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    bool cooperative = false;
};

struct LaunchRequest {
    Function* function = nullptr;
    LaunchShape shape;
    GpuAgent agent;
    void** parameters = nullptr;
    void** extra = nullptr;
    std::optional<int> priority;
};

// Must not move after it was prepared: `parameters` points into it.
struct KernelLaunch {
    Function* function = nullptr;
    const Twin* twin = nullptr;
    std::shared_ptr<const Twin> own_twin;  // of a ready-made image, which may be unloaded
    LaunchShape shape = {};
    isthmus_sim_extent extent = {};
    std::vector<std::byte> pack;
    GpuAgent agent;
    std::optional<int> priority;  // from a launch attribute; a hint that the simulator ignores
    std::vector<void*> parameters;
};

// Checks and copies the arguments. Requires the driver's mutex.
Result prepare_launch(const Driver& d, const LaunchRequest& request, KernelLaunch& out);
engine::Operation kernel_operation(Driver& d, std::shared_ptr<const KernelLaunch> launch);

}  // namespace isthmus::sim
