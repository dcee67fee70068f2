// SPDX-License-Identifier: Apache-2.0
// Floating-point instructions at their edges: NaN, infinities, subnormal numbers, and each rounding mode.
#include "ptx_machine.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace isthmus::ptx::test {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

const Values singles = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3fc00000, 0x00000001, 0x807fffff,
                        0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                        0x40490fdb, 0x3f800001, 0x3eaaaaab, 0x0d800000, 0x4b7fffff, 0x4f000000};
const Values doubles = {0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff8000000000000,
                        0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
                        0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x400921fb54442d18,
                        0x3ff0000000000001, 0x3fd5555555555555, 0x43e0000000000000};

float F(u64 bits) {
    return std::bit_cast<float>(static_cast<u32>(bits));
}
double D(u64 bits) {
    return std::bit_cast<double>(bits);
}
// The canonical NaN of single precision.
u64 bits(float value) {
    return value != value ? 0x7fffffff : std::bit_cast<u32>(value);
}
// Payloads of double precision are not promised.
u64 bits(double value) {
    return value != value ? 0x7ff8000000000000 : std::bit_cast<u64>(value);
}
bool is_nan(u64 value) {
    return (value & 0x7fffffffffffffff) > 0x7ff0000000000000;
}
float flush(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// In another rounding mode. The values pass through memory that the compiler does not look into.
template <class T, class F>
T rounded(int mode, F&& work) {
    const int before = std::fegetround();
    std::fesetround(mode);
    const volatile T out = work();
    std::fesetround(before);
    return out;
}

template <class Expected>
void expect_doubles(const std::string& instructions, int operands, Expected&& expected) {
    Values a, b, c;
    for (const u64 x : doubles) {
        for (const u64 y : operands > 1 ? doubles : Values{0}) {
            for (const u64 z : operands > 2 ? doubles : Values{0}) {
                a.push_back(x), b.push_back(y), c.push_back(z);
            }
        }
    }
    const Values found = evaluate(instructions, 'd', a, b, c);
    for (std::size_t at = 0; at < a.size(); ++at) {
        const u64 wanted = bits(expected(D(a[at]), D(b[at]), D(c[at])));
        const bool same = is_nan(wanted) ? is_nan(found[at]) : found[at] == wanted;
        ASSERT_TRUE(same) << instructions << std::hex << " of " << a[at] << ", " << b[at] << ", " << c[at] << " gave "
                          << found[at] << ", not " << wanted;
    }
}

constexpr std::pair<const char*, int> modes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

TEST(PtxFloats, SumsProductsAndQuotientsInEachRoundingMode) {
    for (const auto& [name, mode] : modes) {
        const std::string n = name;
        const int m = mode;
        const auto of = [&](auto work) {
            return [work, m](u64 a, u64 b, u64 c) {
                const volatile float x = F(a), y = F(b), z = F(c);
                return bits(rounded<float>(m, [&] { return work(x, y, z); }));
            };
        };
        expect_all("add." + n + ".f32 %r3, %r0, %r1;", 'r', singles, 2,
                   of([](float a, float b, float) { return a + b; }));
        expect_all("sub." + n + ".f32 %r3, %r0, %r1;", 'r', singles, 2,
                   of([](float a, float b, float) { return a - b; }));
        expect_all("mul." + n + ".f32 %r3, %r0, %r1;", 'r', singles, 2,
                   of([](float a, float b, float) { return a * b; }));
        expect_all("div." + n + ".f32 %r3, %r0, %r1;", 'r', singles, 2,
                   of([](float a, float b, float) { return a / b; }));
        expect_all("sqrt." + n + ".f32 %r3, %r0;", 'r', singles, 1,
                   of([](float a, float, float) { return std::sqrt(a); }));
        expect_all("fma." + n + ".f32 %r3, %r0, %r1, %r2;", 'r', singles, 3,
                   of([](float a, float b, float c) { return std::fma(a, b, c); }));
        expect_doubles("add." + n + ".f64 %d3, %d0, %d1;", 2, [&](double a, double b, double) {
            const volatile double x = a, y = b;
            return rounded<double>(m, [&] { return x + y; });
        });
        expect_doubles("fma." + n + ".f64 %d3, %d0, %d1, %d2;", 3, [&](double a, double b, double c) {
            const volatile double x = a, y = b, z = c;
            return rounded<double>(m, [&] { return std::fma(x, y, z); });
        });
        expect_doubles("rcp." + n + ".f64 %d3, %d0;", 1, [&](double a, double, double) {
            const volatile double x = a;
            return rounded<double>(m, [&] { return 1.0 / x; });
        });
    }
}

// A value that tells the modes apart, computed by hand: 1 + 2^-24 lies halfway between 1 and the next float.
TEST(PtxFloats, TheModesDifferWhereTheyMust) {
    const Values one = {0x3f800000}, half_step = {0x33800000};
    EXPECT_EQ(evaluate("add.rn.f32 %r3, %r0, %r1;", 'r', one, half_step, {0})[0], 0x3f800000u);
    EXPECT_EQ(evaluate("add.rz.f32 %r3, %r0, %r1;", 'r', one, half_step, {0})[0], 0x3f800000u);
    EXPECT_EQ(evaluate("add.rm.f32 %r3, %r0, %r1;", 'r', one, half_step, {0})[0], 0x3f800000u);
    EXPECT_EQ(evaluate("add.rp.f32 %r3, %r0, %r1;", 'r', one, half_step, {0})[0], 0x3f800001u);
    const Values minus_one = {0xbf800000}, minus_half_step = {0xb3800000};
    EXPECT_EQ(evaluate("add.rm.f32 %r3, %r0, %r1;", 'r', minus_one, minus_half_step, {0})[0], 0xbf800001u);
    EXPECT_EQ(evaluate("add.rz.f32 %r3, %r0, %r1;", 'r', minus_one, minus_half_step, {0})[0], 0xbf800000u);
}

TEST(PtxFloats, SubnormalNumbersAreFlushedWhereAsked) {
    expect_all("add.ftz.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [](u64 a, u64 b, u64) { return bits(flush(flush(F(a)) + flush(F(b)))); });
    expect_all("mul.ftz.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [](u64 a, u64 b, u64) { return bits(flush(flush(F(a)) * flush(F(b)))); });
    expect_all("setp.eq.ftz.f32 %p, %r0, %r1;", 'p', singles, 2,
               [](u64 a, u64 b, u64) { return u64{flush(F(a)) == flush(F(b))}; });
}

// As on an H100: what lies below the least normal number is flushed even if it would be rounded to it as a subnormal
// number. What is rounded to it with an exponent of any size is kept.
TEST(PtxFloats, FlushedIsWhatIsBelowTheLeastNormalNumberWithAllItsBits) {
    const auto half = [](const char* text, u64 a, u64 b, u64 c) { return evaluate(text, 'h', {a}, {b}, {c})[0]; };
    EXPECT_EQ(half("mul.rn.ftz.f16 %h3, %h0, %h1;", 0x3bff, 0x0400, 0), 0u);  // (1 - 2^-11) 2^-14
    EXPECT_EQ(half("mul.rn.f16 %h3, %h0, %h1;", 0x3bff, 0x0400, 0), 0x0400u);
    EXPECT_EQ(half("fma.rn.ftz.relu.f16 %h3, %h0, %h1, %h2;", 0x3bff, 0x0400, 0), 0u);
    EXPECT_EQ(half("mul.rn.ftz.f16 %h3, %h0, %h1;", 0x2950, 0x9606, 0), 0x8400u);  // (1 - 2^-16) 2^-14
    const auto single = [](const char* text, u64 a, u64 b, u64 c) { return evaluate(text, 'r', {a}, {b}, {c})[0]; };
    EXPECT_EQ(single("mul.rn.ftz.f32 %r3, %r0, %r1;", 0x00ffffff, 0x3f000000, 0), 0u);
    EXPECT_EQ(single("mul.rn.f32 %r3, %r0, %r1;", 0x00ffffff, 0x3f000000, 0), 0x00800000u);
    EXPECT_EQ(single("mul.rp.ftz.f32 %r3, %r0, %r1;", 0x80ffffff, 0x3f000000, 0), 0x80000000u);
    EXPECT_EQ(single("fma.rp.ftz.f32 %r3, %r0, %r1, %r2;", 0x00ffffff, 0x3f000000, 0), 0u);
    EXPECT_EQ(single("div.rn.ftz.f32 %r3, %r0, %r1;", 0x00ffffff, 0x40000000, 0), 0u);
    EXPECT_EQ(single("rcp.rp.ftz.f32 %r3, %r0;", 0x7e800001, 0, 0), 0u);  // below 2^-126 by 2^-149
    EXPECT_EQ(single("mul.rn.ftz.f32 %r3, %r0, %r1;", 0x00fffffe, 0x3f000001, 0), 0x00800000u);
}

TEST(PtxFloats, SaturationClampsAndTurnsNanIntoZero) {
    expect_all("add.sat.f32 %r3, %r0, %r1;", 'r', singles, 2, [](u64 a, u64 b, u64) {
        const float sum = F(a) + F(b);
        return bits(sum > 0 ? std::min(sum, 1.0f) : 0.0f);
    });
    expect_all("fma.rn.sat.f32 %r3, %r0, %r1, %r2;", 'r', {0x3f800000, 0xbf800000, 0x7fc00000, 0x3f000000, 0x40000000},
               3, [](u64 a, u64 b, u64 c) {
                   const float sum = std::fma(F(a), F(b), F(c));
                   return bits(sum > 0 ? std::min(sum, 1.0f) : 0.0f);
               });
}

TEST(PtxFloats, MinimumAndMaximumPreferNumbersAndOrderZeros) {
    const auto least = [](float a, float b) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
        if (a == 0 && b == 0) return std::signbit(a) || std::signbit(b) ? -0.0f : 0.0f;
        return std::fmin(a, b);
    };
    expect_all("min.f32 %r3, %r0, %r1;", 'r', singles, 2, [&](u64 a, u64 b, u64) { return bits(least(F(a), F(b))); });
    expect_all("max.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [&](u64 a, u64 b, u64) { return bits(-least(-F(a), -F(b))); });
    expect_all("min.NaN.f32 %r3, %r0, %r1;", 'r', singles, 2, [&](u64 a, u64 b, u64) {
        return std::isnan(F(a)) || std::isnan(F(b)) ? u64{0x7fffffff} : bits(least(F(a), F(b)));
    });
    expect_all("copysign.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [](u64 a, u64 b, u64) { return (a & 0x80000000) | (b & 0x7fffffff); });
    expect_all("abs.f32 %r3, %r0;", 'r', singles, 1, [](u64 a, u64, u64) { return a & 0x7fffffff; });
    expect_all("neg.f32 %r3, %r0;", 'r', singles, 1, [](u64 a, u64, u64) { return a ^ 0x80000000; });
}

TEST(PtxFloats, MinimumAndMaximumOfSizesWithTheSignOfAProduct) {
    const auto of_sizes = [](u64 a, u64 b, bool least, bool with_nan) -> u64 {
        const float x = std::fabs(F(a)), y = std::fabs(F(b));
        const bool nan = with_nan ? std::isnan(x) || std::isnan(y) : std::isnan(x) && std::isnan(y);
        if (nan) return 0x7fffffff;
        const float chosen = std::isnan(x) ? y : std::isnan(y) ? x : least == (x < y) ? x : y;
        return bits(chosen) | ((a ^ b) & 0x80000000);
    };
    expect_all("min.xorsign.abs.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [&](u64 a, u64 b, u64) { return of_sizes(a, b, true, false); });
    expect_all("max.NaN.xorsign.abs.f32 %r3, %r0, %r1;", 'r', singles, 2,
               [&](u64 a, u64 b, u64) { return of_sizes(a, b, false, true); });
    // slct: a NaN is not at least 0, -0 is.
    expect_all("slct.b32.f32 %r3, %r0, %r1, %r2;", 'r', {0x80000000, 0, 0x7fc00000, 0x80000001, 0xbf800000, 0x40000000},
               3, [](u64 a, u64 b, u64 c) { return F(c) >= 0 ? a : b; });
    expect_all("slct.ftz.b32.f32 %r3, %r0, %r1, %r2;", 'r', {0x80000000, 0, 0x7fc00000, 0x80000001, 0xbf800000}, 3,
               [](u64 a, u64 b, u64 c) { return flush(F(c)) >= 0 ? a : b; });
}

TEST(PtxFloats, ComparisonsWithNan) {
    const auto unordered = [](u64 a, u64 b) { return std::isnan(F(a)) || std::isnan(F(b)); };
    expect_all("setp.eq.f32 %p, %r0, %r1;", 'p', singles, 2, [](u64 a, u64 b, u64) { return u64{F(a) == F(b)}; });
    expect_all("setp.ne.f32 %p, %r0, %r1;", 'p', singles, 2,
               [&](u64 a, u64 b, u64) { return u64{!unordered(a, b) && F(a) != F(b)}; });
    expect_all("setp.neu.f32 %p, %r0, %r1;", 'p', singles, 2, [](u64 a, u64 b, u64) { return u64{F(a) != F(b)}; });
    expect_all("setp.ltu.f32 %p, %r0, %r1;", 'p', singles, 2, [](u64 a, u64 b, u64) { return u64{!(F(a) >= F(b))}; });
    expect_all("setp.ge.f32 %p, %r0, %r1;", 'p', singles, 2, [](u64 a, u64 b, u64) { return u64{F(a) >= F(b)}; });
    expect_all("setp.nan.f32 %p, %r0, %r1;", 'p', singles, 2, [&](u64 a, u64 b, u64) { return u64{unordered(a, b)}; });
    expect_all("setp.num.f32 %p, %r0, %r1;", 'p', singles, 2, [&](u64 a, u64 b, u64) { return u64{!unordered(a, b)}; });
    expect_all("testp.subnormal.f32 %p, %r0;", 'p', singles, 1,
               [](u64 a, u64, u64) { return u64{std::fpclassify(F(a)) == FP_SUBNORMAL}; });
    expect_all("testp.normal.f32 %p, %r0;", 'p', singles, 1,
               [](u64 a, u64, u64) { return u64{std::isnormal(F(a)) || F(a) == 0}; });
}

// Within the errors that the PTX ISA documents.
TEST(PtxFloats, ApproximationsStayWithinTheirErrors) {
    const Values inputs = {0x3f800000, 0x3f000000, 0x40490fdb, 0x3eaaaaab,
                           0x42c80000, 0x3a83126f, 0x41200000, 0x3f7fffff};
    const auto near = [&](const char* instruction, auto exact, double relative, double absolute) {
        const Values found = evaluate(instruction, 'r', inputs, inputs, inputs);
        for (std::size_t at = 0; at < inputs.size(); ++at) {
            const double wanted = exact(double{F(inputs[at])});
            EXPECT_NEAR(double{F(found[at])}, wanted, std::max(absolute, relative * std::fabs(wanted))) << instruction;
        }
    };
    near(
        "rcp.approx.ftz.f32 %r3, %r0;", [](double x) { return 1 / x; }, 0x1p-23, 0);
    near(
        "rsqrt.approx.f32 %r3, %r0;", [](double x) { return 1 / std::sqrt(x); }, 0x1p-22, 0);
    near(
        "sqrt.approx.f32 %r3, %r0;", [](double x) { return std::sqrt(x); }, 0x1p-23, 0);
    near(
        "ex2.approx.ftz.f32 %r3, %r0;", [](double x) { return std::exp2(x); }, 0x1p-22, 0);
    near(
        "lg2.approx.f32 %r3, %r0;", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22);
    near(
        "sin.approx.f32 %r3, %r0;", [](double x) { return std::sin(x); }, 0, 0x1p-20);
    near(
        "cos.approx.f32 %r3, %r0;", [](double x) { return std::cos(x); }, 0, 0x1p-20);
    near(
        "tanh.approx.f32 %r3, %r0;", [](double x) { return std::tanh(x); }, 0x1p-11, 0);
    expect_all("ex2.approx.f32 %r3, %r0;", 'r', {0x7f800000, 0xff800000, 0x7fc00000, 0x80000000}, 1,
               [](u64 a, u64, u64) { return bits(std::exp2(F(a))); });
}

// PTX ISA, rsqrt: the form with .ftz reads and writes the upper 32 bits alone.
TEST(PtxFloats, ReciprocalRootsOfDoublesKeepTheirLowerBitsWithoutFtz) {
    const Values inputs = {std::bit_cast<u64>(2.0), std::bit_cast<u64>(1.0 + 0x1p-40), 1};
    const Values whole = evaluate("rsqrt.approx.f64 %d3, %d0;", 'd', inputs, inputs, inputs);
    const Values upper = evaluate("rsqrt.approx.ftz.f64 %d3, %d0;", 'd', inputs, inputs, inputs);
    for (std::size_t at = 0; at < inputs.size(); ++at) {
        const double exact = 1.0 / std::sqrt(std::bit_cast<double>(inputs[at]));
        EXPECT_NEAR(std::bit_cast<double>(whole[at]), exact, exact * 0x1p-50) << at;
        EXPECT_EQ(upper[at] & 0xffffffff, 0u) << at;
    }
    EXPECT_NE(whole[0] & 0xffffffff, 0u);
    EXPECT_EQ(upper[2], 0x7ff0000000000000u);  // of a subnormal number, which counts as 0
}

// PTX ISA, div: .approx gives 0 for divisors beyond 2^126, .full does not.
TEST(PtxFloats, FullDivisionHasTheFullRange) {
    const Values large = {0x7f000000, 0x7f400000}, small = {0x7e800000, 0x7e800000};  // 2^127, 1.5 * 2^127; 2^126
    EXPECT_EQ(evaluate("div.full.f32 %r3, %r0, %r1;", 'r', large, large, large), (Values{0x3f800000, 0x3f800000}));
    EXPECT_EQ(evaluate("div.full.f32 %r3, %r1, %r0;", 'r', large, small, small)[0], 0x3f000000u);
    EXPECT_EQ(evaluate("div.approx.f32 %r3, %r1, %r0;", 'r', large, small, small)[0], 0u);
}

// Every half, as a number; the values of finite ones grow with their bits.
double half_number(u32 h, int fraction, int bias) {
    const int field = static_cast<int>(h & 0x7fff) >> fraction, rest = static_cast<int>(h) & ((1 << fraction) - 1);
    const int top = (1 << (15 - fraction)) - 1;
    double out = field == top ? (rest != 0 ? std::nan("") : HUGE_VAL)
                 : field == 0 ? std::ldexp(rest, 1 - bias - fraction)
                              : std::ldexp(rest + (1 << fraction), field - bias - fraction);
    return (h & 0x8000) != 0 ? -out : out;
}
// The nearest half, by search: an independent way of rounding. `exact` holds the result with far more bits.
u64 nearest_half(long double exact, int fraction, int bias) {
    if (exact != exact) return 0x7fff;
    const u32 sign = std::signbit(exact) ? 0x8000 : 0;
    const long double size = std::fabs(exact);
    u32 low = 0, high = static_cast<u32>((1 << (15 - fraction)) - 1) << fraction;  // infinity
    const u32 infinity = high;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        (static_cast<long double>(half_number(middle, fraction, bias)) <= size ? low : high) = middle;
    }
    if (size == 0) return sign;
    // Beyond the largest number, the next one counts as if there were no limit.
    const long double below = half_number(low, fraction, bias);
    const long double above =
        high == infinity ? below + (below - half_number(low - 1, fraction, bias)) : half_number(high, fraction, bias);
    if (std::isinf(exact)) return sign | infinity;
    const long double from_below = size - below, to_above = above - size;
    const u32 chosen = from_below < to_above || (from_below == to_above && (low & 1) == 0) ? low : high;
    return sign | chosen;
}

const Values halves = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff,
                       0x7c00, 0xfc00, 0x7e00, 0x3555, 0x4248, 0x3c01, 0x1400, 0x6400, 0x00ff};
const Values brains = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x0001, 0x807f, 0x0080,
                       0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x3eab, 0x4049, 0x3f81};

TEST(PtxFloats, HalvesAreRoundedOnce) {
    const auto h = [](u64 a) { return static_cast<long double>(half_number(static_cast<u32>(a), 10, 15)); };
    expect_all("add.f16 %h3, %h0, %h1;", 'h', halves, 2,
               [&](u64 a, u64 b, u64) { return nearest_half(h(a) + h(b), 10, 15); });
    expect_all("mul.f16 %h3, %h0, %h1;", 'h', halves, 2,
               [&](u64 a, u64 b, u64) { return nearest_half(h(a) * h(b), 10, 15); });
    // 64 bits hold these sums: the products have 22 bits.
    expect_all("fma.rn.f16 %h3, %h0, %h1, %h2;", 'h',
               {0x3c00, 0xbc00, 0x0001, 0x3c01, 0x3bff, 0x4248, 0x7bff, 0x7c00, 0x7e00, 0x1400}, 3,
               [&](u64 a, u64 b, u64 c) { return nearest_half(h(a) * h(b) + h(c), 10, 15); });
    expect_all("neg.f16 %h3, %h0;", 'h', halves, 1, [](u64 a, u64, u64) { return a ^ 0x8000; });
    expect_all("setp.lt.f16 %p, %h0, %h1;", 'p', halves, 2, [&](u64 a, u64 b, u64) { return u64{h(a) < h(b)}; });
    expect_all("fma.rn.relu.f16 %h3, %h0, %h1, %h2;", 'h', {0x3c00, 0xbc00, 0x7e00, 0x4248}, 3,
               [&](u64 a, u64 b, u64 c) {
                   const long double exact = h(a) * h(b) + h(c);
                   return exact != exact ? u64{0x7fff} : exact > 0 ? nearest_half(exact, 10, 15) : 0;
               });
    // Each half of a pair by itself.
    expect_all("mov.b32 %r4, {%h0, %h1}; mov.b32 %r5, {%h1, %h0}; add.f16x2 %r3, %r4, %r5;", 'r', halves, 2,
               [&](u64 a, u64 b, u64) {
                   const u64 sum = nearest_half(h(a) + h(b), 10, 15);
                   return sum | (sum << 16);
               });
    const auto b16 = [](u64 a) { return static_cast<long double>(half_number(static_cast<u32>(a), 7, 127)); };
    expect_all("mul.bf16 %h3, %h0, %h1;", 'h', brains, 2,
               [&](u64 a, u64 b, u64) { return nearest_half(b16(a) * b16(b), 7, 127); });
    expect_all("fma.rn.bf16 %h3, %h0, %h1, %h2;", 'h', {0x3f80, 0xbf81, 0x3eab, 0x4049, 0x7fc0, 0x7f80}, 3,
               [&](u64 a, u64 b, u64 c) { return nearest_half(b16(a) * b16(b) + b16(c), 7, 127); });
    // 3 · 87 = 261 lies halfway between 260 and 262; a summand of 2^-60 decides, and a rounding before would lose it.
    EXPECT_EQ(evaluate("fma.rn.bf16 %h3, %h0, %h1, %h2;", 'h', {0x4040, 0x4040, 0x4040}, {0x42ae, 0x42ae, 0x42ae},
                       {0x2180, 0xa180, 0}),
              (Values{0x4383, 0x4382, 0x4382}));
}

}  // namespace
}  // namespace isthmus::ptx::test
