// SPDX-License-Identifier: Apache-2.0
// The clusters of blocks that a function or a launch states.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"

#include <program.hpp>

#include <algorithm>

namespace isthmus::sim {

bool states_cluster(const Function& function) {
    return function.twin->entry && function.twin->entry->required_cluster[0] != 0;
}

bool needs_cluster(const Function& function) {
    return function.twin->entry && function.twin->entry->explicit_cluster;
}

ClusterSize required_cluster(const Function& function) {
    if (states_cluster(function)) {
        const auto& stated = function.twin->entry->required_cluster;
        return {stated[0], stated[1], stated[2]};
    }
    return {static_cast<unsigned>(attribute_of(function, function_attribute::cluster_width)),
            static_cast<unsigned>(attribute_of(function, function_attribute::cluster_height)),
            static_cast<unsigned>(attribute_of(function, function_attribute::cluster_depth))};
}

bool lacks_cluster(const Function& function, const ClusterSize& stated) {
    return needs_cluster(function) && stated.x == 0 && required_cluster(function).x == 0;
}

unsigned largest_cluster(const Function& function) {
    constexpr unsigned portable = 8, largest = 16;
    return attribute_of(function, function_attribute::any_cluster) != 0 ? largest : portable;
}

unsigned most_cluster_blocks(const Function& function) {
    const unsigned most = largest_cluster(function);
    const std::uint32_t stated = function.twin->entry != nullptr ? function.twin->entry->most_cluster_blocks : 0;
    return stated != 0 ? std::min(most, stated) : most;
}

ClusterSize cluster_of(const KernelLaunch& launch) {
    return launch.settings.cluster.x != 0 ? launch.settings.cluster : launch.required_cluster;
}

Result check_cluster_of(const Driver& d, const LaunchRequest& request, const ClusterSize& wanted) {
    LaunchSettings settings = request.settings;
    if (wanted.x != 0 || wanted.y != 0 || wanted.z != 0) {
        if (!attribute_facts(d, request.agent.device).clusters) return result::not_supported;
        // Documented: all three are 0 or none is, which the launch checks.
        if (wanted.x == 0 || wanted.y == 0 || wanted.z == 0) return result::invalid_cluster_size;
        const ClusterSize& stated = settings.cluster;
        const bool differs = stated.x != wanted.x || stated.y != wanted.y || stated.z != wanted.z;
        if (stated.x != 0 && differs) return result::invalid_cluster_size;
        settings.cluster = wanted;
    }
    const unsigned most = most_cluster_blocks(*request.function);
    const ClusterSize& size = settings.cluster;
    if (lacks_cluster(*request.function, request.settings.cluster)) {
        say("%s states .explicitcluster: its launch needs the size of its clusters "
            "(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)",
            request.function->twin->symbol.c_str());
        return result::invalid_cluster_size;
    }
    if (size.x != 0) {  // a driver 580 answers 912 for both
        const unsigned(&grid)[3] = request.shape.grid;
        if (grid[0] % size.x != 0 || grid[1] % size.y != 0 || grid[2] % size.z != 0)
            return result::invalid_cluster_size;
        if (std::uint64_t{size.x} * size.y * size.z > most) return result::invalid_cluster_size;
    }
    return check_cluster(settings, request.shape.grid, most);
}

}  // namespace isthmus::sim
