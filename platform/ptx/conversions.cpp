// SPDX-License-Identifier: Apache-2.0
// cvt in all combinations of types, and packing.
#include "numbers.hpp"
#include "warp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace isthmus::ptx {
namespace {

template <HalfFormat const& format>
struct HalfNumber {};
using F16 = HalfNumber<half_format>;
using Bf16 = HalfNumber<bfloat_format>;
template <class T>
constexpr bool is_half = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;
template <class T>
constexpr HalfFormat format_of = std::is_same_v<T, F16> ? half_format : bfloat_format;

struct Options {
    Rounding rounding;
    bool to_integral, ftz, saturate, relu;
};

// Exact: double precision holds every narrower float.
template <class S>
double float_value(std::uint64_t slot, bool ftz) {
    if constexpr (is_half<S>) {
        return number_of(format_of<S>, static_cast<std::uint16_t>(slot));
    } else if constexpr (std::is_same_v<S, float>) {
        const float value = from_slot<float>(slot);
        return ftz ? flushed(value) : value;
    } else {
        return from_slot<double>(slot);
    }
}

double integral(double value, Rounding mode) {
    switch (mode) {
        case Rounding::nearest: return std::nearbyint(value);
        case Rounding::zero: return std::trunc(value);
        case Rounding::down: return std::floor(value);
        case Rounding::up: return std::ceil(value);
    }
    return value;
}

template <class D>
std::uint64_t to_float(double value, const Options& options) {
    if (options.to_integral) value = integral(value, options.rounding);
    if (options.saturate) value = value > 0 ? (value > 1 ? 1 : value) : 0;  // also NaN
    // -0.0 becomes +0.0, and a NaN stays.
    if (options.relu && value <= 0) value = 0;
    if constexpr (is_half<D>) {
        return half_of(format_of<D>, value, options.to_integral ? Rounding::nearest : options.rounding);
    } else if constexpr (std::is_same_v<D, float>) {
        const RoundingScope scope(options.to_integral ? Rounding::nearest : options.rounding);
        const volatile double from = value;  // the conversion happens within the scope
        const volatile float to = static_cast<float>(from);
        if (!options.ftz || std::fabs(value) >= double{std::numeric_limits<float>::min()})
            return to_slot(canonical(to));
        // Flushed is what lies below the least normal number even when rounded with an exponent of any size.
        constexpr float scale = 256;
        const volatile double scaled_from = value * double{scale};
        const volatile float scaled = static_cast<float>(scaled_from);
        const bool tiny = std::fabs(scaled) < std::numeric_limits<float>::min() * scale;
        return to_slot(canonical(tiny ? std::copysign(0.0f, static_cast<float>(value)) : float{to}));
    } else {
        return to_slot(value);
    }
}

template <class D>
std::uint64_t integer_to_float(bool negative, std::uint64_t magnitude, const Options& options) {
    if (options.saturate) {
        if (negative) magnitude = 0;
        if (magnitude > 1) magnitude = 1;
        negative = false;
    }
    if constexpr (is_half<D>) {
        return round_to_half(format_of<D>, negative, magnitude, 0, false, options.rounding);
    } else {
        // Rounding the magnitude down is rounding a negative number up.
        Rounding mode = options.rounding;
        if (negative && mode == Rounding::down) {
            mode = Rounding::up;
        } else if (negative && mode == Rounding::up) {
            mode = Rounding::down;
        }
        const RoundingScope scope(mode);
        const volatile std::uint64_t from = magnitude;
        const volatile D to = static_cast<D>(from);
        return to_slot(negative ? -D{to} : D{to});
    }
}

// PTX ISA, cvt: the result is clamped. A NaN is 0, but if 64 bits take part the most negative number (signed) or 2^63.
template <class D>
D float_to_integer(double value, Rounding mode, bool of_double) {
    if (std::isnan(value)) {
        if (!of_double && sizeof(D) < 8) return 0;
        return static_cast<D>(std::make_unsigned_t<D>(1) << (sizeof(D) * 8 - 1));
    }
    const double whole = integral(value, mode);
    const double beyond = std::ldexp(1.0, static_cast<int>(sizeof(D) * 8) - (std::is_signed_v<D> ? 1 : 0));
    if (whole >= beyond) return std::numeric_limits<D>::max();
    if (whole < (std::is_signed_v<D> ? -beyond : 0.0)) return std::numeric_limits<D>::min();
    return static_cast<D>(whole);
}

template <class D, class S>
D integer_to_integer(S value, bool saturate) {
    if (saturate) {
        __extension__ using Wide = __int128;
        if (Wide{value} > Wide{std::numeric_limits<D>::max()}) return std::numeric_limits<D>::max();
        if (Wide{value} < Wide{std::numeric_limits<D>::min()}) return std::numeric_limits<D>::min();
    }
    return static_cast<D>(value);
}

template <class T>
constexpr bool is_integer = std::is_integral_v<T>;

// Sign-extended to the size of the destination's register.
template <class D>
std::uint64_t extended(D value, std::uint64_t mask) {
    if constexpr (std::is_signed_v<D>) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) & mask;
    } else {
        return value;
    }
}

