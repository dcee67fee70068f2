// SPDX-License-Identifier: Apache-2.0
// Moves of registers, and of parts of a register.
#include "operations.hpp"
#include "warp.hpp"

namespace isthmus::ptx {
namespace {

void move(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = a[lane]; });
}

void pack(Warp& warp, const Op& op, LaneMask mask) {
    const std::int32_t* const elements = warp.now.frame->function->extra.data() + op.extra;
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::uint64_t out = 0;
        for (unsigned at = 0; at < op.count; ++at) {
            out |= (warp.in(elements[at])[lane] & mask_of(op.bytes)) << (8 * op.bytes * at);
        }
        d[lane] = out;
    });
}

void unpack(Warp& warp, const Op& op, LaneMask mask) {
    const std::int32_t* const elements = warp.now.frame->function->extra.data() + op.extra;
    const Row& a = warp.in(op.a);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t value = a[lane];
        for (unsigned at = 0; at < op.count; ++at) {
            if (elements[at] < 0) continue;  // a sink
            warp.out(elements[at])[lane] = (value >> (8 * op.bytes * at)) & mask_of(op.bytes);
        }
    });
}

}  // namespace

Run move_run() {
    return move;
}
Run pack_run() {
    return pack;
}
Run unpack_run() {
    return unpack;
}

}  // namespace isthmus::ptx
