// SPDX-License-Identifier: Apache-2.0
// Which group of lanes runs next, and where groups part. The group in the deepest call with the smallest instruction
// runs, so that groups meet where their paths join (see ADR 0121); in turns with the others, so that each lane makes
// progress.
#include "warp_run.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::ptx {

Outcome WarpRun::run() {
    if (!choose(std::exchange(w_.yields, false))) return nothing_to_run();
    for (;;) {
        const Op& op = *next_op();
        if (steps_ == 0) return leave(Outcome::out_of_steps);
        --steps_;
        ++count_;
        LaneMask mask = w_.now.mask;
        if (op.guard >= 0) {
            const LaneMask guard = w_.predicates[op.guard];
            mask &= op.guard_negated ? ~guard : guard;
        }
        switch (op.kind) {
            case OpKind::plain:
                if (mask != 0) op.run(w_, op, mask);
                ++w_.now.pc;
                break;
            case OpKind::may_fault:
                if (mask != 0) {
                    op.run(w_, op, mask);
                    if (w_.worker->stop) return leave(Outcome::stopped);
                }
                ++w_.now.pc;
                break;
            case OpKind::branch: branch(static_cast<std::uint32_t>(op.value), mask); break;
            default:
                if (mask == 0) {
                    ++w_.now.pc;
                    break;
                }
                part(mask);
                control(op, mask);
                if (w_.worker->stop) return leave(Outcome::stopped);
                if (paused_) return leave(Outcome::out_of_steps);
        }
        const bool tired = !w_.others.empty() && --left_ == 0;
        if (tired || w_.now.mask == 0 || w_.now.waiting != Waiting::nothing || w_.now.pc >= limit_) {
            if (!choose(tired)) return nothing_to_run();
        }
    }
}

// Chooses the group that runs next, and joins those at the same place. `fair`: the one that has waited longest.
bool WarpRun::choose(bool fair) {
    const bool was_pinned = pinned_;
    put_back();
    wake_lanes();
    wake_cluster();
    std::size_t best = w_.others.size();
    for (std::size_t at = 0; at < w_.others.size(); ++at) {
        if (w_.others[at].waiting != Waiting::nothing) continue;
        if (best == w_.others.size() || (!(fair && !was_pinned) && before(w_.others[at], w_.others[best]))) best = at;
    }
    if (best == w_.others.size()) return false;
    pinned_ = fair && !was_pinned;
    w_.now = w_.others[best];
    w_.others.erase(w_.others.begin() + static_cast<std::ptrdiff_t>(best));
    limit_ = no_limit;
    for (std::size_t at = 0; at < w_.others.size();) {
        const Group& other = w_.others[at];
        if (other.waiting == Waiting::nothing && other.frame == w_.now.frame) {
            if (other.pc == w_.now.pc) {
                w_.now.mask |= other.mask;
                if (other.failed_test != w_.now.failed_test) w_.now.failed_test = nullptr;
                w_.now.tested_again = w_.now.tested_again && other.tested_again;
                w_.others.erase(w_.others.begin() + static_cast<std::ptrdiff_t>(at));
                continue;
            }
            if (!pinned_ && other.pc > w_.now.pc) limit_ = std::min(limit_, other.pc);
        }
        ++at;
    }
    if (pinned_) {
        left_ = turn;
    } else if (was_pinned || fair || left_ == 0) {
        left_ = patience;  // otherwise the groups that were chosen since then share it
    }
    w_.block->progressed = true;
    bind();
    return true;
}

// Lanes outside of the mask skip the instruction, as a group of their own.
void WarpRun::part(LaneMask mask) {
    if (mask == w_.now.mask) return;
    tell_count();
    Group rest = w_.now;
    rest.mask &= ~mask;
    ++rest.pc;
    w_.now.mask = mask;
    w_.others.push_back(rest);
    limit_ = std::min(limit_, rest.pc);
    if (pinned_) limit_ = no_limit;
    if (left_ == 0) left_ = patience;
}

void WarpRun::branch(std::uint32_t target, LaneMask taken) {
    const LaneMask stays = w_.now.mask & ~taken;
    if (stays == 0) {
        w_.now.pc = target;
        return;
    }
    if (taken == 0) {
        ++w_.now.pc;
        return;
    }
    tell_count();
    Group other = w_.now;
    const std::uint32_t next = w_.now.pc + 1;
    const bool target_first = target < next;
    w_.now.pc = target_first ? target : next;
    w_.now.mask = target_first ? taken : stays;
    other.pc = target_first ? next : target;
    other.mask = target_first ? stays : taken;
    w_.others.push_back(other);
    if (!pinned_) limit_ = std::min(limit_, other.pc);
    if (left_ == 0) left_ = patience;
}

