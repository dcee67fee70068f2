// SPDX-License-Identifier: Apache-2.0
// How many clusters of blocks, and how much shared memory, a device has for a kernel. A real device is divided into
// groups of processors of unequal size and holds fewer clusters, as far as its record says.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"
#include "ptx_kernels.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

int static_shared(const Function& function) {
    return function.twin->entry ? static_cast<int>(function.twin->entry->static_shared_bytes) : 0;
}

int attribute_of(const Function& function, int id) {
    const auto set = function.set_attributes.find(id);
    return set != function.set_attributes.end() ? set->second : 0;
}

std::uint64_t blocks_of(const ClusterSize& size) {
    return std::uint64_t{size.x} * size.y * size.z;
}

// Blocks that a multiprocessor holds, by their threads and their shared memory.
int resident_cluster_blocks(const Driver& d, int device, const Function& function, const LaunchConfig& config) {
    const std::uint64_t threads = std::uint64_t{config.block_x} * config.block_y * config.block_z;
    if (threads == 0 || threads > static_cast<std::uint64_t>(d.fact(device, attribute::max_threads_per_block)))
        return 0;
    const int by_threads = blocks_per_multiprocessor(d, device, static_cast<int>(threads));
    // Observed (580): no more than 8 blocks that may be of a cluster.
    constexpr long most_blocks = 8;
    const long shared =
        long{static_shared(function)} + config.shared_bytes + d.fact(device, attribute::reserved_shared);
    const long all = d.fact(device, attribute::shared_per_multiprocessor);
    const long by_shared = shared <= 0 || all <= 0 ? most_blocks : all / shared;
    return static_cast<int>(std::min({most_blocks, by_shared, long{by_threads}}));
}

// Processors are grouped unequally, and a cluster stays within a group: the record has how many clusters of more than 2
// blocks reach. Two groups of 18 and others of 8 and 16 give all answers of a driver 580 on a GPU of 132.
int clusters_held(const Driver& d, int device, std::uint64_t blocks, int held) {
    constexpr int group = 18;
    const int for_large = d.machine.device(device).large_cluster_multiprocessors;
    const int all = std::max(0, d.fact(device, attribute::multiprocessors));
    const auto of = [&](int multiprocessors) {
        return static_cast<int>(static_cast<std::uint64_t>(multiprocessors) * static_cast<std::uint64_t>(held) /
                                blocks);
    };
    if (blocks <= 2 || for_large == 0) return of(all);
    const int reached = std::min(all, for_large);
    return reached <= 2 * group ? of(reached) : 2 * of(group) + of(reached - 2 * group);
}

// Observed (580): 912 for .explicitcluster where neither the entry nor the configuration states a size.
bool lacks_cluster(const Function& function, const LaunchSettings& settings) {
    return needs_cluster(function) && settings.cluster.x == 0 && required_cluster(function).x == 0;
}

// Body: Result(Driver&, int device, const Function&, const LaunchSettings&), called with the driver's mutex held.
template <class Body>
Result call_for_cluster(CallId id, const int* out, Function* function, const LaunchConfig* config, Body&& body) {
    return call_in_context(id, [&](Driver& d, Context& context) -> Result {
        if (!out || !config) return result::invalid_value;
        int device = context.device;
        if (config->stream) {
            StreamTarget stream;
            if (const Result code = resolve(d, config->stream, stream)) return code;
            device = stream.device;
        }
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        const AttributeFacts facts = attribute_facts(d, device);
        if (!facts.clusters) return result::not_supported;  // assumed
        LaunchSettings settings;
        if (const Result code = read_launch_settings(facts, *config, settings)) return code;
        return body(d, device, *function, settings);
    });
}

}  // namespace

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

extern "C" {

// Documented: the cluster in `config` does not count. Observed (580): nor does what the entry states of its size.
Result cuOccupancyMaxPotentialClusterSize(int* size, Function* function, const LaunchConfig* config) {
    return call_for_cluster(CallId::cuOccupancyMaxPotentialClusterSize, size, function, config,
                            [&](Driver& d, int device, const Function& f, const LaunchSettings& settings) -> Result {
                                if (lacks_cluster(f, settings)) return result::invalid_cluster_size;
                                const bool fits = resident_cluster_blocks(d, device, f, *config) != 0;
                                *size = !fits ? 0 : static_cast<int>(largest_cluster(f));
                                return result::ok;
                            });
}

Result cuOccupancyMaxActiveClusters(int* clusters, Function* function, const LaunchConfig* config) {
    return call_for_cluster(CallId::cuOccupancyMaxActiveClusters, clusters, function, config,
                            [&](Driver& d, int device, const Function& f, const LaunchSettings& settings) -> Result {
                                if (lacks_cluster(f, settings)) return result::invalid_cluster_size;
                                const ClusterSize required = required_cluster(f), given = settings.cluster;
                                const std::uint64_t wanted = blocks_of(required), asked = blocks_of(given);
                                // Documented: a size must match the required one. Observed (580): without any it
                                // is 0.
                                const bool differs =
                                    given.x != required.x || given.y != required.y || given.z != required.z;
                                if (wanted != 0 && asked != 0 && differs) return result::invalid_cluster_size;
                                const std::uint64_t blocks = wanted != 0 ? wanted : asked;
                                if (blocks > most_cluster_blocks(f)) return result::invalid_cluster_size;
                                const int held = resident_cluster_blocks(d, device, f, *config);
                                *clusters = blocks == 0 ? 0 : clusters_held(d, device, blocks, held);
                                return result::ok;
                            });
}

// Observed (580, H200): the shared memory of a multiprocessor, divided, without the driver's own bytes of each block;
// no more than the function may have.
Result cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, Function* function, int blocks, int block) {
    return call_in_context(CallId::cuOccupancyAvailableDynamicSMemPerBlock, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        if (!bytes || blocks <= 0 || block <= 0) return result::invalid_value;
        const int device = context.device;
        if (block > d.fact(device, attribute::max_threads_per_block)) return result::invalid_value;
        if (blocks > blocks_per_multiprocessor(d, device, block)) return result::invalid_value;  // observed, too
        const int own = static_shared(*function);
        const int all = d.fact(device, attribute::shared_per_multiprocessor);
        const int set = attribute_of(*function, function_attribute::dynamic_shared);
        const int most = set != 0 ? set : d.fact(device, attribute::max_shared_per_block) - own;
        *bytes = static_cast<std::size_t>(std::clamp(all / blocks - own, 0, std::max(0, most)));
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
