// SPDX-License-Identifier: Apache-2.0
// Clusters: addresses in the shared memory of other blocks, and barrier.cluster.
#include "operations.hpp"
#include "state.hpp"

namespace isthmus::ptx {
namespace {

// An address with the rank of its block: own addresses of a block have 0 there, and those of a block without others.
constexpr std::uint64_t offset_mask = (std::uint64_t{1} << cluster_shift) - 1;

template <bool generic>
void map_rank(Warp& warp, const Op& op, LaneMask mask) {
    const Row &from = warp.in(op.a), &ranks = warp.in(op.b);
    Row& d = warp.out(op.d);
    const std::size_t blocks = warp.block->cluster->blocks.size();
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint64_t address = from[lane] + op.value, rank = ranks[lane] & 0xffffffff;
        if (generic && (address & window_mask) != shared_window) {
            return fail(warp, op, lane, FaultKind::illegal_instruction,
                        "mapa of " + in_hex(address) + ", which is no address of shared memory");
        }
        if (rank >= blocks) {
            return fail(warp, op, lane, FaultKind::launch_failed,  // as the access to it on an H200
                        "mapa to block " + std::to_string(rank) + " of a cluster of " + std::to_string(blocks));
        }
        const std::uint64_t code = blocks == 1 ? 0 : rank + 1;
        d[lane] = (generic ? shared_window : 0) | code << cluster_shift | (address & offset_mask);
    }
}

template <bool generic>
void rank_of(Warp& warp, const Op& op, LaneMask mask) {
    const Row& from = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t code = ((from[lane] + op.value) & (generic ? ~window_mask : 0xffffffff)) >> cluster_shift;
        d[lane] = code == 0 ? warp.block->rank : code - 1;
    });
}

void arrive(Warp& warp, const Op& op, LaneMask mask) {
    Cluster& cluster = *warp.block->cluster;
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        if (warp.cluster_tickets[lane] != 0) {
            return fail(warp, op, lane, FaultKind::illegal_instruction,
                        "barrier.cluster.arrive again, without barrier.cluster.wait in between");
        }
        warp.cluster_tickets[lane] = cluster.phase + 1;
        ++cluster.arrived;
    }
    cluster.complete();
    warp.block->progressed = true;
}

}  // namespace

Run map_rank_run(bool generic) {
    return generic ? map_rank<true> : map_rank<false>;
}
Run rank_of_run(bool generic) {
    return generic ? rank_of<true> : rank_of<false>;
}
Run cluster_arrive_run() {
    return arrive;
}

}  // namespace isthmus::ptx
