// SPDX-License-Identifier: Apache-2.0
// Special registers: %tid, %clusterid, %clock and so on.
#include "operations.hpp"
#include "state.hpp"

#include <chrono>
#include <utility>

namespace isthmus::ptx {
namespace {

enum class Special : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
    dynamic_smem,
    total_smem,
    grid_low,
    grid_high,
    warp_size,
    zero,  // counters of a profiler, which does not run; the graph of a launch, which is none of the device's
    dynamic_start,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    count
};
constexpr std::pair<std::string_view, Special> specials[] = {{"%tid.x", Special::tid_x},
                                                             {"%tid.y", Special::tid_y},
                                                             {"%tid.z", Special::tid_z},
                                                             {"%ntid.x", Special::ntid_x},
                                                             {"%ntid.y", Special::ntid_y},
                                                             {"%ntid.z", Special::ntid_z},
                                                             {"%ctaid.x", Special::ctaid_x},
                                                             {"%ctaid.y", Special::ctaid_y},
                                                             {"%ctaid.z", Special::ctaid_z},
                                                             {"%nctaid.x", Special::nctaid_x},
                                                             {"%nctaid.y", Special::nctaid_y},
                                                             {"%nctaid.z", Special::nctaid_z},
                                                             {"%laneid", Special::laneid},
                                                             {"%warpid", Special::warpid},
                                                             {"%nwarpid", Special::nwarpid},
                                                             {"%smid", Special::smid},
                                                             {"%nsmid", Special::nsmid},
                                                             {"%gridid", Special::gridid},
                                                             {"%lanemask_eq", Special::lanemask_eq},
                                                             {"%lanemask_le", Special::lanemask_le},
                                                             {"%lanemask_lt", Special::lanemask_lt},
                                                             {"%lanemask_ge", Special::lanemask_ge},
                                                             {"%lanemask_gt", Special::lanemask_gt},
                                                             {"%clock", Special::clock},
                                                             {"%clock_hi", Special::clock_hi},
                                                             {"%clock64", Special::clock64},
                                                             {"%globaltimer", Special::globaltimer},
                                                             {"%globaltimer_lo", Special::globaltimer_lo},
                                                             {"%globaltimer_hi", Special::globaltimer_hi},
                                                             {"%dynamic_smem_size", Special::dynamic_smem},
                                                             {"%total_smem_size", Special::total_smem},
                                                             {"%envreg2", Special::grid_low},
                                                             {"%envreg1", Special::grid_high},
                                                             {"%clusterid.x", Special::clusterid_x},
                                                             {"%clusterid.y", Special::clusterid_y},
                                                             {"%clusterid.z", Special::clusterid_z},
                                                             {"%nclusterid.x", Special::nclusterid_x},
                                                             {"%nclusterid.y", Special::nclusterid_y},
                                                             {"%nclusterid.z", Special::nclusterid_z},
                                                             {"%cluster_ctaid.x", Special::cluster_ctaid_x},
                                                             {"%cluster_ctaid.y", Special::cluster_ctaid_y},
                                                             {"%cluster_ctaid.z", Special::cluster_ctaid_z},
                                                             {"%cluster_nctaid.x", Special::cluster_nctaid_x},
                                                             {"%cluster_nctaid.y", Special::cluster_nctaid_y},
                                                             {"%cluster_nctaid.z", Special::cluster_nctaid_z},
                                                             {"%cluster_ctarank", Special::cluster_ctarank},
                                                             {"%cluster_nctarank", Special::cluster_nctarank},
                                                             {"%is_explicit_cluster", Special::is_explicit_cluster},
                                                             {"%pm0", Special::zero},
                                                             {"%pm1", Special::zero},
                                                             {"%pm2", Special::zero},
                                                             {"%pm3", Special::zero},
                                                             {"%pm4", Special::zero},
                                                             {"%pm5", Special::zero},
                                                             {"%pm6", Special::zero},
                                                             {"%pm7", Special::zero},
                                                             {"%pm0_64", Special::zero},
                                                             {"%pm1_64", Special::zero},
                                                             {"%pm2_64", Special::zero},
                                                             {"%pm3_64", Special::zero},
                                                             {"%pm4_64", Special::zero},
                                                             {"%pm5_64", Special::zero},
                                                             {"%pm6_64", Special::zero},
                                                             {"%pm7_64", Special::zero},
                                                             {"%current_graph_exec", Special::zero},
                                                             {"WARP_SZ", Special::warp_size},
                                                             {dynamic_shared_name, Special::dynamic_start}};

std::uint64_t nanoseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <Special what>
std::uint64_t special_value(const Warp& warp, const Execution::State& state, std::uint32_t lane) {
    const Dimensions &block = state.shape.block, &grid = state.shape.grid, &at = warp.block->at,
                     &cluster = state.shape.cluster;
    const std::uint32_t thread = warp.number * lanes + lane;
    // Where grid.sync() is lawful, the environment registers hold the address of its workspace.
    const std::uint64_t workspace = state.shape.cooperative ? grid_window : 0;
    switch (what) {
        case Special::tid_x: return thread % block.x;
        case Special::tid_y: return thread / block.x % block.y;
        case Special::tid_z: return thread / block.x / block.y;
        case Special::ntid_x: return block.x;
        case Special::ntid_y: return block.y;
        case Special::ntid_z: return block.z;
        case Special::ctaid_x: return at.x;
        case Special::ctaid_y: return at.y;
        case Special::ctaid_z: return at.z;
        case Special::nctaid_x: return grid.x;
        case Special::nctaid_y: return grid.y;
        case Special::nctaid_z: return grid.z;
        case Special::laneid: return lane;
        case Special::warpid: return warp.number;
        case Special::nwarpid: return (state.threads + lanes - 1) / lanes;
        case Special::smid: return warp.block->number % state.shape.multiprocessors;
        case Special::nsmid: return state.shape.multiprocessors;
        case Special::lanemask_eq: return LaneMask{1} << lane;
        case Special::lanemask_lt: return (LaneMask{1} << lane) - 1;
        case Special::lanemask_le: return ((LaneMask{1} << lane) - 1) | (LaneMask{1} << lane);
        case Special::lanemask_ge: return ~((LaneMask{1} << lane) - 1);
        case Special::lanemask_gt: return ~(((LaneMask{1} << lane) - 1) | (LaneMask{1} << lane));
        case Special::clock:
        case Special::globaltimer_lo: return nanoseconds() & 0xffffffff;
        case Special::clock_hi:
        case Special::globaltimer_hi: return nanoseconds() >> 32;
        case Special::clock64:
        case Special::globaltimer: return nanoseconds();
        case Special::dynamic_smem: return state.shape.dynamic_shared_bytes;
        case Special::total_smem: return warp.block->shared.size() - reserved_shared_bytes;
        case Special::grid_low: return workspace & 0xffffffff;
        case Special::grid_high: return workspace >> 32;
        case Special::warp_size: return lanes;
        case Special::clusterid_x: return at.x / cluster.x;
        case Special::clusterid_y: return at.y / cluster.y;
        case Special::clusterid_z: return at.z / cluster.z;
        case Special::nclusterid_x: return grid.x / cluster.x;
        case Special::nclusterid_y: return grid.y / cluster.y;
        case Special::nclusterid_z: return grid.z / cluster.z;
        case Special::cluster_ctaid_x: return at.x % cluster.x;
        case Special::cluster_ctaid_y: return at.y % cluster.y;
        case Special::cluster_ctaid_z: return at.z % cluster.z;
        case Special::cluster_nctaid_x: return cluster.x;
        case Special::cluster_nctaid_y: return cluster.y;
        case Special::cluster_nctaid_z: return cluster.z;
        case Special::cluster_ctarank: return warp.block->rank;
        case Special::cluster_nctarank: return std::uint64_t{cluster.x} * cluster.y * cluster.z;
        case Special::is_explicit_cluster: return state.shape.explicit_cluster ? 1 : 0;
        case Special::dynamic_start: return state.entry->shared_bytes;
        default: return 0;
    }
}

template <Special what>
void special(Warp& warp, const Op& op, LaneMask mask) {
    const Execution::State& state = *warp.worker->state;
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = special_value<what>(warp, state, lane); });
}

template <std::size_t... at>
Run chosen(Special what, std::index_sequence<at...>) {
    constexpr Run rows[] = {special<static_cast<Special>(at)>...};
    return rows[static_cast<std::size_t>(what)];
}

}  // namespace

Run special_run(std::string_view name, std::string_view part) {
    const std::string whole = std::string(name) + std::string(part);
    for (const auto& [known, what] : specials) {
        if (known == whole) return chosen(what, std::make_index_sequence<static_cast<std::size_t>(Special::count)>());
    }
    return nullptr;
}

}  // namespace isthmus::ptx
