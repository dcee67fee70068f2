// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers.
#include "integer_lanes.hpp"
#include "numbers.hpp"

#include <limits>
#include <type_traits>

namespace isthmus::ptx {
namespace {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
template <class T>
using Wider = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>>>;

// Each has of(a), of(a, b) or of(a, b, c). Overflow wraps: the arithmetic is that of unsigned numbers.
struct Add {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
    }
};
struct Subtract {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
    }
};
struct MultiplyLow {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
};
struct MultiplyHigh {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>((Wider<T>(a) * Wider<T>(b)) >> bits<T>);
    }
};
struct MultiplyAddLow {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(MultiplyLow::of(a, b), c);
    }
};
struct MultiplyAddHigh {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(MultiplyHigh::of(a, b), c);
    }
};
struct Divide {
    template <class T>
    static T of(T a, T b) {
        if (b == 0) return static_cast<T>(~T{0});  // ISA: unspecified; GPUs give all ones
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Unsigned<T>(0) - Unsigned<T>(a));
        return static_cast<T>(a / b);
    }
};
struct Remainder {
    template <class T>
    static T of(T a, T b) {
        if (b == 0) return a;  // ISA: unspecified; GPUs give the dividend
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
        return static_cast<T>(a % b);
    }
};
struct Minimum {
    template <class T>
    static T of(T a, T b) {
        return b < a ? b : a;
    }
};
struct Maximum {
    template <class T>
    static T of(T a, T b) {
        return a < b ? b : a;
    }
};
struct Absolute {
    template <class T>
    static T of(T a) {
        return a < 0 ? static_cast<T>(Unsigned<T>(0) - Unsigned<T>(a)) : a;
    }
};
struct Negate {
    template <class T>
    static T of(T a) {
        return static_cast<T>(Unsigned<T>(0) - Unsigned<T>(a));
    }
};
// PTX ISA, mul24: the lower 24 bits of each factor; .lo and .hi are the lower and upper 32 of the product's 48 bits.
template <bool high>
struct Multiply24 {
    template <class T>
    static T of(T a, T b) {
        constexpr unsigned unused = 8;
        const auto low24 = [](T value) {
            return static_cast<T>(static_cast<T>(Unsigned<T>(value) << unused) >> unused);
        };
        const Wider<T> product = Wider<T>(low24(a)) * Wider<T>(low24(b));
        return static_cast<T>(high ? product >> 16 : product);
    }
};
template <bool high>
struct MultiplyAdd24 {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(Multiply24<high>::of(a, b), c);
    }
};
// PTX ISA, szext: a number of b bits, with or without a sign.
template <bool clamp>
struct Extend {
    template <class T>
    static T of(T a, T b) {
        const std::uint32_t asked = Unsigned<T>(b);
        const std::uint32_t length = clamp ? asked : asked & 31;
        if (length == 0) return 0;
        if (length >= 32) return a;
        return static_cast<T>(static_cast<T>(Unsigned<T>(a) << (32 - length)) >> (32 - length));
    }
};
struct AbsoluteDifference {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(c, a < b ? Subtract::of(b, a) : Subtract::of(a, b));
    }
};
template <bool saturate_upwards>
struct Saturated32 {
    static std::int32_t clamp(std::int64_t value) {
        if (value > std::numeric_limits<std::int32_t>::max()) return std::numeric_limits<std::int32_t>::max();
        if (value < std::numeric_limits<std::int32_t>::min()) return std::numeric_limits<std::int32_t>::min();
        return static_cast<std::int32_t>(value);
    }
    static std::int32_t of(std::int32_t a, std::int32_t b) {
        return clamp(saturate_upwards ? std::int64_t{a} + b : std::int64_t{a} - b);
    }
};

struct MultiplyAddHighSaturated {
    static std::int32_t of(std::int32_t a, std::int32_t b, std::int32_t c) {
        return Saturated32<true>::of(MultiplyHigh::of(a, b), c);
    }
};

