// SPDX-License-Identifier: Apache-2.0
// Operations of integers on the lanes of a warp, and finding them by name.
#pragma once

#include "named_run.hpp"
#include "warp.hpp"

#include <type_traits>

namespace isthmus::ptx {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
inline constexpr unsigned bits = sizeof(T) * 8;

// F has of(a), of(a, b) or of(a, b, c).
template <class T, class F>
void unary(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = to_slot(F::of(from_slot<T>(a[lane]))); });
}
template <class T, class F>
void binary(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask,
              [&](std::uint32_t lane) { d[lane] = to_slot(F::of(from_slot<T>(a[lane]), from_slot<T>(b[lane]))); });
}
template <class T, class F>
void ternary(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = to_slot(F::of(from_slot<T>(a[lane]), from_slot<T>(b[lane]), from_slot<T>(c[lane])));
    });
}

}  // namespace isthmus::ptx
