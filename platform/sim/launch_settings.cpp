// SPDX-License-Identifier: Apache-2.0
// Checks and keeps attributes of launches, by number.
#include "launch_settings.hpp"

#include "driver.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// CUlaunchAttributeID
enum Id : int {
    gap = 0,
    access_window = 1,
    cooperative = 2,
    synchronization = 3,
    cluster = 4,
    scheduling = 5,
    may_overlap = 6,
    priority = 8,
    domain_map = 9,
    domain = 10,
    preferred_cluster = 11,
    carveout = 14,
    link_use = 16,
};

constexpr int highest_priority = -5;

bool streams_have(int id) {
    return id == access_window || id == synchronization || id == priority || id == domain_map || id == domain;
}

Result set_window(const AttributeFacts& facts, const AccessWindow& window, AccessWindow& out) {
    constexpr int normal = 0, streaming = 1, persisting = 2;
    const bool right = window.hit_ratio >= 0 && window.hit_ratio <= 1 && window.on_hit >= normal &&
                       window.on_hit <= persisting && (window.on_miss == normal || window.on_miss == streaming) &&
                       window.bytes <= facts.largest_window;
    if (right) out = window;
    return right ? result::ok : result::invalid_value;
}

// Those that streams and kernels have alike.
Result set_common(const AttributeFacts& facts, int id, const LaunchAttributeValue& value, LaunchSettings& settings) {
    const auto take = [&](int least, int most, int& out) -> Result {
        if (value.number < least || value.number > most) return result::invalid_value;
        out = value.number;
        return result::ok;
    };
    switch (id) {
        case access_window: return set_window(facts, value.window, settings.window);
        case priority:
            // As cuStreamCreateWithPriority: a number beyond the range becomes its end.
            settings.priority = facts.priorities ? std::clamp(value.number, highest_priority, 0) : 0;
            return result::ok;
        case domain_map:
            if (value.domains.standard >= facts.domains || value.domains.remote >= facts.domains) {
                return result::invalid_value;
            }
            settings.domains = value.domains;
            return result::ok;
        case domain: return take(0, 1, settings.domain);
        case link_use: return take(0, 1, settings.link_use);
        default: return result::invalid_value;
    }
}

Result get_common(const LaunchSettings& settings, int id, LaunchAttributeValue& value) {
    switch (id) {
        case access_window: value.window = settings.window; return result::ok;
        case priority: value.number = settings.priority.value_or(0); return result::ok;
        case domain_map: value.domains = settings.domains; return result::ok;
        case domain: value.number = settings.domain; return result::ok;
        default: return result::invalid_value;  // observed (580, H200): link_use cannot be read
    }
}

}  // namespace

AttributeFacts attribute_facts(const Driver& d, int device) {
    AttributeFacts facts;
    facts.largest_window = static_cast<std::size_t>(std::max(0, d.fact(device, attribute::largest_access_window)));
    facts.domains = std::max(1, d.fact(device, attribute::memory_domains));
    facts.clusters = d.fact(device, attribute::cluster_launch) != 0;
    facts.priorities = d.fact(device, attribute::stream_priorities) != 0;
    return facts;
}

LaunchSettings first_settings(const AttributeFacts& facts) {
    LaunchSettings settings;
    settings.domains = {0, static_cast<unsigned char>(facts.domains > 1 ? 1 : 0)};
    return settings;
}

Result set_of_stream(const AttributeFacts& facts, int id, const LaunchAttributeValue& value, StreamSettings& settings) {
    if (!streams_have(id)) return result::invalid_value;
    if (id != synchronization) return set_common(facts, id, value, settings.of_launches);
    constexpr int automatic = 1, blocking = 4;
    if (value.number < automatic || value.number > blocking) return result::invalid_value;
    settings.synchronization = value.number;
    return result::ok;
}

