// SPDX-License-Identifier: Apache-2.0
// cvt between integers and floats at their edges, and packing.
#include "ptx_machine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace isthmus::ptx::test {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;
using s64 = std::int64_t;

const Values numbers = {0,
                        1,
                        127,
                        128,
                        255,
                        256,
                        0x7fff,
                        0x8000,
                        0xffff,
                        0xffffff,
                        0x1000001,
                        0x7fffffff,
                        0x80000000,
                        0xffffffff,
                        0x7fffffffffffffff,
                        0x8000000000000000,
                        0xffffffffffffffff,
                        0x8000008000000001,
                        0xffffff8000000000};
const Values singles = {0x00000000, 0x80000000, 0x3f000000, 0x3f7fffff, 0x3fc00000, 0x40200000, 0xc0200000,
                        0xbf000000, 0xc0600000, 0x00000001, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001,
                        0x4f800000, 0x5f000000, 0xdf000000, 0x5f800000, 0x7f7fffff, 0x7f800000, 0xff800000,
                        0x7fc00000, 0x42fe0000, 0x43000000, 0xc3010000, 0x3effffff};

float F(u64 bits) {
    return std::bit_cast<float>(static_cast<u32>(bits));
}

TEST(PtxConversions, IntegersAreCutExtendedAndClamped) {
    expect_all("cvt.s64.s32 %d3, %r0;", 'd', numbers, 1,
               [](u64 a, u64, u64) { return static_cast<u64>(s64{static_cast<std::int32_t>(a)}); });
    expect_all("cvt.u32.u16 %r3, %h0;", 'r', numbers, 1, [](u64 a, u64, u64) { return a & 0xffff; });
    expect_all("cvt.s32.s8 %r3, %r0;", 'r', numbers, 1,
               [](u64 a, u64, u64) { return u64{static_cast<u32>(static_cast<std::int8_t>(a))}; });
    expect_all("cvt.u8.u32 %r3, %r0;", 'r', numbers, 1, [](u64 a, u64, u64) { return a & 0xff; });
    expect_all("cvt.sat.u8.s32 %r3, %r0;", 'r', numbers, 1,
               [](u64 a, u64, u64) { return u64(std::clamp(static_cast<std::int32_t>(a), 0, 255)); });
    expect_all("cvt.sat.s16.s64 %h3, %d0;", 'h', numbers, 1, [](u64 a, u64, u64) {
        return u64{static_cast<std::uint16_t>(std::clamp<s64>(static_cast<s64>(a), -32768, 32767))};
    });
    expect_all("cvt.sat.u32.s64 %r3, %d0;", 'r', numbers, 1,
               [](u64 a, u64, u64) { return u64(std::clamp<s64>(static_cast<s64>(a), 0, 0xffffffffLL)); });
    // A signed result fills its register.
    expect_all("cvt.s8.s32 %r3, %r0;", 'r', numbers, 1,
               [](u64 a, u64, u64) { return u64{static_cast<u32>(static_cast<std::int8_t>(a))}; });
}

