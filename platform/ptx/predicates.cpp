// SPDX-License-Identifier: Apache-2.0
// Comparisons, selections, and logic of predicates. A predicate is a mask of lanes.
#include "numbers.hpp"
#include "warp.hpp"

#include <cmath>
#include <type_traits>

namespace isthmus::ptx {
namespace {

template <int format>
struct HalfKind {};
using F16 = HalfKind<0>;
using Bf16 = HalfKind<1>;
template <class T>
constexpr bool is_half = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;

template <class T, bool ftz>
auto value_of(std::uint64_t slot) {
    if constexpr (is_half<T>) {
        constexpr HalfFormat format = std::is_same_v<T, F16> ? half_format : bfloat_format;
        auto bits = static_cast<std::uint16_t>(slot);
        if (ftz && (bits & 0x7fff) < (1 << format.fraction_bits)) bits &= 0x8000;
        return number_of(format, bits);
    } else if constexpr (std::is_floating_point_v<T>) {
        const T value = from_slot<T>(slot);
        return ftz ? flushed(value) : value;
    } else {
        return from_slot<T>(slot);
    }
}

template <class T>
bool holds(Comparison comparison, T a, T b) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    switch (comparison) {
        case Comparison::eq: return a == b;
        case Comparison::ne: return !unordered && a != b;
        case Comparison::lt: return a < b;
        case Comparison::le: return a <= b;
        case Comparison::gt: return a > b;
        case Comparison::ge: return a >= b;
        case Comparison::equ: return unordered || a == b;
        case Comparison::neu: return unordered || a != b;
        case Comparison::ltu: return unordered || a < b;
        case Comparison::leu: return unordered || a <= b;
        case Comparison::gtu: return unordered || a > b;
        case Comparison::geu: return unordered || a >= b;
        case Comparison::num: return !unordered;
        case Comparison::nan: return unordered;
    }
    return false;
}

template <class T, bool ftz, Comparison comparison>
LaneMask compared_as(const Row& a, const Row& b, LaneMask mask, unsigned shift) {
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        yes |= LaneMask{holds(comparison, value_of<T, ftz>(a[lane] >> shift), value_of<T, ftz>(b[lane] >> shift))}
               << lane;
    });
    return yes;
}

template <class T, bool ftz>
LaneMask compared(Comparison comparison, const Row& a, const Row& b, LaneMask mask, unsigned shift = 0) {
    switch (comparison) {
        case Comparison::eq: return compared_as<T, ftz, Comparison::eq>(a, b, mask, shift);
        case Comparison::ne: return compared_as<T, ftz, Comparison::ne>(a, b, mask, shift);
        case Comparison::lt: return compared_as<T, ftz, Comparison::lt>(a, b, mask, shift);
        case Comparison::le: return compared_as<T, ftz, Comparison::le>(a, b, mask, shift);
        case Comparison::gt: return compared_as<T, ftz, Comparison::gt>(a, b, mask, shift);
        case Comparison::ge: return compared_as<T, ftz, Comparison::ge>(a, b, mask, shift);
        case Comparison::equ: return compared_as<T, ftz, Comparison::equ>(a, b, mask, shift);
        case Comparison::neu: return compared_as<T, ftz, Comparison::neu>(a, b, mask, shift);
        case Comparison::ltu: return compared_as<T, ftz, Comparison::ltu>(a, b, mask, shift);
        case Comparison::leu: return compared_as<T, ftz, Comparison::leu>(a, b, mask, shift);
        case Comparison::gtu: return compared_as<T, ftz, Comparison::gtu>(a, b, mask, shift);
        case Comparison::geu: return compared_as<T, ftz, Comparison::geu>(a, b, mask, shift);
        case Comparison::num: return compared_as<T, ftz, Comparison::num>(a, b, mask, shift);
        case Comparison::nan: return compared_as<T, ftz, Comparison::nan>(a, b, mask, shift);
    }
    return 0;
}

// A place below 0 is a constant predicate: ~0 is false, ~1 is true.
LaneMask predicate_of(const Warp& warp, Place place) {
    return place >= 0 ? warp.predicates[place] : place == ~1 ? ~LaneMask{0} : 0;
}

// Op::c: the predicate that is combined, Op::flag: its complement.
LaneMask combined(const Warp& warp, const Op& op, LaneMask value) {
    if (static_cast<Combine>(op.value) == Combine::none) return value;
    const LaneMask with = op.flag ? ~predicate_of(warp, op.c) : predicate_of(warp, op.c);
    switch (static_cast<Combine>(op.value)) {
        case Combine::and_: return value & with;
        case Combine::or_: return value | with;
        default: return value ^ with;
    }
}
void put(Warp& warp, std::int32_t predicate, LaneMask mask, LaneMask value) {
    if (predicate < 0) return;
    warp.predicates[predicate] = (warp.predicates[predicate] & ~mask) | (value & mask);
}