template <class D, class S>
void convert(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    const Options options = {static_cast<Rounding>(op.mode), op.flag, (op.value2 & 1) != 0, (op.value2 & 2) != 0,
                             (op.value2 & 4) != 0};
    for_lanes(mask, [&](std::uint32_t lane) {
        if constexpr (is_integer<D> && is_integer<S>) {
            d[lane] = extended(integer_to_integer<D>(from_slot<S>(a[lane]), options.saturate), op.value);
        } else if constexpr (is_integer<D>) {
            const double value = float_value<S>(a[lane], options.ftz);
            d[lane] = extended(float_to_integer<D>(value, options.rounding, std::is_same_v<S, double>), op.value);
        } else if constexpr (is_integer<S>) {
            const S value = from_slot<S>(a[lane]);
            const bool negative = value < 0;
            const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
            const std::uint64_t magnitude = negative ? 0 - bits : static_cast<std::uint64_t>(value);
            d[lane] = integer_to_float<D>(negative, magnitude, options);
        } else {
            // Before a half is made of it, a subnormal number is not flushed (H100).
            d[lane] = to_float<D>(float_value<S>(a[lane], options.ftz && !is_half<D>), options);
        }
    });
}

template <class D>
Run converted_from(Type from) {
    switch (from) {
        case Type::u8: return convert<D, std::uint8_t>;
        case Type::u16: return convert<D, std::uint16_t>;
        case Type::u32: return convert<D, std::uint32_t>;
        case Type::u64: return convert<D, std::uint64_t>;
        case Type::s8: return convert<D, std::int8_t>;
        case Type::s16: return convert<D, std::int16_t>;
        case Type::s32: return convert<D, std::int32_t>;
        case Type::s64: return convert<D, std::int64_t>;
        case Type::f16: return convert<D, F16>;
        case Type::bf16: return convert<D, Bf16>;
        case Type::f32: return convert<D, float>;
        case Type::f64: return convert<D, double>;
        default: return nullptr;
    }
}

template <class D>
void convert_pair(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    const Options options = {static_cast<Rounding>(op.mode), false, false, (op.value2 & 2) != 0, (op.value2 & 4) != 0};
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t upper = to_float<D>(float_value<float>(a[lane], false), options);
        d[lane] = (upper << 16) | to_float<D>(float_value<float>(b[lane], false), options);
    });
}

// PTX ISA, cvt.pack.
void pack_integers(Warp& warp, const Op& op, LaneMask mask) {
    const auto bits = static_cast<unsigned>(op.value);
    const std::int64_t least = op.flag ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t most = (std::int64_t{1} << (op.flag ? bits - 1 : bits)) - 1;
    const std::uint32_t part = (1u << bits) - 1;
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    const auto saturated = [&](std::uint64_t slot) {
        return static_cast<std::uint32_t>(std::clamp<std::int64_t>(from_slot<std::int32_t>(slot), least, most)) & part;
    };
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint32_t rest = bits < 16 ? static_cast<std::uint32_t>(c[lane]) << (2 * bits) : 0;
        d[lane] = rest | (saturated(a[lane]) << bits) | saturated(b[lane]);
    });
}

void tensor_float(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const auto bits = static_cast<std::uint32_t>(a[lane]);
        constexpr std::uint32_t infinity = 0x7f800000, half = 0x1000, dropped = 0x1fff;
        const std::uint32_t magnitude = bits & 0x7fffffff;
        d[lane] = magnitude > infinity ? 0x7fffffff : magnitude == infinity ? bits : (bits + half) & ~dropped;
    });
}

}  // namespace

Run conversion_run(const Conversion& conversion) {
    switch (conversion.to) {
        case Type::u8: return converted_from<std::uint8_t>(conversion.from);
        case Type::u16: return converted_from<std::uint16_t>(conversion.from);
        case Type::u32: return converted_from<std::uint32_t>(conversion.from);
        case Type::u64: return converted_from<std::uint64_t>(conversion.from);
        case Type::s8: return converted_from<std::int8_t>(conversion.from);
        case Type::s16: return converted_from<std::int16_t>(conversion.from);
        case Type::s32: return converted_from<std::int32_t>(conversion.from);
        case Type::s64: return converted_from<std::int64_t>(conversion.from);
        case Type::f16: return converted_from<F16>(conversion.from);
        case Type::bf16: return converted_from<Bf16>(conversion.from);
        case Type::f32: return converted_from<float>(conversion.from);
        case Type::f64: return converted_from<double>(conversion.from);
        default: return nullptr;
    }
}

Run pair_conversion_run(Type to) {
    if (to == Type::f16x2) return convert_pair<F16>;
    if (to == Type::bf16x2) return convert_pair<Bf16>;
    return nullptr;
}

Run pack_integers_run() {
    return pack_integers;
}
Run tensor_float_run() {
    return tensor_float;
}

}  // namespace isthmus::ptx
