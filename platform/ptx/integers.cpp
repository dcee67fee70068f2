// SPDX-License-Identifier: Apache-2.0
// Integer and bit operations.
#include "numbers.hpp"
#include "warp.hpp"

#include <limits>
#include <type_traits>
#include <utility>

namespace isthmus::ptx {
namespace {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wider = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>>>;

template <class T>
constexpr unsigned bits = sizeof(T) * 8;

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
// PTX ISA, bmsk: b bits from bit a on.
template <bool clamp>
struct BitMask {
    static std::uint32_t of(std::uint32_t a, std::uint32_t b) {
        if (clamp && a >= 32) return 0;
        const std::uint32_t from = a & 31, end = from + (b & 31);
        const bool to_the_top = end >= 32 || (clamp && b >= 32);
        const std::uint32_t above = to_the_top ? 0 : ~std::uint32_t{0} << end;
        return (~std::uint32_t{0} << from) & ~above;
    }
};
// PTX ISA, fns: from bit `base` on, upwards or downwards, the place of the offset-th bit that is set; all ones: there
// is none, or `base` is no bit, which the ISA leaves open.
struct FindSet {
    static std::uint32_t of(std::uint32_t mask, std::uint32_t base, std::uint32_t offset) {
        const auto asked = static_cast<std::int32_t>(offset);
        const std::int64_t step = asked > 0 ? 1 : -1;
        std::int64_t left = asked < 0 ? -std::int64_t{asked} : asked;
        for (std::int64_t at = base; at >= 0 && at < 32; at += step) {
            const bool is_set = ((mask >> at) & 1) != 0;
            if (left <= 1 && (is_set || left == 0)) return is_set ? static_cast<std::uint32_t>(at) : ~std::uint32_t{0};
            if (is_set) --left;
        }
        return ~std::uint32_t{0};
    }
};
struct AbsoluteDifference {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(c, a < b ? Subtract::of(b, a) : Subtract::of(a, b));
    }
};
struct And {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct Or {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct Xor {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};
struct Not {
    template <class T>
    static T of(T a) {
        return static_cast<T>(~a);
    }
};
struct LogicalNot {
    template <class T>
    static T of(T a) {
        return a == 0 ? 1 : 0;
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

// Carries: sums of T with CC.CF. `takes`: it is added (subtracted); `gives`: it is set.
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
        const bool in = takes && ((warp.carry >> lane) & 1) != 0;
        d[lane] = to_slot(static_cast<T>(x - y - in));
        if (gives) set_carry<T>(warp, lane, x < y || (in && x == y));
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

template <class T, bool left>
void shift(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const T value = from_slot<T>(a[lane]);
        const std::uint32_t by = from_slot<std::uint32_t>(b[lane]);
        T out;
        if constexpr (left) {
            out = by >= bits<T> ? T{0} : static_cast<T>(Unsigned<T>(value) << by);
        } else {
            out = static_cast<T>(value >> (by >= bits<T> ? bits<T> - 1 : by));
            if (!std::is_signed_v<T> && by >= bits<T>) out = 0;
        }
        d[lane] = to_slot(out);
    });
}
template <bool left, bool wrap>
void funnel(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t both = (b[lane] << 32) | from_slot<std::uint32_t>(a[lane]);
        const std::uint32_t asked = from_slot<std::uint32_t>(c[lane]);
        const std::uint32_t by = wrap ? asked & 31 : (asked > 32 ? 32 : asked);
        d[lane] = from_slot<std::uint32_t>(left ? (both << by) >> 32 : both >> by);
    });
}

template <class T>
void population(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = std::uint64_t(std::popcount(from_slot<T>(a[lane]))); });
}
template <class T>
void leading_zeros(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = std::uint64_t(std::countl_zero(from_slot<T>(a[lane]))); });
}
template <class T, bool shift_amount>
void find_bit(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const T value = from_slot<T>(a[lane]);
        const Unsigned<T> searched = value < 0 ? static_cast<Unsigned<T>>(~value) : static_cast<Unsigned<T>>(value);
        const auto zeros = static_cast<std::uint32_t>(std::countl_zero(searched));
        if (searched == 0) {
            d[lane] = 0xffffffff;
        } else {
            d[lane] = shift_amount ? zeros : bits<T> - 1 - zeros;
        }
    });
}
template <class T>
void reverse_bits(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        T value = from_slot<T>(a[lane]), out = 0;
        for (unsigned bit = 0; bit < bits<T>; ++bit, value = static_cast<T>(value >> 1)) {
            out = static_cast<T>((out << 1) | (value & 1));
        }
        d[lane] = out;
    });
}