template <class T, bool ftz>
void set_predicate(Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask yes = compared<T, ftz>(static_cast<Comparison>(op.mode), warp.in(op.a), warp.in(op.b), mask);
    const LaneMask first = combined(warp, op, yes), second = combined(warp, op, ~yes);
    put(warp, op.p, mask, first);
    put(warp, op.q, mask, second);
}
// Of pairs: p is the lower half's, q the upper one's.
template <class T, bool ftz>
void set_predicates_of_pair(Warp& warp, const Op& op, LaneMask mask) {
    const auto comparison = static_cast<Comparison>(op.mode);
    const LaneMask low = combined(warp, op, compared<T, ftz>(comparison, warp.in(op.a), warp.in(op.b), mask));
    const LaneMask high = combined(warp, op, compared<T, ftz>(comparison, warp.in(op.a), warp.in(op.b), mask, 16));
    put(warp, op.p, mask, low);
    put(warp, op.q, mask, high);
}
// Op::value2: 1: 1.0 of f32; otherwise all bits of Op::bytes.
template <class T, bool ftz>
void set_number(Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask yes =
        combined(warp, op, compared<T, ftz>(static_cast<Comparison>(op.mode), warp.in(op.a), warp.in(op.b), mask));
    const std::uint64_t one = op.value2 == 1   ? 0x3f800000
                              : op.value2 == 2 ? 0x3c00
                              : op.value2 == 3 ? 0x3f80
                                               : mask_of(op.bytes);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = ((yes >> lane) & 1) != 0 ? one : 0; });
}
template <class T, bool ftz>
void set_pair(Warp& warp, const Op& op, LaneMask mask) {
    const auto comparison = static_cast<Comparison>(op.mode);
    const LaneMask low = combined(warp, op, compared<T, ftz>(comparison, warp.in(op.a), warp.in(op.b), mask));
    const LaneMask high = combined(warp, op, compared<T, ftz>(comparison, warp.in(op.a), warp.in(op.b), mask, 16));
    const std::uint64_t one = op.value2 == 2 ? 0x3c00 : op.value2 == 3 ? 0x3f80 : 0xffff;
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = (((low >> lane) & 1) != 0 ? one : 0) | (((high >> lane) & 1) != 0 ? one << 16 : 0);
    });
}

void select(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    const LaneMask which = predicate_of(warp, op.p);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = ((which >> lane) & 1) != 0 ? a[lane] : b[lane]; });
}

// Op::flag and Op::value2: the complement of a, and of b.
template <int what>
void logic(Warp& warp, const Op& op, LaneMask mask) {
    const LaneMask a = op.flag ? ~predicate_of(warp, op.a) : predicate_of(warp, op.a);
    const LaneMask b = op.value2 != 0 ? ~predicate_of(warp, op.b) : predicate_of(warp, op.b);
    const LaneMask out = what == 0 ? a & b : what == 1 ? a | b : what == 2 ? a ^ b : what == 3 ? ~a : a;
    put(warp, op.p, mask, out);
}

template <bool ftz>
Run float_comparison(Type type) {
    switch (type) {
        case Type::f16: return set_predicate<F16, ftz>;
        case Type::bf16: return set_predicate<Bf16, ftz>;
        case Type::f16x2: return set_predicates_of_pair<F16, ftz>;
        case Type::bf16x2: return set_predicates_of_pair<Bf16, ftz>;
        case Type::f32: return set_predicate<float, ftz>;
        default: return nullptr;
    }
}
template <bool ftz>
Run float_set(Type type) {
    switch (type) {
        case Type::f16: return set_number<F16, ftz>;
        case Type::bf16: return set_number<Bf16, ftz>;
        case Type::f16x2: return set_pair<F16, ftz>;
        case Type::bf16x2: return set_pair<Bf16, ftz>;
        case Type::f32: return set_number<float, ftz>;
        default: return nullptr;
    }
}

}  // namespace

Run compare_run(Type type, bool ftz) {
    if (ftz) return float_comparison<true>(type);
    switch (type) {
        case Type::b16:
        case Type::u16: return set_predicate<std::uint16_t, false>;
        case Type::b32:
        case Type::u32: return set_predicate<std::uint32_t, false>;
        case Type::b64:
        case Type::u64: return set_predicate<std::uint64_t, false>;
        case Type::s16: return set_predicate<std::int16_t, false>;
        case Type::s32: return set_predicate<std::int32_t, false>;
        case Type::s64: return set_predicate<std::int64_t, false>;
        case Type::f64: return set_predicate<double, false>;
        default: return float_comparison<false>(type);
    }
}

Run set_run(Type type, bool ftz) {
    if (ftz) return float_set<true>(type);
    switch (type) {
        case Type::b16:
        case Type::u16: return set_number<std::uint16_t, false>;
        case Type::b32:
        case Type::u32: return set_number<std::uint32_t, false>;
        case Type::b64:
        case Type::u64: return set_number<std::uint64_t, false>;
        case Type::s16: return set_number<std::int16_t, false>;
        case Type::s32: return set_number<std::int32_t, false>;
        case Type::s64: return set_number<std::int64_t, false>;
        case Type::f64: return set_number<double, false>;
        default: return float_set<false>(type);
    }
}

Run select_run() {
    return select;
}

Run predicate_run(std::string_view name) {
    if (name == "and") return logic<0>;
    if (name == "or") return logic<1>;
    if (name == "xor") return logic<2>;
    if (name == "not") return logic<3>;
    if (name == "mov") return logic<4>;
    return nullptr;
}

}  // namespace isthmus::ptx