Result get_of_stream(const StreamSettings& settings, int id, LaunchAttributeValue& value) {
    if (!streams_have(id)) return result::invalid_value;
    if (id != synchronization) return get_common(settings.of_launches, id, value);
    value.number = settings.synchronization;
    return result::ok;
}

Result set_of_kernel(const AttributeFacts& facts, int id, const LaunchAttributeValue& value, LaunchSettings& settings) {
    const ClusterSize& size = value.cluster;
    switch (id) {
        case cooperative: settings.cooperative = value.number != 0; return result::ok;
        case cluster:
        case preferred_cluster:
            if (!facts.clusters) return result::not_supported;
            // Observed (580, H200): a cluster of 0 is none. Assumed: in all three dimensions.
            if (id == cluster && size.x == 0 && size.y == 0 && size.z == 0) {
                settings.cluster = {};
                return result::ok;
            }
            if (size.x == 0 || size.y == 0 || size.z == 0) return result::invalid_value;
            (id == cluster ? settings.cluster : settings.preferred_cluster) = size;
            return result::ok;
        case scheduling:
            if (value.number < 0 || value.number > 2) return result::invalid_value;
            settings.scheduling = value.number;
            return result::ok;
        case carveout:
            if (value.number < 0 || value.number > 100) return result::invalid_value;
            settings.carveout = value.number;
            return result::ok;
        default: return set_common(facts, id, value, settings);
    }
}

Result get_of_kernel(const LaunchSettings& settings, int id, LaunchAttributeValue& value) {
    switch (id) {
        case cooperative: value.number = settings.cooperative ? 1 : 0; return result::ok;
        case cluster: value.cluster = settings.cluster; return result::ok;
        case preferred_cluster:  // observed (580, H200): one that nobody set cannot be read
            value.cluster = settings.preferred_cluster;
            return settings.preferred_cluster.x != 0 ? result::ok : result::invalid_value;
        case scheduling: value.number = settings.scheduling; return result::ok;
        case carveout: value.number = settings.carveout; return result::ok;
        default: return get_common(settings, id, value);
    }
}

Result read_launch_settings(const AttributeFacts& facts, const LaunchConfig& config, LaunchSettings& settings) {
    if (config.attribute_count > 0 && !config.attributes) return result::invalid_value;
    for (unsigned i = 0; i < config.attribute_count; ++i) {
        const LaunchAttribute& given = config.attributes[i];
        // Documented: an overlap with the kernel before it is allowed, never promised.
        if (given.id == gap || given.id == may_overlap) continue;
        constexpr int programmatic_event = 7, completion_event = 12, updatable_node = 13;
        const bool missing = given.id == programmatic_event || given.id == completion_event ||
                             given.id == updatable_node || given.id > link_use;
        if (missing) {
            say("cuLaunchKernelEx: launch attribute %d is not modelled", given.id);
            return result::not_supported;
        }
        if (const Result code = set_of_kernel(facts, given.id, given.value, settings)) return code;
    }
    return result::ok;
}

Result check_cluster(const LaunchSettings& settings, const unsigned (&grid)[3], unsigned most) {
    const ClusterSize &size = settings.cluster, &larger = settings.preferred_cluster;
    if (size.x == 0) return larger.x == 0 ? result::ok : result::invalid_value;
    const unsigned sizes[3] = {size.x, size.y, size.z}, wishes[3] = {larger.x, larger.y, larger.z};
    std::uint64_t blocks = 1, wished = 1;
    for (int axis = 0; axis < 3; ++axis) {
        // Observed (580, H200) for kernel nodes; assumed for launches.
        if (grid[axis] % sizes[axis] != 0) return result::invalid_cluster_size;
        blocks *= sizes[axis];
        if (larger.x == 0) continue;
        if (wishes[axis] % sizes[axis] != 0 || grid[axis] % wishes[axis] != 0) return result::invalid_value;
        wished *= wishes[axis];
    }
    return blocks <= most && wished <= most ? result::ok : result::invalid_value;
}

}  // namespace isthmus::sim
