// SPDX-License-Identifier: Apache-2.0
// The numbers of PTX that the host does not have: halves and bfloats; rounding modes; flushing of subnormal numbers.
#pragma once

#include "operations.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

namespace isthmus::ptx {

// Changes the processor's rounding mode; the usual mode costs nothing.
class RoundingScope {
public:
    explicit RoundingScope(Rounding mode) : changed_(mode != Rounding::nearest) {
        if (!changed_) return;
        constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        std::fesetround(modes[static_cast<int>(mode)]);
    }
    ~RoundingScope() {
        if (changed_) std::fesetround(FE_TONEAREST);
    }
    RoundingScope(const RoundingScope&) = delete;
    RoundingScope& operator=(const RoundingScope&) = delete;

private:
    bool changed_;
};

inline float flushed(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return (bits & 0x7f800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : value;
}
inline double flushed(double value) noexcept {
    return value;  // .ftz exists for single precision
}
// The NaN that PTX promises for single precision.
inline float canonical(float value) noexcept {
    return value != value ? std::bit_cast<float>(std::uint32_t{0x7fffffff}) : value;
}
inline double canonical(double value) noexcept {
    return value;
}

// Sizes of a 16-bit format.
struct HalfFormat {
    int fraction_bits;
    int bias;
};
inline constexpr HalfFormat half_format = {10, 15}, bfloat_format = {7, 127};

// The number ± significand · 2^exponent, and a little more if `sticky`, rounded to the format.
std::uint16_t round_to_half(HalfFormat format, bool negative, std::uint64_t significand, int exponent, bool sticky,
                            Rounding mode) noexcept;
std::uint16_t half_of(HalfFormat format, double value, Rounding mode) noexcept;
double number_of(HalfFormat format, std::uint16_t bits) noexcept;

// a + b, whose last bit is 1 if the sum is not exact (round to odd): rounded once more to at most 24 bits it is right.
double odd_sum(double a, double b) noexcept;

}  // namespace isthmus::ptx