// PTX ISA, bfe and bfi: position and length are the low 8 bits of their operands. An H100 takes all 32 bits for values
// of 64 bits (driver 580.159.04), so that a position or a length above 255 lies beyond the value.
template <class T>
constexpr std::uint64_t field_bits = sizeof(T) == 8 ? 0xffffffff : 0xff;

// PTX ISA, bfe: bits beyond the value are copies of the field's last bit within it (signed), or 0.
template <class T>
void extract_field(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        using U = Unsigned<T>;
        const U value = from_slot<U>(a[lane]);
        const std::uint64_t position = b[lane] & field_bits<T>, length = c[lane] & field_bits<T>;
        const unsigned last = bits<T> - 1;
        bool sign = false;
        if (std::is_signed_v<T> && length != 0) {
            const std::uint64_t at = position + length - 1 < last ? position + length - 1 : last;
            sign = ((value >> at) & 1) != 0;
        }
        const U shifted = position > last ? U{0} : static_cast<U>(value >> position);
        const std::uint64_t inside = position > last ? 0 : (length < bits<T> - position ? length : bits<T> - position);
        const U low = inside >= bits<T> ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << inside) - 1);
        d[lane] = to_slot(static_cast<U>((shifted & low) | (sign ? static_cast<U>(~low) : U{0})));
    });
}
template <class T>
void insert_field(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    const Row& e = warp.in(static_cast<Place>(op.extra));
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const T from = from_slot<T>(a[lane]), into = from_slot<T>(b[lane]);
        const std::uint64_t position = c[lane] & field_bits<T>, length = e[lane] & field_bits<T>;
        T field = length >= bits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
        field = position >= bits<T> ? T{0} : static_cast<T>(field << position);
        const T placed = position >= bits<T> ? T{0} : static_cast<T>(from << position);
        d[lane] = static_cast<T>((into & static_cast<T>(~field)) | (placed & field));
    });
}

void logic3(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::uint64_t out = 0;
        for (unsigned term = 0; term < 8; ++term) {
            if (((op.value >> term) & 1) == 0) continue;
            out |= ((term & 4) != 0 ? a[lane] : ~a[lane]) & ((term & 2) != 0 ? b[lane] : ~b[lane]) &
                   ((term & 1) != 0 ? c[lane] : ~c[lane]);
        }
        d[lane] = out & 0xffffffff;
    });
}

