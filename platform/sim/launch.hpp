// SPDX-License-Identifier: Apache-2.0
// A kernel launch as requested: executed in a stream, or stored in a graph's kernel node.
#pragma once

#include "access.hpp"
#include "launch_settings.hpp"
#include "twins.hpp"

#include <driver_abi/sim_registration.h>

#include <cstddef>
#include <memory>
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
};

struct LaunchRequest {
    Function* function = nullptr;
    LaunchShape shape;
    GpuAgent agent;
    void** parameters = nullptr;
    void** extra = nullptr;  // the parameters as one buffer, with its size
    LaunchSettings settings;
};

// Must not move after it was prepared: `parameters` and `extra` point into it.
struct KernelLaunch {
    Function* function = nullptr;
    const Twin* twin = nullptr;
    std::shared_ptr<const Twin> own_twin;  // of a ready-made image, which may be unloaded
    LaunchShape shape = {};
    isthmus_sim_extent extent = {};
    std::vector<std::byte> pack;
    GpuAgent agent;
    LaunchSettings settings;
    ClusterSize required_cluster = {};  // as required_cluster() told
    std::vector<void*> parameters;
    // As a node tells parameters that were given in one buffer; empty: they were given one by one.
    std::vector<void*> extra;
    std::size_t packed_bytes = 0;
};

// The launch of a kernel node; nullptr: another kind of node.
const KernelLaunch* launch_of(const engine::GraphNode& node);
// The launch once more, to be changed and prepared.
LaunchRequest request_of(const KernelLaunch& launch);
// Blocks of a cluster: 8, or 16 where the function allows sizes that are not portable.
unsigned largest_cluster(const Function& function);
// The same; fewer by .maxclusterrank.
unsigned most_cluster_blocks(const Function& function);
// Whether its entry has a size of clusters (.reqnctapercluster of __cluster_dims__).
bool states_cluster(const Function& function);
// Whether its launches must state one (.explicitcluster).
bool needs_cluster(const Function& function);
// What that or cuFuncSetAttribute requires of launches; 0: nothing.
ClusterSize required_cluster(const Function& function);
// Whether its launches must state one, and neither `stated` nor the function does. Observed (580): 912.
bool lacks_cluster(const Function& function, const ClusterSize& stated);
// The cluster of a launch: what it states, or what its function requires; x 0: neither.
ClusterSize cluster_of(const KernelLaunch& launch);

// The cluster that a launch states, or its function, which must not differ. Observed (580, H200) for
// .reqnctapercluster; assumed for cuFuncSetAttribute.
Result check_cluster_of(const Driver& d, const LaunchRequest& request, const ClusterSize& wanted);

// Checks and copies the arguments. Requires the driver's mutex.
Result prepare_launch(const Driver& d, const LaunchRequest& request, KernelLaunch& out);
engine::Operation kernel_operation(Driver& d, std::shared_ptr<const KernelLaunch> launch);
// What cuLaunchKernel does; the request's agent is that of the stream. `config`: null for a launch without attributes
// of its own.
Result launch_in_stream(Driver& d, LaunchRequest request, Stream* handle, const LaunchConfig* config = nullptr);
// Whether the device runs blocks of this extent.
bool is_block(const Driver& d, int device, const unsigned (&block)[3]);

}  // namespace isthmus::sim
