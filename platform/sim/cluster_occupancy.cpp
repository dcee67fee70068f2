// SPDX-License-Identifier: Apache-2.0
// How many clusters of blocks a device holds of a kernel. A real device is divided into groups of processors of unequal
// size and holds fewer clusters, as far as its record says.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

std::uint64_t blocks_of(const ClusterSize& size) {
    return std::uint64_t{size.x} * size.y * size.z;
}

// Blocks that a multiprocessor holds, by their threads and their shared memory; assumed: as for others, that is
// rounded, and bounded by what the function may have.
int resident_cluster_blocks(const Driver& d, int device, const Function& function, const LaunchConfig& config) {
    const std::uint64_t threads = std::uint64_t{config.block_x} * config.block_y * config.block_z;
    if (threads == 0 || threads > static_cast<std::uint64_t>(d.fact(device, attribute::max_threads_per_block)))
        return 0;
    const int by_threads = blocks_per_multiprocessor(d, device, static_cast<int>(threads));
    // Observed (580): no more than 8 blocks that may be of a cluster.
    constexpr int most_blocks = 8;
    return std::min({most_blocks, blocks_by_shared_memory(d, device, function, config.shared_bytes), by_threads});
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

extern "C" {

// Documented: the cluster in `config` does not count. Observed (580): nor does what the entry states of its size.
Result cuOccupancyMaxPotentialClusterSize(int* size, Function* function, const LaunchConfig* config) {
    return call_for_cluster(CallId::cuOccupancyMaxPotentialClusterSize, size, function, config,
                            [&](Driver& d, int device, const Function& f, const LaunchSettings& settings) -> Result {
                                if (lacks_cluster(f, settings.cluster)) return result::invalid_cluster_size;
                                const bool fits = resident_cluster_blocks(d, device, f, *config) != 0;
                                *size = !fits ? 0 : static_cast<int>(largest_cluster(f));
                                return result::ok;
                            });
}

Result cuOccupancyMaxActiveClusters(int* clusters, Function* function, const LaunchConfig* config) {
    return call_for_cluster(CallId::cuOccupancyMaxActiveClusters, clusters, function, config,
                            [&](Driver& d, int device, const Function& f, const LaunchSettings& settings) -> Result {
                                if (lacks_cluster(f, settings.cluster)) return result::invalid_cluster_size;
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
}

}  // namespace isthmus::sim