std::uint32_t selector_of(std::string_view mode, std::uint32_t control) {
    const std::uint32_t n = control & 3;
    const auto four = [](std::uint32_t b0, std::uint32_t b1, std::uint32_t b2, std::uint32_t b3) {
        return b0 | (b1 << 4) | (b2 << 8) | (b3 << 12);
    };
    if (mode == "f4e") return four(n, n + 1, n + 2, n + 3);
    if (mode == "b4e") return four(n, (n + 7) & 7, (n + 6) & 7, (n + 5) & 7);
    if (mode == "rc8") return four(n, n, n, n);
    if (mode == "ecl") return four(n, n > 1 ? n : 1, n > 2 ? n : 2, 3);
    if (mode == "ecr") return four(0, n < 1 ? n : 1, n < 2 ? n : 2, n);
    return (n & 1) != 0 ? four(2, 3, 2, 3) : four(0, 1, 0, 1);  // rc16
}
constexpr std::string_view permutations[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
template <std::size_t mode>
void permute(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t both = (b[lane] << 32) | from_slot<std::uint32_t>(a[lane]);
        std::uint32_t control = from_slot<std::uint32_t>(c[lane]);
        if (mode != 0) control = selector_of(permutations[mode], control);
        std::uint32_t out = 0;
        for (unsigned at = 0; at < 4; ++at) {
            const std::uint32_t nibble = (control >> (4 * at)) & 0xf;
            std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (nibble & 7))) & 0xff;
            if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
            out |= byte << (8 * at);
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

struct NamedRun {
    std::string_view name;
    Run run;
};
Run find(const NamedRun* begin, const NamedRun* end, std::string_view name) {
    for (; begin != end; ++begin) {
        if (begin->name == name) return begin->run;
    }
    return nullptr;
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
                                        {"sad", ternary<T, AbsoluteDifference>},
                                        {"shr", shift<T, false>}};
    if (std::is_signed_v<T>) {
        if (name == "abs") return unary<T, Absolute>;
        if (name == "neg") return unary<T, Negate>;
    }
    return find(std::begin(rows), std::end(rows), name);
}
// Those without 16 bits: carries and fields; and 16 or 32 bits: wide products.
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
                                        {"madc.hi.cc", multiply_add_carry<T, MultiplyHigh, true, true>},
                                        {"bfe", extract_field<T>},
                                        {"bfind", find_bit<T, false>},
                                        {"bfind.shiftamt", find_bit<T, true>}};
    return find(std::begin(rows), std::end(rows), name);
}
template <class T>
Run of_32_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"mul24.lo", binary<T, Multiply24<false>>},     {"mul24.hi", binary<T, Multiply24<true>>},
        {"mad24.lo", ternary<T, MultiplyAdd24<false>>}, {"mad24.hi", ternary<T, MultiplyAdd24<true>>},
        {"szext.wrap", binary<T, Extend<false>>},       {"szext.clamp", binary<T, Extend<true>>}};
    return find(std::begin(rows), std::end(rows), name);
}
template <class T>
Run of_wide(std::string_view name) {
    if (name == "mul.wide") return multiply_wide<T>;
    if (name == "mad.wide") return multiply_add_wide<T>;
    return nullptr;
}
template <class T>
Run of_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"and", binary<T, And>},        {"or", binary<T, Or>},   {"xor", binary<T, Xor>}, {"not", unary<T, Not>},
        {"cnot", unary<T, LogicalNot>}, {"shl", shift<T, true>}, {"shr", shift<T, false>}};
    return find(std::begin(rows), std::end(rows), name);
}
template <class T>
Run of_many_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"popc", population<T>}, {"clz", leading_zeros<T>}, {"brev", reverse_bits<T>}, {"bfi", insert_field<T>}};
    const Run run = find(std::begin(rows), std::end(rows), name);
    return run != nullptr ? run : of_bits<T>(name);
}
Run of_words(std::string_view name) {
    using U = std::uint8_t;
    using S = std::int8_t;
    static constexpr NamedRun rows[] = {{"shf.l.wrap", funnel<true, true>},
                                        {"shf.l.clamp", funnel<true, false>},
                                        {"shf.r.wrap", funnel<false, true>},
                                        {"shf.r.clamp", funnel<false, false>},
                                        {"lop3", logic3},
                                        {"bmsk.wrap", binary<std::uint32_t, BitMask<false>>},
                                        {"bmsk.clamp", binary<std::uint32_t, BitMask<true>>},
                                        {"prmt", permute<0>},
                                        {"prmt.f4e", permute<1>},
                                        {"prmt.b4e", permute<2>},
                                        {"prmt.rc8", permute<3>},
                                        {"prmt.ecl", permute<4>},
                                        {"prmt.ecr", permute<5>},
                                        {"prmt.rc16", permute<6>},
                                        {"dp4a.u32.u32", dot4<U, U>},
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
                                        {"add.sat", binary<std::int32_t, Saturated32<true>>},
                                        {"sub.sat", binary<std::int32_t, Saturated32<false>>},
                                        {"fns", ternary<std::uint32_t, FindSet>},
                                        {"mad.hi.sat", ternary<std::int32_t, MultiplyAddHighSaturated>}};
    return find(std::begin(rows), std::end(rows), name);
}

Run first_of(Run one, Run two, Run three = nullptr) {
    return one != nullptr ? one : two != nullptr ? two : three;
}

}  // namespace

Run select_by_sign_run(Type type, bool ftz) {
    if (type == Type::s32) return ftz ? nullptr : select_by_sign<std::int32_t, false>;
    if (type == Type::f32) return ftz ? select_by_sign<float, true> : select_by_sign<float, false>;
    return nullptr;
}

Run integer_run(std::string_view name, Type type) {
    switch (type) {
        case Type::u16: return first_of(of_number<std::uint16_t>(name), of_wide<std::uint16_t>(name));
        case Type::s16: return first_of(of_number<std::int16_t>(name), of_wide<std::int16_t>(name));
        case Type::u32:
            return first_of(of_number<std::uint32_t>(name), of_wide<std::uint32_t>(name),
                            first_of(of_carry<std::uint32_t>(name), of_32_bits<std::uint32_t>(name)));
        case Type::s32:
            return first_of(of_number<std::int32_t>(name), of_wide<std::int32_t>(name),
                            first_of(of_carry<std::int32_t>(name), of_32_bits<std::int32_t>(name),
                                     name.ends_with(".sat") ? of_words(name) : nullptr));
        case Type::u64: return first_of(of_number<std::uint64_t>(name), of_carry<std::uint64_t>(name));
        case Type::s64: return first_of(of_number<std::int64_t>(name), of_carry<std::int64_t>(name));
        case Type::b16: return of_bits<std::uint16_t>(name);
        case Type::b32:
            return first_of(of_many_bits<std::uint32_t>(name), name.ends_with(".sat") ? nullptr : of_words(name));
        case Type::b64: return of_many_bits<std::uint64_t>(name);
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
