// SPDX-License-Identifier: Apache-2.0
// One turn of a warp. Its lanes form groups, each with a frame and an instruction.
#pragma once

#include "warp_execution.hpp"

#include <cstdint>

namespace isthmus::ptx {

class WarpRun {
public:
    WarpRun(Warp& warp, std::uint64_t steps) : w_(warp), steps_(steps) {}
    Outcome run();

private:
    static constexpr std::uint32_t no_limit = ~std::uint32_t{0};
    // Instructions of a group while others could run; then the others have a turn. Fewer than a warp has in its turn.
    static constexpr std::uint32_t patience = 4000, turn = 1000;

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

    // warp_execution.cpp
    bool choose(bool fair);
    void part(LaneMask mask);
    void branch(std::uint32_t target, LaneMask taken);
    void control(const Op& op, LaneMask mask);
    LaneMask alike(const Row& values, LaneMask mask);
    void branch_table(const Op& op, LaneMask mask);

    // warp_calls.cpp
    void call(const Op& op, std::uint32_t number, LaneMask mask);
    void call_indirect(const Op& op, LaneMask mask);
    Frame* new_frame();
    Frame* frame_of_call(const Op& op, const FunctionCode& callee, Frame& caller, std::uint32_t base, LaneMask mask);
    void copy(LaneMask mask, std::uint32_t from, std::uint32_t to, std::uint32_t bytes);
    void clear_written(LaneMask mask, std::uint32_t from, std::uint32_t bytes);
    void return_from(LaneMask mask);
    void end_in(Frame* frame, LaneMask mask);
    void exit(LaneMask mask);

    // warp_waits.cpp
    void wake_lanes();
    void warp_sync(const Op& op, LaneMask mask);
    void wake_cluster();
    bool phase_has_ended(LaneMask mask);
    void cluster_wait(const Op& op, LaneMask mask);
    void leave_cluster(LaneMask mask);
    void barrier(const Op& op, LaneMask mask);
    void count_absent(std::uint32_t id, LaneMask mask);
    void complete(std::uint32_t id);
    bool release(Warp& warp, Group& group, std::uint32_t id);  // whether the group has waited there
    void bind_if_running();

    Warp& w_;
    std::uint64_t steps_;
    std::uint64_t count_ = 0;         // instructions of the group that are not yet told
    std::uint32_t limit_ = no_limit;  // where another group waits
    std::uint32_t left_ = patience;
    bool pinned_ = false;
    bool paused_ = false;
};

}  // namespace isthmus::ptx
