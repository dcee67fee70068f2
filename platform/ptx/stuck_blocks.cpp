// SPDX-License-Identifier: Apache-2.0
// Finds what groups of lanes wait for, and says it.
#include "stuck_blocks.hpp"

#include "endless_waits.hpp"
#include "operations.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace isthmus::ptx {
namespace {

constexpr std::uint32_t most_passes_between_looks = 1 << 16;

template <class Body>
void for_groups(Cluster& cluster, Body&& body) {
    for (Block* const block : cluster.blocks) {
        if (block == nullptr) continue;
        for (Warp& warp : block->warps) {
            if (warp.finished) continue;
            for (Group& group : warp.others) body(warp, group);
        }
    }
}

bool waits_for_others(const Warp& warp, const Group& group, bool again) {
    if (group.waiting == Waiting::cluster) {
        for (LaneMask rest = group.mask; rest != 0; rest &= rest - 1) {
            const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
            if (warp.cluster_tickets[lane] > warp.block->cluster->phase) return true;
        }
        return false;
    }
    if (group.waiting != Waiting::nothing) return true;
    if (group.failed_test == nullptr || (again && !group.tested_again)) return false;
    const FunctionCode& function = *group.frame->function;
    const std::uint32_t test = group.failed_test_pc;
    const bool is_own = test < function.ops.size() && &function.ops[test] == group.failed_test;
    return is_own && only_the_object_ends(function, test);
}

void endless_wait(Warp& warp, const Group& group) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(group.mask));
    warp.now.frame = group.frame;
    warp.rows = group.frame->rows.data();
    warp.constants = group.frame->function->constants.data();
    const std::string what = awaited(warp, *group.failed_test, lane);
    fail(warp, *group.failed_test, lane, FaultKind::launch_failed,
         what + "; every thread of the " + (warp.worker->state->cluster_blocks == 1 ? "block" : "cluster") +
             " waits for others, and none can go on");
}

std::string missing_lanes(const Warp& warp, const Group& group) {
    if (group.waiting != Waiting::warp) return "";
    LaneMask missing = group.member_mask & warp.all & ~warp.exited;
    for (const Group& other : warp.others) {
        if (other.waiting == Waiting::warp && other.member_mask == group.member_mask) missing &= ~other.mask;
    }
    if (missing == 0) return "";
    const LaneMask first = missing & (0 - missing);
    const int others = std::popcount(missing) - 1;
    std::string out = "it waits for lane " + std::to_string(std::countr_zero(missing)) +
                      (others == 0 ? "" : " and " + std::to_string(others) + " others") + " of its mask";
    for (const Group& other : warp.others) {
        if ((other.mask & first) == 0) continue;
        out += ", which waits at PTX line " + std::to_string(other.frame->function->ops[other.pc].line);
    }
    return out + "; ";
}

}  // namespace

void look_for_endless_waits(Cluster& cluster) {
    Warp* waiting = nullptr;
    const Group* at = nullptr;
    bool all_wait = true;
    for_groups(cluster, [&](Warp& warp, Group& group) {
        all_wait = all_wait && waits_for_others(warp, group, cluster.suspected);
        if (group.waiting != Waiting::nothing || waiting != nullptr) return;
        waiting = &warp;
        at = &group;
    });
    if (!all_wait || waiting == nullptr) {  // without the second: a deadlock of another kind
        if (cluster.suspected) return;      // a group that has not tested again
        cluster.next_look = cluster.quiet_passes + std::min(cluster.quiet_passes, most_passes_between_looks);
        return;
    }
    if (cluster.suspected) return endless_wait(*waiting, *at);
    cluster.suspected = true;
    for_groups(cluster, [](Warp&, Group& group) { group.tested_again = false; });
}

void deadlock(Block& block) {
    for (const bool of_warp : {true, false}) {
        for (Warp& warp : block.warps) {
            if (warp.finished) continue;
            for (const Group& group : warp.others) {
                if ((group.waiting == Waiting::warp) != of_warp) continue;
                warp.now.frame = group.frame;
                return fail(
                    warp, group.frame->function->ops[group.pc],
                    static_cast<std::uint32_t>(std::countr_zero(group.mask)), FaultKind::launch_failed,
                    missing_lanes(warp, group) + "every thread of the block waits for others, and none can go on");
            }
        }
    }
}

}  // namespace isthmus::ptx
