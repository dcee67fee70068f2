// SPDX-License-Identifier: Apache-2.0
// What groups of lanes wait for: lanes of their warp, barriers of the block, barrier.cluster.
#include "warp_run.hpp"

#include "operations.hpp"

namespace isthmus::ptx {

// Groups that wait for lanes go on when all of these have come, or have ended.
void WarpRun::wake_lanes() {
    for (std::size_t first = 0; first < w_.others.size(); ++first) {
        if (w_.others[first].waiting != Waiting::warp) continue;
        const Group group = w_.others[first];
        const Op& op = group.frame->function->ops[group.pc];
        const bool is_barrier = op.flag && op.run == warp_run("bar.warp");
        LaneMask here = 0, same = 0;
        for (const Group& other : w_.others) {
            if (other.waiting != Waiting::warp || other.member_mask != group.member_mask) continue;
            here |= other.mask;
            const bool at_barrier = is_barrier && other.frame->function->ops[other.pc].run == op.run;
            if (at_barrier || (other.frame == group.frame && other.pc == group.pc)) same |= other.mask;
        }
        const LaneMask wanted = group.member_mask & w_.all & ~w_.exited;
        if ((here & wanted) != wanted) continue;
        if ((same & wanted) != wanted) {
            fail(w_, op, static_cast<std::uint32_t>(std::countr_zero(group.mask)), FaultKind::illegal_instruction,
                 "the lanes of its mask have come to different instructions, which is not modelled");
            return;
        }
        for (Group& other : w_.others) {
            if (other.waiting != Waiting::warp || other.member_mask != group.member_mask) continue;
            other.waiting = Waiting::nothing;
            if (is_barrier) ++other.pc;
        }
    }
}

void WarpRun::warp_sync(const Op& op, LaneMask mask) {
    const Row& members = w_.in(static_cast<Place>(op.extra));
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    mask = alike(members, mask);
    const auto member = static_cast<LaneMask>(members[lane]);
    if ((mask & ~member) != 0) {
        return fail(w_, op, lane, FaultKind::illegal_instruction, "the lane is not in the mask that it states");
    }
    const LaneMask wanted = member & w_.all & ~w_.exited;
    if ((mask & wanted) == wanted) {
        op.run(w_, op, mask);
        ++w_.now.pc;
        return;
    }
    w_.now.waiting = Waiting::warp;
    w_.now.member_mask = member;
}

// Groups that wait at barrier.cluster go on when its phase has ended.
void WarpRun::wake_cluster() {
    for (Group& group : w_.others) {
        if (group.waiting == Waiting::cluster && phase_has_ended(group.mask)) {
            group.waiting = Waiting::nothing;
            ++group.pc;
        }
    }
}

bool WarpRun::phase_has_ended(LaneMask mask) {
    const std::uint64_t phase = w_.block->cluster->phase;
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        if (w_.cluster_tickets[static_cast<std::size_t>(std::countr_zero(rest))] > phase) return false;
    }
    for_lanes(mask, [&](std::uint32_t lane) { w_.cluster_tickets[lane] = 0; });
    return true;
}

// Lanes of different phases wait as groups of their own.
void WarpRun::cluster_wait(const Op& op, LaneMask mask) {
    mask = alike(w_.cluster_tickets, mask);
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (w_.cluster_tickets[lane] == 0) {
        return fail(w_, op, lane, FaultKind::illegal_instruction,
                    "barrier.cluster.wait without barrier.cluster.arrive before it");
    }
    if (phase_has_ended(mask)) {
        ++w_.now.pc;
    } else {
        w_.now.waiting = Waiting::cluster;
    }
}

// Copies that were not waited for are done, and barrier.cluster expects fewer threads.
void WarpRun::leave_cluster(LaneMask mask) {
    Cluster& cluster = *w_.block->cluster;
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        if (w_.copies) w_.copies->finish(lane, ~std::uint64_t{0});
        --cluster.threads;
        if (w_.cluster_tickets[lane] > cluster.phase) --cluster.arrived;
        w_.cluster_tickets[lane] = 0;
    }
    cluster.complete();
}