// The PTX ISA: rounding, then clamping; NaN is 0 unless 64 bits take part.
TEST(PtxConversions, FloatsToIntegersRoundAndClamp) {
    const auto whole = [](float value, const char* mode) {
        const std::string m = mode;
        if (m == "rzi") return std::trunc(value);
        if (m == "rmi") return std::floor(value);
        if (m == "rpi") return std::ceil(value);
        const float low = std::floor(value), part = value - low;  // to the nearest, ties to even
        if (part != 0.5f) return part < 0.5f ? low : low + 1;
        return std::fmod(low, 2.0f) == 0 ? low : low + 1;
    };
    for (const char* const mode : {"rni", "rzi", "rmi", "rpi"}) {
        const std::string m = mode;
        expect_all("cvt." + m + ".s32.f32 %r3, %r0;", 'r', singles, 1, [&](u64 a, u64, u64) {
            if (std::isnan(F(a))) return u64{0};
            const double v = std::isinf(F(a)) ? F(a) : whole(F(a), mode);
            return u64{static_cast<u32>(static_cast<std::int32_t>(std::clamp(v, -2147483648.0, 2147483647.0)))};
        });
        expect_all("cvt." + m + ".u8.f32 %r3, %r0;", 'r', singles, 1, [&](u64 a, u64, u64) {
            if (std::isnan(F(a))) return u64{0};
            return u64(std::clamp(std::isinf(F(a)) ? double{F(a)} : double{whole(F(a), mode)}, 0.0, 255.0));
        });
        expect_all("cvt." + m + ".u64.f32 %d3, %r0;", 'd', singles, 1, [&](u64 a, u64, u64) {
            if (std::isnan(F(a))) return u64{1} << 63;
            const double v = std::isinf(F(a)) ? F(a) : whole(F(a), mode);
            return v >= 0x1p64 ? ~u64{0} : v <= 0 ? u64{0} : static_cast<u64>(v);
        });
        expect_all("cvt." + m + ".f32.f32 %r3, %r0;", 'r', singles, 1, [&](u64 a, u64, u64) {
            if (std::isnan(F(a))) return u64{0x7fffffff};
            if (std::isinf(F(a)) || std::fabs(F(a)) >= 0x1p24f) return a;
            return u64{std::bit_cast<u32>(std::copysign(whole(F(a), mode), F(a)))};
        });
    }
    EXPECT_EQ(evaluate("cvt.rzi.s32.f64 %r3, %d0;", 'r', {0x7ff8000000000000}, {0}, {0})[0], 0x80000000u);
    EXPECT_EQ(evaluate("cvt.rzi.s64.f64 %d3, %d0;", 'd', {0xc3e0000000000000}, {0}, {0})[0], 0x8000000000000000u);
}

TEST(PtxConversions, IntegersToFloatsRound) {
    expect_all("cvt.rn.f32.s32 %r3, %r0;", 'r', numbers, 1, [](u64 a, u64, u64) {
        return u64{std::bit_cast<u32>(static_cast<float>(static_cast<std::int32_t>(a)))};
    });
    expect_all("cvt.rn.f32.u64 %r3, %d0;", 'r', numbers, 1,
               [](u64 a, u64, u64) { return u64{std::bit_cast<u32>(static_cast<float>(a))}; });
    expect_all("cvt.rn.f64.s64 %d3, %d0;", 'd', numbers, 1,
               [](u64 a, u64, u64) { return std::bit_cast<u64>(static_cast<double>(static_cast<s64>(a))); });
    // 2^24 + 1 lies between two floats.
    for (const auto& [mode, wanted] :
         {std::pair{"rn", 0x4b800000u}, {"rz", 0x4b800000u}, {"rm", 0x4b800000u}, {"rp", 0x4b800001u}}) {
        EXPECT_EQ(evaluate("cvt." + std::string(mode) + ".f32.u32 %r3, %r0;", 'r', {0x1000001}, {0}, {0})[0], wanted)
            << mode;
    }
    for (const auto& [mode, wanted] :
         {std::pair{"rn", 0xcb800000u}, {"rz", 0xcb800000u}, {"rm", 0xcb800001u}, {"rp", 0xcb800000u}}) {
        EXPECT_EQ(evaluate("cvt." + std::string(mode) + ".f32.s32 %r3, %r0;", 'r', {0xfeffffff}, {0}, {0})[0], wanted)
            << mode;
    }
    EXPECT_EQ(evaluate("cvt.rn.f16.u32 %h3, %r0;", 'h', {65519, 65520, 2049, 2051}, {0, 0, 0, 0}, {0, 0, 0, 0}),
              (Values{0x7bff, 0x7c00, 0x6800, 0x6802}));
}

