// SPDX-License-Identifier: Apache-2.0
// The lanes of a warp form groups, each with a frame and an instruction. The group in the deepest call with the
// smallest instruction runs, so that groups meet where their paths join (see ADR 0121); in turns with the others, so
// that each lane makes progress.
#include "warp_execution.hpp"

#include "operations.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::ptx {
namespace {

constexpr std::uint32_t no_limit = ~std::uint32_t{0};
// Instructions of a group while others could run; then the others have a turn. Fewer than a warp has in its turn.
constexpr std::uint32_t patience = 4000, turn = 1000;

class WarpRun {
public:
    WarpRun(Warp& warp, std::uint64_t steps) : w_(warp), steps_(steps) {}

    Outcome run() {
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

private:
    const Op* next_op() const { return &w_.now.frame->function->ops[w_.now.pc]; }

    void tell_count() {
        w_.worker->thread_instructions += count_ * static_cast<std::uint64_t>(std::popcount(w_.now.mask));
        count_ = 0;
    }
    void put_back() {
        tell_count();
        if (w_.now.mask != 0) w_.others.push_back(w_.now);
        w_.now.mask = 0;
    }
    Outcome leave(Outcome outcome) {
        put_back();
        return outcome;
    }
    Outcome nothing_to_run() {
        w_.finished = w_.others.empty();
        return w_.finished ? Outcome::finished : Outcome::blocked;
    }
    void bind() {
        w_.rows = w_.now.frame->rows.data();
        w_.constants = w_.now.frame->function->constants.data();
        w_.predicates = w_.now.frame->predicates.data();
    }

    static bool before(const Group& a, const Group& b) {
        return a.frame->depth != b.frame->depth ? a.frame->depth > b.frame->depth : a.pc < b.pc;
    }
    // Chooses the group that runs next, and joins those at the same place. `fair`: the one that has waited longest.
    bool choose(bool fair) {
        const bool was_pinned = pinned_;
        put_back();
        wake_lanes();
        wake_cluster();
        std::size_t best = w_.others.size();
        for (std::size_t at = 0; at < w_.others.size(); ++at) {
            if (w_.others[at].waiting != Waiting::nothing) continue;
            if (best == w_.others.size() || (!(fair && !was_pinned) && before(w_.others[at], w_.others[best])))
                best = at;
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

    // Groups that wait for lanes go on when all of these have come, or have ended.
    void wake_lanes() {
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

    // Groups that wait at barrier.cluster go on when its phase has ended.
    void wake_cluster() {
        for (Group& group : w_.others) {
            if (group.waiting == Waiting::cluster && phase_has_ended(group.mask)) {
                group.waiting = Waiting::nothing;
                ++group.pc;
            }
        }
    }
    bool phase_has_ended(LaneMask mask) {
        const std::uint64_t phase = w_.block->cluster->phase;
        for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
            if (w_.cluster_tickets[static_cast<std::size_t>(std::countr_zero(rest))] > phase) return false;
        }
        for_lanes(mask, [&](std::uint32_t lane) { w_.cluster_tickets[lane] = 0; });
        return true;
    }
    // Lanes of different phases wait as groups of their own.
    void cluster_wait(const Op& op, LaneMask mask) {
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

    // Lanes outside of the mask skip the instruction, as a group of their own.
    void part(LaneMask mask) {
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

    void branch(std::uint32_t target, LaneMask taken) {
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

    // The mask is that of the group.
    void control(const Op& op, LaneMask mask) {
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

    // Lanes with the first one's value go on; the others stay, as a group of their own.
    LaneMask alike(const Row& values, LaneMask mask) {
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
    void branch_table(const Op& op, LaneMask mask) {
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

    Frame* new_frame() {
        if (!w_.free_frames.empty()) {
            Frame* const frame = w_.free_frames.back();
            w_.free_frames.pop_back();
            return frame;
        }
        return &w_.frames.emplace_back();
    }

    void call_indirect(const Op& op, LaneMask mask) {
        const Row& targets = w_.in(op.a);
        mask = alike(targets, mask);
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        const std::uint64_t address = targets[lane];
        const std::uint64_t number = (address & ~window_mask) >> 4;
        const auto& functions = w_.worker->state->code->functions;
        if ((address & window_mask) != function_window || number >= functions.size() || (address & 15) != 0) {
            return fail(w_, op, lane, FaultKind::invalid_pc, "an indirect call of what is no function");
        }
        call(op, static_cast<std::uint32_t>(number), mask);
    }

    void call(const Op& op, std::uint32_t number, LaneMask mask) {
        Frame& caller = *w_.now.frame;
        const FunctionCode& callee = w_.worker->state->code->functions[number];
        const CallSite& site = caller.function->sites[op.extra];
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        if (callee.intrinsic != Intrinsic::none) {
            run_intrinsic(w_, op, mask, callee.intrinsic, site);
            ++w_.now.pc;
            return;
        }
        if (!callee.has_body || callee.refusal.refused() || callee.is_entry) {
            return fail(w_, op, lane, FaultKind::illegal_instruction,
                        "the function " + callee.name +
                            " cannot run: " + (callee.refusal.refused() ? callee.refusal.what : "it has no body"));
        }
        // A linker does not compare declarations: a result that the function does not give has any value.
        const bool gives_other = !callee.returns.empty() && site.results.size() != callee.returns.size();
        if (site.arguments.size() != callee.parameters.size() || gives_other) {
            return fail(w_, op, lane, FaultKind::invalid_pc, "the call's parameters are not those of " + callee.name);
        }
        const std::uint32_t base = caller.local_base + caller.function->local_bytes;
        if (base > w_.stack_end || callee.local_bytes > w_.stack_end - base) {
            return fail(w_, op, lane, FaultKind::launch_failed, "the call stack is full");
        }
        clear_written(mask, base, callee.local_bytes);
        for (std::size_t at = 0; at < site.arguments.size(); ++at) {
            copy(mask, caller.local_base + site.arguments[at].offset, base + callee.parameters[at].offset,
                 std::min(site.arguments[at].bytes, callee.parameters[at].bytes));
        }
        Frame* const frame = frame_of_call(op, callee, caller, base, mask);
        w_.now.frame = frame;
        w_.now.pc = 0;
        limit_ = no_limit;
        for (const Group& other : w_.others) {
            if (!pinned_ && other.frame == frame && other.waiting == Waiting::nothing) {
                limit_ = std::min(limit_, other.pc);
            }
        }
        bind();
    }

    // Lanes that come to a call later use the frame of those that are in it, so that they can meet there.
    Frame* frame_of_call(const Op& op, const FunctionCode& callee, Frame& caller, std::uint32_t base, LaneMask mask) {
        for (Frame& frame : w_.frames) {
            if (frame.live == 0 || frame.parent != &caller || frame.call != &op || frame.function != &callee) continue;
            for (Row& row : frame.rows) for_lanes(mask, [&](std::uint32_t lane) { row[lane] = 0; });
            for (LaneMask& predicate : frame.predicates) predicate &= ~mask;
            frame.live |= mask;
            return &frame;
        }
        Frame* const frame = new_frame();
        frame->function = &callee;
        frame->parent = &caller;
        frame->return_pc = w_.now.pc + 1;
        frame->depth = caller.depth + 1;
        frame->call = &op;
        frame->live = mask;
        frame->local_base = base;
        frame->rows.assign(callee.rows, Row{});
        frame->predicates.assign(callee.predicates, 0);
        return frame;
    }

    void copy(LaneMask mask, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
        for_lanes(mask,
                  [&](std::uint32_t lane) { std::memmove(w_.local_at(lane) + to, w_.local_at(lane) + from, bytes); });
        if (w_.local_written.empty()) return;
        for_lanes(mask, [&](std::uint32_t lane) {
            std::byte* const written = w_.local_written.data() + std::size_t{lane} * w_.local_bytes;
            std::memmove(written + to, written + from, bytes);
        });
    }
    // The variables of a function begin anew with each call.
    void clear_written(LaneMask mask, std::uint32_t from, std::uint32_t bytes) {
        if (w_.local_written.empty()) return;
        for_lanes(mask, [&](std::uint32_t lane) {
            std::memset(w_.local_written.data() + std::size_t{lane} * w_.local_bytes + from, 0, bytes);
        });
    }

    void return_from(LaneMask mask) {
        Frame* const frame = w_.now.frame;
        if (frame->parent == nullptr) return exit(mask);
        const CallSite& site = frame->parent->function->sites[frame->call->extra];
        for (std::size_t at = 0; at < frame->function->returns.size(); ++at) {
            copy(mask, frame->local_base + frame->function->returns[at].offset,
                 frame->parent->local_base + site.results[at].offset,
                 std::min(site.results[at].bytes, frame->function->returns[at].bytes));
        }
        w_.now.frame = frame->parent;
        w_.now.pc = frame->return_pc;
        end_in(frame, mask);
        bind();
        if (!w_.others.empty()) limit_ = 0;  // choose again
    }

    void end_in(Frame* frame, LaneMask mask) {
        frame->live &= ~mask;
        if (frame->live == 0 && frame->parent != nullptr) w_.free_frames.push_back(frame);
    }

    void exit(LaneMask mask) {
        tell_count();
        for (Frame* frame = w_.now.frame; frame != nullptr;) {
            Frame* const parent = frame->parent;
            end_in(frame, mask);
            frame = parent;
        }
        w_.now.mask &= ~mask;
        w_.exited |= mask;
        w_.block->exited += static_cast<std::uint32_t>(std::popcount(mask));
        for (std::uint32_t id = 0; id < w_.block->barriers.size(); ++id) {
            if (w_.counted[id] != 0) count_absent(id, mask);
            complete(id);
        }
        leave_cluster(mask);
    }
    // Copies that were not waited for are done, and barrier.cluster expects fewer threads.
    void leave_cluster(LaneMask mask) {
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

    void warp_sync(const Op& op, LaneMask mask) {
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

    // Op: a: the barrier, b: threads (if flag), value2: 0 sync, 1 arrive, 2 red, q: the predicate of red, c: 1: its
    // complement.
    void barrier(const Op& op, LaneMask mask) {
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
    void count_absent(std::uint32_t id, LaneMask mask) {
        const LaneMask absent = mask & ~w_.counted[id];
        w_.block->barriers[id].absent += static_cast<std::uint32_t>(std::popcount(absent));
        w_.counted[id] |= absent;
    }

    void complete(std::uint32_t id) {
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
            for (Group& group : warp.others) release(warp, group, id);
            if (warp.now.mask != 0) release(warp, warp.now, id);
        }
        bind_if_running();
    }
    void release(Warp& warp, Group& group, std::uint32_t id) {
        if (group.waiting != Waiting::barrier || group.member_mask != id) return;
        group.waiting = Waiting::nothing;
        const Op& op = group.frame->function->ops[group.pc];
        ++group.pc;
        if (op.value2 != 2) return;
        warp.rows = group.frame->rows.data();
        warp.constants = group.frame->function->constants.data();
        warp.predicates = group.frame->predicates.data();
        op.run(warp, op, group.mask);
    }
    void bind_if_running() {
        if (w_.now.frame != nullptr) bind();
    }

    Warp& w_;
    std::uint64_t steps_;
    std::uint64_t count_ = 0;         // instructions of the group that are not yet told
    std::uint32_t limit_ = no_limit;  // where another group waits
    std::uint32_t left_ = patience;
    bool pinned_ = false;
    bool paused_ = false;
};

}  // namespace

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
