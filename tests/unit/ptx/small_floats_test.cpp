// SPDX-License-Identifier: Apache-2.0
// 8-bit floats: cuda_fp8.h as nvcc makes it.
#include "made_by_nvcc.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace isthmus::ptx::test {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u8 = std::uint8_t;

// The number of each format's bits, written from its definition.
double e4m3_number(u8 bits) {
    if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
    const int field = bits >> 3 & 15, fraction = bits & 7;
    const double magnitude = field == 0 ? fraction / 512.0 : std::ldexp(8 + fraction, field - 10);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}
double e5m2_number(u8 bits) {
    const int field = bits >> 2 & 31, fraction = bits & 3;
    const double magnitude = field == 31  ? fraction == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN()
                              : field == 0 ? std::ldexp(fraction, -16)
                                          : std::ldexp(4 + fraction, field - 17);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}
// The nearest finite number, the even one of two; by looking at all of them.
template <class Number>
u8 nearest(double value, Number number) {
    if (std::isnan(value)) return 0x7f;
    const u8 sign = std::signbit(value) ? 0x80 : 0;
    u8 best = 0;
    for (u8 bits = 0; bits < 0x80; ++bits) {
        if (!std::isfinite(number(bits))) continue;
        const double distance = std::fabs(std::fabs(value) - number(bits)),
                     least = std::fabs(std::fabs(value) - number(best));
        const bool is_beyond = std::fabs(value) > number(bits) && std::fabs(value) > 1e6;
        if (distance < least || (distance == least && (bits & 1) == 0) || is_beyond) best = bits;
    }
    return sign | best;
}

std::vector<float> edges() {
    std::vector<float> out = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f, 1e-45f};
    for (int bits = 0; bits < 0x80; ++bits) {
        for (const double number : {e4m3_number(static_cast<u8>(bits)), e5m2_number(static_cast<u8>(bits))}) {
            for (const double next : {e4m3_number(static_cast<u8>(bits + 1)), e5m2_number(static_cast<u8>(bits + 1))}) {
                const auto middle = static_cast<float>((number + next) / 2);
                for (const float value : {static_cast<float>(number), middle}) {
                    if (!std::isfinite(value)) continue;
                    out.insert(out.end(), {value, -value, std::nextafter(value, 1e9f), std::nextafter(value, -1e9f)});
                }
            }
        }
    }
    out.resize(out.size() / 2 * 2);
    return out;
}

TEST(PtxSmallFloats, NumbersAreRoundedOnceAndSaturate) {  // keeps W8
    Buffers buffers;
    std::vector<float> in = edges();
    const auto count = static_cast<u32>(in.size());
    std::vector<u8> a(count), b(count);
    std::vector<u16> pairs_a(count / 2), pairs_b(count / 2);
    const u64 pin = buffers.add(in), pa = buffers.add(a), pb = buffers.add(b), ppa = buffers.add(pairs_a),
              ppb = buffers.add(pairs_b);
    Loaded loaded(made_by_nvcc("small_floats"), buffers);
    const u32 grid = (count + 127) / 128;
    Fault fault = loaded.run("from_singles", blocks_of(grid, 128), pin, pa, pb, count);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    fault = loaded.run("pairs", blocks_of(grid, 128), pin, ppa, ppb, count / 2);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (std::size_t at = 0; at < count; ++at) {
        ASSERT_EQ(a[at], nearest(double{in[at]}, e4m3_number)) << in[at];
        ASSERT_EQ(b[at], nearest(double{in[at]}, e5m2_number)) << in[at];
        ASSERT_EQ(pairs_a[at / 2] >> (8 * (at % 2)) & 255, a[at]) << in[at];
        ASSERT_EQ(pairs_b[at / 2] >> (8 * (at % 2)) & 255, b[at]) << in[at];
    }
}