TEST(PtxConversions, FloatsOfOtherSizes) {
    // 1 + 2^-24 + 2^-53: nearest is up, although a rounding to 2^-24 alone would be a tie.
    EXPECT_EQ(evaluate("cvt.rn.f32.f64 %r3, %d0;", 'r', {0x3ff0000010000001}, {0}, {0})[0], 0x3f800001u);
    EXPECT_EQ(evaluate("cvt.rz.f32.f64 %r3, %d0;", 'r', {0x3ff0000010000001}, {0}, {0})[0], 0x3f800000u);
    EXPECT_EQ(evaluate("cvt.rn.f32.f64 %r3, %d0;", 'r', {0x7fefffffffffffff}, {0}, {0})[0], 0x7f800000u);
    EXPECT_EQ(evaluate("cvt.rz.f32.f64 %r3, %d0;", 'r', {0x7fefffffffffffff}, {0}, {0})[0], 0x7f7fffffu);
    EXPECT_EQ(evaluate("cvt.f64.f32 %d3, %r0;", 'd', {1, 0x7f800000, 0xbf800000}, {0, 0, 0}, {0, 0, 0}),
              (Values{0x36a0000000000000, 0x7ff0000000000000, 0xbff0000000000000}));
    EXPECT_EQ(evaluate("cvt.rn.f16.f32 %h3, %r0;", 'h',
                       {0x3f800000, 0x477fefff, 0x477ff000, 0x33000000, 0x33000001, 0x7fc00000}, Values(6), Values(6)),
              (Values{0x3c00, 0x7bff, 0x7c00, 0x0000, 0x0001, 0x7fff}));
    EXPECT_EQ(evaluate("cvt.f32.f16 %r3, %h0;", 'r', {0x3c00, 0x0001, 0xfc00, 0x7e00}, Values(4), Values(4)),
              (Values{0x3f800000, 0x33800000, 0xff800000, 0x7fffffff}));
    EXPECT_EQ(evaluate("cvt.rn.bf16.f32 %h3, %r0;", 'h', {0x3f808000, 0x3f818000, 0x7f7fffff}, Values(3), Values(3)),
              (Values{0x3f80, 0x3f82, 0x7f80}));
    EXPECT_EQ(
        evaluate("cvt.rn.bf16.f16 %h3, %h0;", 'h', {0x3c04, 0x3c08, 0x3c0c, 0xfc00, 0x0001}, Values(5), Values(5)),
        (Values{0x3f80, 0x3f81, 0x3f82, 0xff80, 0x3380}));
    EXPECT_EQ(evaluate("cvt.rz.f16.bf16 %h3, %h0;", 'h', {0x3f80, 0x4780, 0xb380, 0x4049}, Values(4), Values(4)),
              (Values{0x3c00, 0x7bff, 0x8001, 0x4248}));
    EXPECT_EQ(evaluate("cvt.rn.f16x2.f32 %r3, %r0, %r1;", 'r', {0x3f800000}, {0x40000000}, {0})[0], 0x3c004000u);
    EXPECT_EQ(evaluate("cvt.sat.f32.f32 %r3, %r0;", 'r', {0x40000000, 0xbf800000, 0x7fc00000, 0x3f000000}, Values(4),
                       Values(4)),
              (Values{0x3f800000, 0, 0, 0x3f000000}));
}

// As on an H100.
TEST(PtxConversions, ZerosAndSubnormalNumbersOfFloats) {
    const auto half = [](const char* text, u64 a) { return evaluate(text, 'h', {a}, {0}, {0})[0]; };
    EXPECT_EQ(half("cvt.rn.relu.f16.f32 %h3, %r0;", 0x80000000), 0u);
    EXPECT_EQ(half("cvt.rz.relu.bf16.f32 %h3, %r0;", 0x80000000), 0u);
    EXPECT_EQ(half("cvt.rn.f16.f32 %h3, %r0;", 0x80000000), 0x8000u);
    EXPECT_EQ(half("cvt.rn.relu.f16.f32 %h3, %r0;", 0x7fc00000), 0x7fffu);
    // A subnormal number is not flushed before it becomes a half.
    EXPECT_EQ(half("cvt.rp.ftz.f16.f32 %h3, %r0;", 2), 1u);
    EXPECT_EQ(half("cvt.rm.ftz.f16.f32 %h3, %r0;", 0x80007e00), 0x8001u);
    const auto single = [](const char* text, u64 a) { return evaluate(text, 'r', {a}, {0}, {0})[0]; };
    EXPECT_EQ(single("cvt.rp.ftz.f32.f64 %r3, %d0;", 0x380fffffe0000000), 0u);  // (1 - 2^-24) 2^-126
    EXPECT_EQ(single("cvt.rp.f32.f64 %r3, %d0;", 0x380fffffe0000000), 0x00800000u);
    EXPECT_EQ(single("cvt.rn.ftz.f32.f64 %r3, %d0;", 0xb80fffffffffffff), 0x80800000u);  // (1 - 2^-53) 2^-126
}