// Lanes with the first one's value go on; the others stay, as a group of their own.
LaneMask WarpRun::alike(const Row& values, LaneMask mask) {
    const std::uint64_t first = values[static_cast<std::size_t>(std::countr_zero(mask))];
    LaneMask same = 0;
    for_lanes(mask, [&](std::uint32_t lane) { same |= LaneMask{values[lane] == first} << lane; });
    if (same != mask) {
        tell_count();
        Group rest = w_.now;
        rest.mask = mask & ~same;
        w_.now.mask = same;
        w_.others.push_back(rest);
        if (left_ == 0) left_ = patience;
        limit_ = 0;  // choose again
    }
    return same;
}

void WarpRun::branch_table(const Op& op, LaneMask mask) {
    const Row& index = w_.in(op.a);
    const LaneMask same = alike(index, mask);
    const std::uint64_t which = index[static_cast<std::size_t>(std::countr_zero(same))] & 0xffffffff;
    if (which >= op.value) {
        return fail(w_, op, static_cast<std::uint32_t>(std::countr_zero(same)), FaultKind::invalid_pc,
                    "the index lies beyond the list of targets");
    }
    w_.now.pc = static_cast<std::uint32_t>(w_.now.frame->function->extra[op.extra + which]);
    if (!w_.others.empty()) limit_ = 0;  // choose again
}

// The mask is that of the group.
void WarpRun::control(const Op& op, LaneMask mask) {
    switch (op.kind) {
        case OpKind::branch_table: return branch_table(op, mask);
        case OpKind::call: return call(op, static_cast<std::uint32_t>(op.value), mask);
        case OpKind::call_indirect: return call_indirect(op, mask);
        case OpKind::return_: return return_from(mask);
        case OpKind::exit: return exit(mask);
        case OpKind::warp_sync: return warp_sync(op, mask);
        case OpKind::barrier: return barrier(op, mask);
        case OpKind::cluster_wait: return cluster_wait(op, mask);
        case OpKind::may_wait:
            op.run(w_, op, mask);
            w_.now.failed_test = w_.test_failed ? &op : nullptr;
            w_.now.failed_test_pc = w_.now.pc;
            w_.now.tested_again = true;
            if (!w_.test_failed) w_.block->cluster->disturb();
            ++w_.now.pc;
            paused_ = w_.yields = std::exchange(w_.waits, false);
            return;
        default:  // pause
            paused_ = true;
            w_.yields = true;
            ++w_.now.pc;
    }
}

void start_warp(Warp& warp, const FunctionCode& function, LaneMask lanes_of_warp, std::uint32_t local_bytes) {
    warp.all = lanes_of_warp;
    warp.exited = 0;
    warp.carry = 0;
    warp.finished = false;
    warp.yields = false;
    warp.waits = false;
    warp.test_failed = false;
    warp.failed_tests = 0;
    warp.copies.reset();
    warp.cluster_tickets = {};
    warp.counted = {};
    warp.stack_end = local_bytes;
    warp.stack_ends.fill(local_bytes);
    warp.local_bytes = local_bytes;
    warp.local.assign(std::size_t{lanes} * local_bytes, std::byte{0});
    warp.local_written.assign(warp.worker->finds_uninitialised ? warp.local.size() : 0, std::byte{0});
    warp.others.clear();
    warp.free_frames.clear();
    if (warp.frames.empty()) warp.frames.emplace_back();
    for (std::size_t at = 1; at < warp.frames.size(); ++at) {
        warp.frames[at].live = 0;
        warp.free_frames.push_back(&warp.frames[at]);
    }
    Frame& frame = warp.frames.front();
    frame.function = &function;
    frame.parent = nullptr;
    frame.depth = 0;
    frame.live = lanes_of_warp;
    frame.local_base = 0;
    frame.rows.assign(function.rows, Row{});
    frame.predicates.assign(function.predicates, 0);
    warp.now = {};
    warp.others.push_back({&frame, 0, lanes_of_warp, Waiting::nothing, 0});
}

Outcome run_warp(Warp& warp, std::uint64_t steps) {
    return WarpRun(warp, steps).run();
}

}  // namespace isthmus::ptx