template <class T>
void multiply_wide(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = to_slot(static_cast<Wider<T>>(Wider<T>(from_slot<T>(a[lane])) * Wider<T>(from_slot<T>(b[lane]))));
    });
}
template <class T>
void multiply_add_wide(Warp& warp, const Op& op, LaneMask mask) {
    using W = Wider<T>;
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const W product = static_cast<W>(W(from_slot<T>(a[lane])) * W(from_slot<T>(b[lane])));
        d[lane] = to_slot(Add::of(product, from_slot<W>(c[lane])));
    });
}

// Carries: sums of T with CC.CF. `takes`: it is added (subtracted); `gives`: it is set. After a difference it is set if
// nothing was borrowed. The PTX ISA calls it the borrow and says nothing of `addc` behind `sub.cc`, on which the
// divisions of 128-bit integers depend that nvcc makes.
template <class T>
void set_carry(Warp& warp, std::uint32_t lane, bool carry) {
    warp.carry = (warp.carry & ~(LaneMask{1} << lane)) | (LaneMask{carry} << lane);
}
template <class T>
T added(Warp& warp, std::uint32_t lane, T a, T b, bool takes, bool gives) {
    const bool in = takes && ((warp.carry >> lane) & 1) != 0;
    const T partial = static_cast<T>(a + b), sum = static_cast<T>(partial + in);
    if (gives) set_carry<T>(warp, lane, partial < a || (in && sum == 0));
    return sum;
}
template <class T, bool takes, bool gives>
void add_carry(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = to_slot(added(warp, lane, from_slot<T>(a[lane]), from_slot<T>(b[lane]), takes, gives));
    });
}
template <class T, bool takes, bool gives>
void subtract_borrow(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const T x = from_slot<T>(a[lane]), y = from_slot<T>(b[lane]);
        const bool borrows = takes && ((warp.carry >> lane) & 1) == 0;
        d[lane] = to_slot(static_cast<T>(x - y - borrows));
        if (gives) set_carry<T>(warp, lane, !(x < y || (borrows && x == y)));
    });
}
template <class T, class Product, bool takes, bool gives>
void multiply_add_carry(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        using U = Unsigned<T>;
        const U product = static_cast<U>(Product::of(from_slot<T>(a[lane]), from_slot<T>(b[lane])));
        d[lane] = to_slot(added<U>(warp, lane, product, from_slot<U>(c[lane]), takes, gives));
    });
}

// Two numbers of 16 bits in a word, each by itself. `relu`: nothing below 0.
template <class T, class Do, bool relu>
void in_pairs(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::uint64_t out = 0;
        for (unsigned at = 0; at < 32; at += 16) {
            T one = Do::of(from_slot<T>(a[lane] >> at), from_slot<T>(b[lane] >> at));
            if constexpr (relu) one = std::max(one, T{0});
            out |= std::uint64_t{static_cast<std::uint16_t>(one)} << at;
        }
        d[lane] = out;
    });
}
struct MaximumRelu {
    static std::int32_t of(std::int32_t a, std::int32_t b) { return std::max(std::max(a, b), 0); }
};
struct MinimumRelu {
    static std::int32_t of(std::int32_t a, std::int32_t b) { return std::max(std::min(a, b), 0); }
};
// vabsdiff2 and vabsdiff4 of whole words: A and B are the parts' types. `sum`: of all, and of c; else each in its
// place.
template <class A, class B, bool sum>
void absolute_differences(Warp& warp, const Op& op, LaneMask mask) {
    constexpr unsigned width = 8 * sizeof(A);
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::uint32_t out = sum ? from_slot<std::uint32_t>(c[lane]) : 0;
        for (unsigned at = 0; at < 32; at += width) {
            const auto one = static_cast<std::uint32_t>(
                std::abs(std::int32_t{from_slot<A>(a[lane] >> at)} - std::int32_t{from_slot<B>(b[lane] >> at)}));
            out += sum ? one : (one & ((1u << width) - 1)) << at;
        }
        d[lane] = out;
    });
}