TEST(PtxSmallFloats, HalvesAndBack) {  // keeps W8
    Buffers buffers;
    std::vector<u16> in(1 << 16), a(1 << 16), b(1 << 16);
    for (u32 at = 0; at < in.size(); ++at) in[at] = static_cast<u16>(at);
    std::vector<u8> all(256);
    for (u32 at = 0; at < 256; ++at) all[at] = static_cast<u8>(at);
    std::vector<float> back_a(256), back_b(256);
    const u64 pin = buffers.add(in), pa = buffers.add(a), pb = buffers.add(b), pall = buffers.add(all),
              pba = buffers.add(back_a), pbb = buffers.add(back_b);
    Loaded loaded(made_by_nvcc("small_floats"), buffers);
    Fault fault = loaded.run("from_halves", blocks_of(256, 128), pin, pa, pb, 1 << 15);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    fault = loaded.run("to_singles", blocks_of(2, 128), pall, pba, pbb, 256);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 at = 0; at < in.size(); at += 37) {
        const int field = static_cast<int>(at >> 10 & 31), fraction = static_cast<int>(at & 1023);
        double value = field == 31  ? fraction == 0 ? HUGE_VAL : NAN
                       : field == 0 ? std::ldexp(fraction, -24)
                                    : std::ldexp(1024 + fraction, field - 25);
        if ((at & 0x8000) != 0) value = -value;
        const u16 wide = a[at / 2], wide_b = b[at / 2];
        ASSERT_EQ(wide >> (8 * (at % 2)) & 255, nearest(value, e4m3_number)) << at;
        ASSERT_EQ(wide_b >> (8 * (at % 2)) & 255, nearest(value, e5m2_number)) << at;
    }
    for (u32 at = 0; at < 256; ++at) {
        const double wanted_a = e4m3_number(static_cast<u8>(at)), wanted_b = e5m2_number(static_cast<u8>(at));
        EXPECT_TRUE(std::isnan(wanted_a) ? std::isnan(back_a[at]) : double{back_a[at]} == wanted_a) << at;
        EXPECT_TRUE(std::isnan(wanted_b) ? std::isnan(back_b[at]) : double{back_b[at]} == wanted_b) << at;
        EXPECT_EQ(std::signbit(back_b[at]), !std::isnan(wanted_b) && at >= 128);
    }
}

TEST(PtxSmallFloats, ReluClampsAndOthersAreRefused) {  // keeps W8
    const auto of = [](const char* instruction, u64 a, u64 b, char result) {
        return evaluate(instruction, result, {a}, {b}, {0})[0];
    };
    EXPECT_EQ(of("cvt.rn.satfinite.e4m3x2.f32 %h3, %r0, %r1;", 0x3f800000, 0xc0000000, 'h'), 0x38c0u);
    EXPECT_EQ(of("cvt.rn.satfinite.relu.e4m3x2.f32 %h3, %r0, %r1;", 0x3f800000, 0xc0000000, 'h'), 0x3800u);
    EXPECT_EQ(of("cvt.rn.satfinite.relu.e5m2x2.f16x2 %h3, %r0;", 0xbc003c00, 0, 'h'), 0x003cu);
    EXPECT_EQ(of("cvt.rn.relu.f16x2.e4m3x2 %r3, %h0;", 0xb838, 0, 'r'), 0x00003c00u);
    EXPECT_EQ(of("cvt.rn.f16x2.e5m2x2 %r3, %h0;", 0xfc7c, 0, 'r'), 0xfc007c00u);
    for (const char* const instruction :
         {"cvt.rn.e4m3x2.f32 %h3, %r0, %r1;", "cvt.rz.satfinite.e4m3x2.f32 %h3, %r0, %r1;",
          "cvt.rn.satfinite.e2m3x2.f32 %h3, %r0, %r1;", "cvt.rn.f32.e4m3x2 %r3, %h0;"}) {
        const Program program(kernel_of(instruction, 'r'));
        const std::string name = std::string(instruction).substr(0, std::string(instruction).find(' '));
        EXPECT_EQ(program.entries().at(0).refusal.what.substr(0, name.size() + 16), name + " is not modelled")
            << instruction;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
