// SPDX-License-Identifier: Apache-2.0
// Addresses of one space as generic ones and back, and which space one lies in.
#include "operations.hpp"
#include "state.hpp"

namespace isthmus::ptx {
namespace {

std::uint64_t window_of(Space space) {
    switch (space) {
        case Space::shared: return shared_window;
        case Space::local: return local_window;
        case Space::param: return param_window;
        default: return 0;
    }
}

template <Space space>
void to_generic(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = a[lane] + window_of(space); });
}

template <Space space>
void from_generic(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = a[lane] - window_of(space); });
}

// Variables of .const lie among those of .global.
bool is_in_constants(const ProgramCode& code, std::uint64_t address) {
    for (std::size_t at = 0; at < code.variables.size(); ++at) {
        const GlobalVariable& one = code.variables[at];
        if (one.is_constant && address >= code.addresses[at] && address - code.addresses[at] < one.size_bytes)
            return true;
    }
    return false;
}

template <Space space>
void is_space(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t window = a[lane] & window_mask;
        if constexpr (space == Space::constant || space == Space::global) {
            if (is_in_constants(*warp.worker->state->code, a[lane])) {
                yes |= LaneMask{space == Space::constant} << lane;
                return;
            }
            if (space == Space::constant) return;
        }
        const bool global = window != shared_window && window != local_window && window != param_window;
        // Shared memory is the own block's.
        const std::uint64_t rank = (a[lane] & ~window_mask) >> cluster_shift;
        const bool own = space != Space::shared || rank == 0 || rank - 1 == warp.block->rank;
        yes |= LaneMask{space == Space::global ? global : window == window_of(space) && own} << lane;
    });
    warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | yes;
}

void is_cluster(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) { yes |= LaneMask{(a[lane] & window_mask) == shared_window} << lane; });
    warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | yes;
}

void local_address(Warp& warp, const Op& op, LaneMask mask) {
    Row& d = warp.out(op.d);
    const std::uint64_t address = warp.now.frame->local_base + op.value;
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = address; });
}

}  // namespace

Run local_address_run() {
    return local_address;
}
Run to_generic_run(Space space) {
    switch (space) {
        case Space::shared: return to_generic<Space::shared>;
        case Space::local: return to_generic<Space::local>;
        case Space::param: return to_generic<Space::param>;
        default: return move_run();
    }
}
Run from_generic_run(Space space) {
    switch (space) {
        case Space::shared: return from_generic<Space::shared>;
        case Space::local: return from_generic<Space::local>;
        case Space::param: return from_generic<Space::param>;
        default: return move_run();
    }
}
Run is_cluster_run() {
    return is_cluster;
}
Run is_space_run(Space space) {
    switch (space) {
        case Space::shared: return is_space<Space::shared>;
        case Space::local: return is_space<Space::local>;
        case Space::param: return is_space<Space::param>;
        case Space::global: return is_space<Space::global>;
        case Space::constant: return is_space<Space::constant>;
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