// Op: a: the barrier, b: threads (if flag), value2: 0 sync, 1 arrive, 2 red, q: the predicate of red, c: 1: its
// complement.
void WarpRun::barrier(const Op& op, LaneMask mask) {
    const Row& ids = w_.in(op.a);
    mask = alike(ids, mask);
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (ids[lane] > 15) return fail(w_, op, lane, FaultKind::illegal_instruction, "there are 16 barriers");
    const auto id = static_cast<std::uint32_t>(ids[lane]);
    Barrier& barrier = w_.block->barriers[id];
    const auto threads = static_cast<std::uint32_t>(std::popcount(mask));
    barrier.expected = op.flag ? static_cast<std::uint32_t>(w_.in(op.b)[lane]) : 0;
    barrier.arrived += threads;
    // PTX ISA, bar: a warp counts as 32 threads. Lanes that do not exist or have ended come with the first other
    // one; lanes that end later come when they end.
    if (op.flag) {
        w_.counted[id] |= mask;
        count_absent(id, ~(w_.all & ~w_.exited));
    }
    w_.block->progressed = true;
    if (op.value2 == 2) {
        const LaneMask source = op.q >= 0 ? w_.predicates[op.q] : op.q == ~1 ? ~LaneMask{0} : 0;
        barrier.count += static_cast<std::uint32_t>(std::popcount((op.c == 1 ? ~source : source) & mask));
    }
    if (op.value2 == 1) {
        ++w_.now.pc;
    } else {
        barrier.waiting += threads;
        w_.now.waiting = Waiting::barrier;
        w_.now.member_mask = id;
    }
    complete(id);
}

// Lanes that never come to the barrier, of a warp of which others have come in this phase.
void WarpRun::count_absent(std::uint32_t id, LaneMask mask) {
    const LaneMask absent = mask & ~w_.counted[id];
    w_.block->barriers[id].absent += static_cast<std::uint32_t>(std::popcount(absent));
    w_.counted[id] |= absent;
}

void WarpRun::complete(std::uint32_t id) {
    Block& block = *w_.block;
    Barrier& barrier = block.barriers[id];
    if (barrier.arrived == 0) return;
    const bool complete = barrier.expected != 0 ? barrier.arrived + barrier.absent >= barrier.expected
                                                : barrier.arrived >= block.threads - block.exited;
    if (!complete) return;
    barrier.result_count = barrier.count;
    barrier.result_threads = barrier.arrived;
    barrier.arrived = barrier.absent = barrier.waiting = barrier.count = 0;
    for (Warp& warp : block.warps) {
        warp.counted[id] = 0;
        for (Group& group : warp.others) {
            // The warp that came last does not run ahead of lower ones: on a GPU they are usually first to read what it
            // overwrites behind the barrier, and programs that lack another barrier there take it for granted.
            if (release(warp, group, id) && warp.number < w_.number) paused_ = true;
        }
        if (warp.now.mask != 0) release(warp, warp.now, id);
    }
    bind_if_running();
}

bool WarpRun::release(Warp& warp, Group& group, std::uint32_t id) {
    if (group.waiting != Waiting::barrier || group.member_mask != id) return false;
    group.waiting = Waiting::nothing;
    const Op& op = group.frame->function->ops[group.pc];
    ++group.pc;
    if (op.value2 != 2) return true;
    warp.rows = group.frame->rows.data();
    warp.constants = group.frame->function->constants.data();
    warp.predicates = group.frame->predicates.data();
    op.run(warp, op, group.mask);
    return true;
}

void WarpRun::bind_if_running() {
    if (w_.now.frame != nullptr) bind();
}

}  // namespace isthmus::ptx