template <class A, class B>
void dot4(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::int64_t sum = 0;
        for (unsigned at = 0; at < 32; at += 8) {
            sum += std::int64_t{from_slot<A>(a[lane] >> at)} * from_slot<B>(b[lane] >> at);
        }
        d[lane] = from_slot<std::uint32_t>(c[lane] + static_cast<std::uint64_t>(sum));
    });
}
template <class A, class B, bool high>
void dot2(Warp& warp, const Op& op, LaneMask mask) {
    using A2 = std::conditional_t<std::is_signed_v<A>, std::int16_t, std::uint16_t>;
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t bytes = b[lane] >> (high ? 16 : 0);
        const std::int64_t sum = std::int64_t{from_slot<A2>(a[lane])} * from_slot<B>(bytes) +
                                 std::int64_t{from_slot<A2>(a[lane] >> 16)} * from_slot<B>(bytes >> 8);
        d[lane] = from_slot<std::uint32_t>(c[lane] + static_cast<std::uint64_t>(sum));
    });
}

// PTX ISA, slct: a where c >= 0, which a NaN is not and -0 is.
template <class C, bool ftz>
void select_by_sign(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        C value = from_slot<C>(c[lane]);
        if constexpr (ftz) value = flushed(value);
        d[lane] = value >= 0 ? a[lane] : b[lane];
    });
}

template <class T>
Run of_number(std::string_view name) {
    static constexpr NamedRun rows[] = {{"add", binary<T, Add>},
                                        {"sub", binary<T, Subtract>},
                                        {"mul.lo", binary<T, MultiplyLow>},
                                        {"mul.hi", binary<T, MultiplyHigh>},
                                        {"mad.lo", ternary<T, MultiplyAddLow>},
                                        {"mad.hi", ternary<T, MultiplyAddHigh>},
                                        {"div", binary<T, Divide>},
                                        {"rem", binary<T, Remainder>},
                                        {"min", binary<T, Minimum>},
                                        {"max", binary<T, Maximum>},
                                        {"sad", ternary<T, AbsoluteDifference>}};
    if (std::is_signed_v<T>) {
        if (name == "abs") return unary<T, Absolute>;
        if (name == "neg") return unary<T, Negate>;
    }
    return named(rows, name);
}
// Carries: without 16 bits.
template <class T>
Run of_carry(std::string_view name) {
    using U = Unsigned<T>;
    static constexpr NamedRun rows[] = {{"add.cc", add_carry<U, false, true>},
                                        {"addc", add_carry<U, true, false>},
                                        {"addc.cc", add_carry<U, true, true>},
                                        {"sub.cc", subtract_borrow<U, false, true>},
                                        {"subc", subtract_borrow<U, true, false>},
                                        {"subc.cc", subtract_borrow<U, true, true>},
                                        {"mad.lo.cc", multiply_add_carry<T, MultiplyLow, false, true>},
                                        {"madc.lo", multiply_add_carry<T, MultiplyLow, true, false>},
                                        {"madc.lo.cc", multiply_add_carry<T, MultiplyLow, true, true>},
                                        {"mad.hi.cc", multiply_add_carry<T, MultiplyHigh, false, true>},
                                        {"madc.hi", multiply_add_carry<T, MultiplyHigh, true, false>},
                                        {"madc.hi.cc", multiply_add_carry<T, MultiplyHigh, true, true>}};
    return named(rows, name);
}
template <class T>
Run of_32_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"mul24.lo", binary<T, Multiply24<false>>},     {"mul24.hi", binary<T, Multiply24<true>>},
        {"mad24.lo", ternary<T, MultiplyAdd24<false>>}, {"mad24.hi", ternary<T, MultiplyAdd24<true>>},
        {"szext.wrap", binary<T, Extend<false>>},       {"szext.clamp", binary<T, Extend<true>>}};
    return named(rows, name);
}
template <class T>
Run of_wide(std::string_view name) {
    if (name == "mul.wide") return multiply_wide<T>;
    if (name == "mad.wide") return multiply_add_wide<T>;
    return nullptr;
}

