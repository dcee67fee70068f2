// SPDX-License-Identifier: Apache-2.0
// Operations on bits: logic, shifts, fields, permutations, counts.
#include "integer_lanes.hpp"
#include "operations.hpp"

#include <type_traits>

namespace isthmus::ptx {
namespace {

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

template <class T>
Run of_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"and", binary<T, And>},        {"or", binary<T, Or>},   {"xor", binary<T, Xor>}, {"not", unary<T, Not>},
        {"cnot", unary<T, LogicalNot>}, {"shl", shift<T, true>}, {"shr", shift<T, false>}};
    return named(rows, name);
}

template <class T>
Run of_many_bits(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"popc", population<T>}, {"clz", leading_zeros<T>}, {"brev", reverse_bits<T>}, {"bfi", insert_field<T>}};
    const Run run = named(rows, name);
    return run != nullptr ? run : of_bits<T>(name);
}

template <class T>
Run of_fields(std::string_view name) {
    static constexpr NamedRun rows[] = {
        {"bfe", extract_field<T>}, {"bfind", find_bit<T, false>}, {"bfind.shiftamt", find_bit<T, true>}};
    return first_of(named(rows, name), name == "shr" ? shift<T, false> : nullptr);
}

Run of_words(std::string_view name) {
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
                                        {"fns", ternary<std::uint32_t, FindSet>}};
    return named(rows, name);
}

}  // namespace

Run bit_run(std::string_view name, Type type) {
    switch (type) {
        case Type::u16: return name == "shr" ? shift<std::uint16_t, false> : nullptr;
        case Type::s16: return name == "shr" ? shift<std::int16_t, false> : nullptr;
        case Type::u32: return of_fields<std::uint32_t>(name);
        case Type::s32: return of_fields<std::int32_t>(name);
        case Type::u64: return of_fields<std::uint64_t>(name);
        case Type::s64: return of_fields<std::int64_t>(name);
        case Type::b16: return of_bits<std::uint16_t>(name);
        case Type::b32: return first_of(of_many_bits<std::uint32_t>(name), of_words(name));
        case Type::b64: return of_many_bits<std::uint64_t>(name);
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