TEST(PtxConversions, PackingAndUnpacking) {
    EXPECT_EQ(evaluate("mov.b64 {%r4, %r5}, %d0; mov.b64 %d3, {%r5, %r4};", 'd', {0x1122334455667788}, {0}, {0})[0],
              0x5566778811223344u);
    EXPECT_EQ(evaluate("mov.b32 {%h4, _}, %r0; mov.b32 %r3, {0, %h4};", 'r', {0x11223344}, {0}, {0})[0], 0x33440000u);
    EXPECT_EQ(evaluate("mov.b64 {%h4, %h5, %h6, %h7}, %d0; mov.b64 %d3, {%h7, %h6, %h5, %h4};", 'd',
                       {0x1111222233334444}, {0}, {0})[0],
              0x4444333322221111u);
}

// PTX ISA, cvt.pack: a lies above b, and both are saturated; the rest is the low bits of c.
TEST(PtxConversions, TwoIntegersArePacked) {  // keeps W8
    const auto packed = [](const char* instruction, std::int32_t a, std::int32_t b, std::uint32_t c) {
        return evaluate(std::string(instruction), 'r', {static_cast<std::uint32_t>(a)}, {static_cast<std::uint32_t>(b)},
                        {c})[0];
    };
    EXPECT_EQ(packed("cvt.pack.sat.u8.s32.b32 %r3, %r0, %r1, %r2;", -200, 300, 0x12345678), 0x567800ffu);
    EXPECT_EQ(packed("cvt.pack.sat.s8.s32.b32 %r3, %r0, %r1, %r2;", -200, 300, 0x12345678), 0x5678807fu);
    EXPECT_EQ(packed("cvt.pack.sat.s8.s32.b32 %r3, %r0, %r1, %r2;", 5, -6, 0), 0x05fau);
    EXPECT_EQ(packed("cvt.pack.sat.s16.s32 %r3, %r0, %r1;", -40000, 300, 0), 0x8000012cu);
    EXPECT_EQ(packed("cvt.pack.sat.u16.s32 %r3, %r0, %r1;", -1, 70000, 0), 0x0000ffffu);
    EXPECT_EQ(packed("cvt.pack.sat.u4.s32.b32 %r3, %r0, %r1, %r2;", 3, 300, 0x12345678), 0x3456783fu);
    EXPECT_EQ(packed("cvt.pack.sat.s4.s32.b32 %r3, %r0, %r1, %r2;", -3, 300, 0), 0xd7u);
    EXPECT_EQ(packed("cvt.pack.sat.s2.s32.b32 %r3, %r0, %r1, %r2;", -200, 300, 0x12345678), 0x23456789u);
    for (const char* const wrong :
         {"cvt.pack.u8.s32.b32 %r3, %r0, %r1, %r2;", "cvt.pack.sat.u8.s32 %r3, %r0, %r1;",
          "cvt.pack.sat.u32.s32 %r3, %r0, %r1;", "cvt.pack.sat.u16.s32.b32 %r3, %r0, %r1, %r2;"}) {
        EXPECT_TRUE(Program(kernel_of(wrong, 'r')).entries()[0].refusal.refused()) << wrong;
    }
}

// PTX ISA, cvt: tf32 has the exponent of f32 and 10 bits of fraction; .rna rounds ties away from 0.
TEST(PtxConversions, SinglePrecisionBecomesTensorFloats) {  // keeps W8
    const std::pair<std::uint64_t, std::uint64_t> rows[] = {
        {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f802000}, {0x3f801001, 0x3f802000}, {0xbf801000, 0xbf802000},
        {0x7f7fffff, 0x7f800000}, {0xff800000, 0xff800000}, {0x7fc12345, 0x7fffffff}, {0x7f801fff, 0x7fffffff},
        {0x00000fff, 0x00000000}, {0x80001000, 0x80002000}, {0x3f803000, 0x3f804000}};
    for (const auto& [from, to] : rows) {
        const Values found =
            evaluate(".reg .f32 %f0; mov.b32 %f0, %r0; cvt.rna.tf32.f32 %r3, %f0;", 'r', {from}, {0}, {0});
        EXPECT_EQ(found[0], to) << std::hex << from;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
