// SPDX-License-Identifier: Apache-2.0
// Halves and bfloats in software.
#include "numbers.hpp"

namespace isthmus::ptx {

std::uint16_t round_to_half(HalfFormat format, bool negative, std::uint64_t significand, int exponent, bool sticky,
                            Rounding mode) noexcept {
    const std::uint16_t sign = negative ? 0x8000 : 0;
    const int largest = (1 << (15 - format.fraction_bits)) - 1;  // the exponent field of infinity
    if (significand == 0) return sign;
    const int top = 63 - std::countl_zero(significand);
    // The exponent of the result's last bit.
    const int smallest = 1 - format.bias - format.fraction_bits;
    int last = top + exponent - format.fraction_bits;
    if (last < smallest) last = smallest;
    const int drop = last - exponent;
    std::uint64_t kept = 0;
    bool half = false, rest = sticky;
    if (drop <= 0) {
        kept = significand << -drop;
    } else if (drop > 64) {
        rest = true;
    } else {
        kept = drop == 64 ? 0 : significand >> drop;
        half = ((significand >> (drop - 1)) & 1) != 0;
        rest = rest || (significand & ((std::uint64_t{1} << (drop - 1)) - 1)) != 0;
    }
    bool up = false;
    switch (mode) {
        case Rounding::nearest: up = half && (rest || (kept & 1) != 0); break;
        case Rounding::zero: break;
        case Rounding::down: up = negative && (half || rest); break;
        case Rounding::up: up = !negative && (half || rest); break;
    }
    if (up) ++kept;
    // A carry out of the fraction moves into the exponent by itself.
    const std::uint64_t hidden = std::uint64_t{1} << format.fraction_bits;
    std::uint64_t bits = kept;
    if (kept >= hidden) {
        const int field = last - smallest + 1;
        bits = kept - hidden + (static_cast<std::uint64_t>(field) << format.fraction_bits);
    }
    const std::uint64_t infinity = static_cast<std::uint64_t>(largest) << format.fraction_bits;
    if (bits >= infinity) {
        const bool to_infinity =
            mode == Rounding::nearest || (mode == Rounding::up && !negative) || (mode == Rounding::down && negative);
        bits = to_infinity ? infinity : infinity - 1;
    }
    return static_cast<std::uint16_t>(sign | bits);
}

std::uint16_t half_of(HalfFormat format, double value, Rounding mode) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const bool negative = (bits >> 63) != 0;
    const int field = static_cast<int>((bits >> 52) & 0x7ff);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (field == 0x7ff) {
        if (fraction != 0) return 0x7fff;
        const std::uint16_t infinity =
            static_cast<std::uint16_t>(((1 << (15 - format.fraction_bits)) - 1) << format.fraction_bits);
        return static_cast<std::uint16_t>((negative ? 0x8000 : 0) | infinity);
    }
    const std::uint64_t significand = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
    return round_to_half(format, negative, significand, (field == 0 ? 1 : field) - 1075, false, mode);
}

double number_of(HalfFormat format, std::uint16_t bits) noexcept {
    const bool negative = (bits & 0x8000) != 0;
    const int largest = (1 << (15 - format.fraction_bits)) - 1;
    const int field = (bits >> format.fraction_bits) & largest;
    const int fraction = bits & ((1 << format.fraction_bits) - 1);
    double out;
    if (field == largest) {
        out = fraction != 0 ? std::bit_cast<double>(std::uint64_t{0x7ff8} << 48) : HUGE_VAL;
    } else if (field == 0) {
        out = std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
    } else {
        out = std::ldexp(fraction + (1 << format.fraction_bits), field - format.bias - format.fraction_bits);
    }
    return negative ? -out : out;
}

double odd_sum(double a, double b) noexcept {
    const double sum = a + b;
    if (!std::isfinite(sum)) return sum;
    const double part = sum - a;
    const double error = (a - (sum - part)) + (b - part);
    if (error == 0) return sum;
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    if ((bits & 1) != 0) return sum;
    // Towards the exact sum: away from zero if the error has the sum's sign.
    const bool away = (error > 0) == (sum > 0);
    return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

}  // namespace isthmus::ptx