Run of_words(std::string_view name) {
    using U = std::uint8_t;
    using S = std::int8_t;
    using U2 = std::uint16_t;
    using S2 = std::int16_t;
    static constexpr NamedRun rows[] = {{"dp4a.u32.u32", dot4<U, U>},
                                        {"dp4a.u32.s32", dot4<U, S>},
                                        {"dp4a.s32.u32", dot4<S, U>},
                                        {"dp4a.s32.s32", dot4<S, S>},
                                        {"dp2a.lo.u32.u32", dot2<U, U, false>},
                                        {"dp2a.lo.u32.s32", dot2<U, S, false>},
                                        {"dp2a.lo.s32.u32", dot2<S, U, false>},
                                        {"dp2a.lo.s32.s32", dot2<S, S, false>},
                                        {"dp2a.hi.u32.u32", dot2<U, U, true>},
                                        {"dp2a.hi.u32.s32", dot2<U, S, true>},
                                        {"dp2a.hi.s32.u32", dot2<S, U, true>},
                                        {"dp2a.hi.s32.s32", dot2<S, S, true>},
                                        {"add.u16x2", in_pairs<U2, Add, false>},
                                        {"add.s16x2", in_pairs<S2, Add, false>},
                                        {"min.u16x2", in_pairs<U2, Minimum, false>},
                                        {"min.s16x2", in_pairs<S2, Minimum, false>},
                                        {"min.s16x2.relu", in_pairs<S2, Minimum, true>},
                                        {"max.u16x2", in_pairs<U2, Maximum, false>},
                                        {"max.s16x2", in_pairs<S2, Maximum, false>},
                                        {"max.s16x2.relu", in_pairs<S2, Maximum, true>},
                                        {"min.relu", binary<std::int32_t, MinimumRelu>},
                                        {"max.relu", binary<std::int32_t, MaximumRelu>},
                                        {"vabsdiff2.u32.u32", absolute_differences<U2, U2, false>},
                                        {"vabsdiff2.s32.s32", absolute_differences<S2, S2, false>},
                                        {"vabsdiff4.u32.u32", absolute_differences<U, U, false>},
                                        {"vabsdiff4.s32.s32", absolute_differences<S, S, false>},
                                        {"vabsdiff2.u32.u32.add", absolute_differences<U2, U2, true>},
                                        {"vabsdiff2.s32.s32.add", absolute_differences<S2, S2, true>},
                                        {"vabsdiff4.u32.u32.add", absolute_differences<U, U, true>},
                                        {"vabsdiff4.s32.s32.add", absolute_differences<S, S, true>}};
    return named(rows, name);
}
Run of_saturated(std::string_view name) {
    static constexpr NamedRun rows[] = {{"add.sat", binary<std::int32_t, Saturated32<true>>},
                                        {"sub.sat", binary<std::int32_t, Saturated32<false>>},
                                        {"mad.hi.sat", ternary<std::int32_t, MultiplyAddHighSaturated>}};
    return named(rows, name);
}

}  // namespace

Run select_by_sign_run(Type type, bool ftz) {
    if (type == Type::s32) return ftz ? nullptr : select_by_sign<std::int32_t, false>;
    if (type == Type::f32) return ftz ? select_by_sign<float, true> : select_by_sign<float, false>;
    return nullptr;
}

Run integer_run(std::string_view name, Type type) {
    const Run of_its_bits = bit_run(name, type);
    switch (type) {
        case Type::u16: return first_of(of_its_bits, of_number<std::uint16_t>(name), of_wide<std::uint16_t>(name));
        case Type::s16: return first_of(of_its_bits, of_number<std::int16_t>(name), of_wide<std::int16_t>(name));
        case Type::u32:
            return first_of(
                of_its_bits, of_number<std::uint32_t>(name),
                first_of(of_wide<std::uint32_t>(name), of_carry<std::uint32_t>(name), of_32_bits<std::uint32_t>(name)));
        case Type::s32:
            return first_of(of_its_bits, of_number<std::int32_t>(name),
                            first_of(of_wide<std::int32_t>(name), of_carry<std::int32_t>(name),
                                     first_of(of_32_bits<std::int32_t>(name), of_saturated(name))));
        case Type::u64: return first_of(of_its_bits, of_number<std::uint64_t>(name), of_carry<std::uint64_t>(name));
        case Type::s64: return first_of(of_its_bits, of_number<std::int64_t>(name), of_carry<std::int64_t>(name));
        case Type::b32: return first_of(of_its_bits, of_words(name));
        default: return of_its_bits;
    }
}

}  // namespace isthmus::ptx
