// SPDX-License-Identifier: Apache-2.0
// What work is launched with besides its arguments: attributes of streams, of kernel nodes and of single launches
// (CUlaunchAttribute). All but the cluster's size, the cooperative launch and a stream's priority are hints: they are
// checked, kept and told, and change nothing about how the work runs.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <optional>

namespace isthmus::sim {

class Driver;
struct StreamTarget;

struct LaunchSettings {
    std::optional<int> priority;  // of kernel nodes; not set: the stream's
    AccessWindow window = {};
    DomainMap domains = {};
    int domain = 0;
    ClusterSize cluster = {}, preferred_cluster = {};  // 0: none
    int scheduling = 0;                                // CUclusterSchedulingPolicy
    int carveout = 0;                                  // percent of the shared memory
    int link_use = 0;                                  // CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
    bool cooperative = false;
};

struct StreamSettings {
    LaunchSettings of_launches;  // without those of kernels
    int synchronization = -1;    // CUsynchronizationPolicy; observed (580, H200): -1 until it is set
};

// Facts of a device that decide about attributes.
struct AttributeFacts {
    std::size_t largest_window = 0;  // in bytes
    int domains = 1;
    bool clusters = false;
    bool priorities = false;
};
AttributeFacts attribute_facts(const Driver& d, int device);

// What nobody changed: work runs in domain 0, and in another one where it is called remote and there is one.
LaunchSettings first_settings(const AttributeFacts& facts);

// What work gets from the stream that it is submitted to. Requires the driver's mutex.
LaunchSettings settings_of_work(const Driver& d, const StreamTarget& target);

// 0, or 1 for an attribute that streams or kernel nodes lack, and for a wrong value; 801 where the device has no
// clusters, and for what is not modelled.
Result set_of_stream(const AttributeFacts& facts, int id, const LaunchAttributeValue& value, StreamSettings& settings);
Result get_of_stream(const StreamSettings& settings, int id, LaunchAttributeValue& value);
Result set_of_kernel(const AttributeFacts& facts, int id, const LaunchAttributeValue& value, LaunchSettings& settings);
Result get_of_kernel(const LaunchSettings& settings, int id, LaunchAttributeValue& value);

// The attributes of one launch. 801 for those that are not modelled.
Result read_launch_settings(const AttributeFacts& facts, const LaunchConfig& config, LaunchSettings& settings);

// Documented: the grid is a multiple of the cluster in each dimension, and the preferred cluster one of the cluster.
// `most`: blocks of a cluster.
Result check_cluster(const LaunchSettings& settings, const unsigned (&grid)[3], unsigned most);

}  // namespace isthmus::sim
