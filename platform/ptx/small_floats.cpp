// SPDX-License-Identifier: Apache-2.0
// Pairs of 8-bit floats (e4m3, e5m2) from and to single precision and halves.
#include "numbers.hpp"
#include "warp.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::ptx {
namespace {

// PTX ISA, "Alternate floating point data formats". e4m3 has no infinity.
struct SmallFormat {
    int fraction_bits, bias;
    double largest;
    std::uint8_t infinity;  // 0: none
};
constexpr SmallFormat e4m3_format = {3, 7, 448, 0}, e5m2_format = {2, 15, 57344, 0x7c};
constexpr std::uint8_t small_nan = 0x7f;

// Rounds to the nearest, ties to even; what is too large becomes the largest finite number (.satfinite).
std::uint8_t small_of(const SmallFormat& format, double value, bool relu) {
    if (std::isnan(value)) return small_nan;
    if (relu && std::signbit(value)) return 0;
    const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    const int least = 1 - format.bias;
    const double below = std::min(magnitude, 2 * format.largest);
    const double unit = std::ldexp(1.0, std::max(std::ilogb(below), least) - format.fraction_bits);
    const double rounded = std::min(std::nearbyint(below / unit) * unit, format.largest);
    const int hidden = 1 << format.fraction_bits;
    if (rounded < std::ldexp(1.0, least)) {
        return static_cast<std::uint8_t>(sign | static_cast<int>(std::ldexp(rounded, format.fraction_bits - least)));
    }
    const int field = std::ilogb(rounded);
    const int significand = static_cast<int>(std::ldexp(rounded, format.fraction_bits - field));
    return static_cast<std::uint8_t>(sign | (field + format.bias) << format.fraction_bits | (significand - hidden));
}

// As a half, which holds all of them.
std::uint16_t half_of_small(const SmallFormat& format, std::uint8_t bits, bool relu) {
    constexpr std::uint16_t half_nan = 0x7fff, half_infinity = 0x7c00;
    const std::uint8_t magnitude = bits & 0x7f;
    const bool negative = (bits & 0x80) != 0;
    if (magnitude > (format.infinity != 0 ? format.infinity : small_nan - 1)) return half_nan;
    if (relu && negative) return 0;
    const std::uint16_t sign = negative ? 0x8000 : 0;
    if (format.infinity != 0 && magnitude == format.infinity) return sign | half_infinity;
    const int field = magnitude >> format.fraction_bits, fraction = magnitude & ((1 << format.fraction_bits) - 1);
    const int last = (field == 0 ? 1 : field) - format.bias - format.fraction_bits;
    const int significand = field == 0 ? fraction : fraction | 1 << format.fraction_bits;
    return sign | half_of(half_format, std::ldexp(significand, last), Rounding::nearest);
}

template <const SmallFormat& format>
void from_singles(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = std::uint64_t{small_of(format, double{from_slot<float>(a[lane])}, op.flag)} << 8 |
                  small_of(format, double{from_slot<float>(b[lane])}, op.flag);
    });
}

template <const SmallFormat& format>
void from_halves(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    const auto one = [&](std::uint64_t bits) {
        return std::uint64_t{small_of(format, number_of(half_format, static_cast<std::uint16_t>(bits)), op.flag)};
    };
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = one(a[lane] >> 16) << 8 | one(a[lane]); });
}

template <const SmallFormat& format>
void to_halves(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    const auto one = [&](std::uint64_t bits) {
        return std::uint64_t{half_of_small(format, static_cast<std::uint8_t>(bits), op.flag)};
    };
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = one(a[lane] >> 8) << 16 | one(a[lane]); });
}

}  // namespace

Run small_conversion_run(bool e4m3, Type from) {
    switch (from) {
        case Type::f32: return e4m3 ? from_singles<e4m3_format> : from_singles<e5m2_format>;
        case Type::f16x2: return e4m3 ? from_halves<e4m3_format> : from_halves<e5m2_format>;
        case Type::b16: return e4m3 ? to_halves<e4m3_format> : to_halves<e5m2_format>;
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
