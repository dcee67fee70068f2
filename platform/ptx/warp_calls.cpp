// SPDX-License-Identifier: Apache-2.0
// Calls of functions, their frames, and the end of lanes.
#include "warp_run.hpp"

#include <algorithm>

namespace isthmus::ptx {

void WarpRun::call_indirect(const Op& op, LaneMask mask) {
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

void WarpRun::call(const Op& op, std::uint32_t number, LaneMask mask) {
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

Frame* WarpRun::new_frame() {
    if (!w_.free_frames.empty()) {
        Frame* const frame = w_.free_frames.back();
        w_.free_frames.pop_back();
        return frame;
    }
    return &w_.frames.emplace_back();
}

// Lanes that come to a call later use the frame of those that are in it, so that they can meet there.
Frame* WarpRun::frame_of_call(const Op& op, const FunctionCode& callee, Frame& caller, std::uint32_t base,
                              LaneMask mask) {
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

void WarpRun::copy(LaneMask mask, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    for_lanes(mask, [&](std::uint32_t lane) { std::memmove(w_.local_at(lane) + to, w_.local_at(lane) + from, bytes); });
    if (w_.local_written.empty()) return;
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const written = w_.local_written.data() + std::size_t{lane} * w_.local_bytes;
        std::memmove(written + to, written + from, bytes);
    });
}

// The variables of a function begin anew with each call.
void WarpRun::clear_written(LaneMask mask, std::uint32_t from, std::uint32_t bytes) {
    if (w_.local_written.empty()) return;
    for_lanes(mask, [&](std::uint32_t lane) {
        std::memset(w_.local_written.data() + std::size_t{lane} * w_.local_bytes + from, 0, bytes);
    });
}

void WarpRun::return_from(LaneMask mask) {
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

void WarpRun::end_in(Frame* frame, LaneMask mask) {
    frame->live &= ~mask;
    if (frame->live == 0 && frame->parent != nullptr) w_.free_frames.push_back(frame);
}

void WarpRun::exit(LaneMask mask) {
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

}  // namespace isthmus::ptx
