// SPDX-License-Identifier: Apache-2.0
// alloca: memory at the end of a thread's local memory, taken downwards while its function runs.
#include "operations.hpp"
#include "state.hpp"

#include <algorithm>

namespace isthmus::ptx {
namespace {

void note_least(Warp& warp) {
    warp.stack_end = *std::min_element(warp.stack_ends.begin(), warp.stack_ends.end());
}

// Op: a: bytes; value: the alignment.
void take(Warp& warp, const Op& op, LaneMask mask) {
    const Row& sizes = warp.in(op.a);
    Row& d = warp.out(op.d);
    const Frame& frame = *warp.now.frame;
    const std::uint64_t used = std::uint64_t{frame.local_base} + frame.function->local_bytes;
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint64_t end = warp.stack_ends[lane], room = end - std::min<std::uint64_t>(used, end);
        const std::uint64_t place = sizes[lane] > room ? 0 : (end - sizes[lane]) & ~(op.value - 1);
        if (sizes[lane] > room || place < used) {
            return fail(warp, op, lane, FaultKind::launch_failed,
                        "alloca of " + std::to_string(sizes[lane]) + " bytes: the stack has " + std::to_string(room) +
                            " bytes left");
        }
        warp.stack_ends[lane] = static_cast<std::uint32_t>(place);
        d[lane] = place;
        if (!warp.local_written.empty()) {
            std::byte* const written = warp.local_written.data() + std::size_t{lane} * warp.local_bytes;
            std::fill(written + place, written + end, std::byte{0});
        }
    }
    note_least(warp);
}

void save(Warp& warp, const Op& op, LaneMask mask) {
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = warp.stack_ends[lane]; });
}

void restore(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        if (a[lane] > warp.local_bytes || a[lane] < warp.stack_ends[lane]) {
            return fail(warp, op, lane, FaultKind::launch_failed, "stackrestore to what is no end of the stack before");
        }
        warp.stack_ends[lane] = static_cast<std::uint32_t>(a[lane]);
    }
    note_least(warp);
}

}  // namespace

Run alloca_run() {
    return take;
}
Run stack_save_run() {
    return save;
}
Run stack_restore_run() {
    return restore;
}

}  // namespace isthmus::ptx
