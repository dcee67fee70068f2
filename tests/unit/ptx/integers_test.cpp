// SPDX-License-Identifier: Apache-2.0
// Integer instructions at their edges: overflow, shifts beyond the width, division by zero, the most negative number.
// The expected values follow the definitions of the PTX ISA.
#include "made_by_nvcc.hpp"

#include <algorithm>
#include <bit>

namespace isthmus::ptx::test {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

const Values edges = {0,
                      1,
                      2,
                      5,
                      31,
                      32,
                      33,
                      63,
                      64,
                      65,
                      255,
                      256,
                      0x7fff,
                      0x8000,
                      0xffff,
                      0x7fffffff,
                      0x80000000,
                      0xffffffff,
                      0x100000000,
                      0x7fffffffffffffff,
                      0x8000000000000000,
                      0xffffffffffffffff,
                      0x123456789abcdef0};
const Values few = {0,
                    1,
                    7,
                    31,
                    32,
                    40,
                    0x7fffffff,
                    0x80000000,
                    0xffffffff,
                    0x8000000000000000,
                    0xffffffffffffffff,
                    0x123456789abcdef0};

s32 S(u64 a) {
    return static_cast<s32>(a);
}
u32 U(u64 a) {
    return static_cast<u32>(a);
}

// As on an H100, which takes all bits of a position and a length for values of 64 bits, and 8 for those of 32.
TEST(PtxIntegers, FieldsOf64BitsBeyondPosition255) {
    const Values value = {0x8000000000001234};
    const auto of = [&](const char* text, char kind) { return evaluate(text, kind, value, {7}, {0})[0]; };
    EXPECT_EQ(of("bfe.u64 %d3, %d0, 256, 64;", 'd'), 0u);
    EXPECT_EQ(of("bfe.s64 %d3, %d0, 256, 64;", 'd'), ~u64{0});
    EXPECT_EQ(of("bfe.u64 %d3, %d0, 0, 256;", 'd'), 0x8000000000001234u);
    EXPECT_EQ(of("bfe.s64 %d3, %d0, 0, 0x80000000;", 'd'), 0x8000000000001234u);
    EXPECT_EQ(of("bfe.u64 %d3, %d0, 255, 1;", 'd'), 0u);
    EXPECT_EQ(of("bfi.b64 %d3, %d0, %d1, 256, 64;", 'd'), 7u);
    EXPECT_EQ(of("bfi.b64 %d3, %d0, %d1, 0, 256;", 'd'), 0x8000000000001234u);
    EXPECT_EQ(of("bfe.u32 %r3, %r0, 256, 288;", 'r'), 0x1234u);
}

TEST(PtxIntegers, SumsAndProductsWrap) {
    expect_all("add.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) { return u64{U(a + b)}; });
    expect_all("add.u16 %h3, %h0, %h1;", 'h', edges, 2, [](u64 a, u64 b, u64) { return (a + b) & 0xffff; });
    expect_all("sub.s64 %d3, %d0, %d1;", 'd', edges, 2, [](u64 a, u64 b, u64) { return a - b; });
    expect_all("mul.lo.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) { return u64{U(U(a) * u64{U(b)})}; });
    expect_all("mul.lo.u16 %h3, %h0, %h1;", 'h', edges, 2,
               [](u64 a, u64 b, u64) { return ((a & 0xffff) * (b & 0xffff)) & 0xffff; });
    expect_all("mul.hi.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(static_cast<u64>(s64{S(a)} * s64{S(b)}) >> 32)}; });
    expect_all("mul.hi.u32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) { return u64{U(a)} * U(b) >> 32; });
    // The upper half of 64 · 64 bits, from four partial products.
    const auto high = [](u64 a, u64 b, u64) {
        const u64 al = U(a), ah = a >> 32, bl = U(b), bh = b >> 32;
        const u64 middle = ah * bl + (al * bl >> 32);
        return ah * bh + (middle >> 32) + ((al * bh + U(middle)) >> 32);
    };
    expect_all("mul.hi.u64 %d3, %d0, %d1;", 'd', edges, 2, high);
    expect_all("mul.wide.s32 %d3, %r0, %r1;", 'd', edges, 2,
               [](u64 a, u64 b, u64) { return static_cast<u64>(s64{S(a)} * S(b)); });
    expect_all("mul.wide.u16 %r3, %h0, %h1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return (a & 0xffff) * (b & 0xffff); });
    expect_all("mad.wide.u32 %d3, %r0, %r1, %d2;", 'd', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{U(a)} * U(b) + c; });
    expect_all("mad.lo.s32 %r3, %r0, %r1, %r2;", 'r', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{U(u64{U(a)} * U(b) + c)}; });
    expect_all("sad.s32 %r3, %r0, %r1, %r2;", 'r', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{U(c + (S(a) < S(b) ? U(b) - U(a) : U(a) - U(b)))}; });
    expect_all("add.sat.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) {
        return u64{U(static_cast<u64>(std::clamp<s64>(s64{S(a)} + S(b), -0x80000000LL, 0x7fffffffLL)))};
    });
}

TEST(PtxIntegers, DivisionByZeroAndOfTheMostNegativeNumber) {
    expect_all("div.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(b) == 0 ? 0xffffffffu : U(a) / U(b)}; });
    expect_all("rem.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(b) == 0 ? U(a) : U(a) % U(b)}; });
    const auto quotient = [](u64 a, u64 b, u64) {
        if (S(b) == 0) return u64{0xffffffff};
        return u64{U(static_cast<u64>(s64{S(a)} / s64{S(b)}))};
    };
    expect_all("div.s32 %r3, %r0, %r1;", 'r', edges, 2, quotient);
    expect_all("rem.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) {
        return S(b) == 0 ? u64{U(a)} : u64{U(static_cast<u64>(s64{S(a)} % s64{S(b)}))};
    });
    expect_all("div.s64 %d3, %d0, %d1;", 'd', edges, 2, [](u64 a, u64 b, u64) {
        if (b == 0) return ~u64{0};
        return b == ~u64{0} ? u64{0} - a : static_cast<u64>(static_cast<s64>(a) / static_cast<s64>(b));
    });
    expect_all("abs.s32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64{S(a) < 0 ? 0 - U(a) : U(a)}; });
    expect_all("neg.s32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64{0 - U(a)}; });
    expect_all("min.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) { return u64{U(S(a) < S(b) ? a : b)}; });
    expect_all("max.u64 %d3, %d0, %d1;", 'd', edges, 2, [](u64 a, u64 b, u64) { return std::max(a, b); });
    expect_all("max.s16 %h3, %h0, %h1;", 'h', edges, 2, [](u64 a, u64 b, u64) {
        return u64{static_cast<u16>(std::max(static_cast<s16>(a), static_cast<s16>(b)))};
    });
}

TEST(PtxIntegers, ShiftsBeyondTheWidth) {
    expect_all("shl.b32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return U(b) > 31 ? 0 : u64{U(a << U(b))}; });
    expect_all("shr.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return U(b) > 31 ? 0 : u64{U(a)} >> U(b); });
    expect_all("shr.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(static_cast<u64>(s64{S(a)} >> std::min(U(b), 31u)))}; });
    expect_all("shl.b64 %d3, %d0, %r1;", 'd', edges, 2, [](u64 a, u64 b, u64) { return U(b) > 63 ? 0 : a << U(b); });
    expect_all("shr.s64 %d3, %d0, %r1;", 'd', edges, 2,
               [](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<s64>(a) >> std::min(U(b), 63u)); });
    expect_all("shr.s16 %h3, %h0, %r1;", 'h', edges, 2,
               [](u64 a, u64 b, u64) { return u64{static_cast<u16>(static_cast<s16>(a) >> std::min(U(b), 15u))}; });
    expect_all("shf.l.wrap.b32 %r3, %r0, %r1, %r2;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        const u32 n = c & 31;
        return u64{n == 0 ? U(b) : (U(b) << n) | (U(a) >> (32 - n))};
    });
    expect_all("shf.r.clamp.b32 %r3, %r0, %r1, %r2;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        const u32 n = std::min(U(c), 32u);
        return u64{n == 0 ? U(a) : n == 32 ? U(b) : (U(b) << (32 - n)) | (U(a) >> n)};
    });
}

TEST(PtxIntegers, BitsAreCountedFoundAndMoved) {
    expect_all("popc.b32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64(std::popcount(U(a))); });
    expect_all("popc.b64 %r3, %d0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64(std::popcount(a)); });
    expect_all("clz.b32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64(std::countl_zero(U(a))); });
    expect_all("clz.b64 %r3, %d0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64(std::countl_zero(a)); });
    expect_all("brev.b32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) {
        u64 out = 0;
        for (int bit = 0; bit < 32; ++bit) out |= ((a >> bit) & 1) << (31 - bit);
        return out;
    });
    expect_all("bfind.u32 %r3, %r0;", 'r', edges, 1,
               [](u64 a, u64, u64) { return U(a) == 0 ? u64{0xffffffff} : u64(31 - std::countl_zero(U(a))); });
    expect_all("bfind.s32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) {
        const u32 v = S(a) < 0 ? ~U(a) : U(a);
        return v == 0 ? u64{0xffffffff} : u64(31 - std::countl_zero(v));
    });
    expect_all("bfind.shiftamt.u32 %r3, %r0;", 'r', edges, 1,
               [](u64 a, u64, u64) { return U(a) == 0 ? u64{0xffffffff} : u64(std::countl_zero(U(a))); });
    // The loop of the PTX ISA.
    const auto extract = [](u64 a, u64 b, u64 c, bool is_signed) {
        const u32 pos = b & 0xff, len = c & 0xff;
        const u32 at = std::min(pos + len - 1, 31u);
        const bool sign = is_signed && len != 0 && ((U(a) >> at) & 1) != 0;
        u64 d = 0;
        for (u32 i = 0; i < 32; ++i) {
            const bool bit = i < len && pos + i < 32 ? ((U(a) >> (pos + i)) & 1) != 0 : sign;
            d |= u64{bit} << i;
        }
        return d;
    };
    expect_all("bfe.u32 %r3, %r0, %r1, %r2;", 'r', few, 3,
               [&](u64 a, u64 b, u64 c) { return extract(a, b, c, false); });
    expect_all("bfe.s32 %r3, %r0, %r1, %r2;", 'r', few, 3, [&](u64 a, u64 b, u64 c) { return extract(a, b, c, true); });
    expect_all("bfi.b32 %r3, %r0, %r1, %r2, 9;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        u64 d = U(b);
        for (u32 i = 0; i < 9 && (c & 0xff) + i < 32; ++i) {
            const u32 at = static_cast<u32>(c & 0xff) + i;
            d = (d & ~(u64{1} << at)) | (((a >> i) & 1) << at);
        }
        return d;
    });
    expect_all("lop3.b32 %r3, %r0, %r1, %r2, 0x96;", 'r', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{U(a ^ b ^ c)}; });
    expect_all("lop3.b32 %r3, %r0, %r1, %r2, 0xca;", 'r', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{U((a & b) | (~a & c))}; });
    expect_all("prmt.b32 %r3, %r0, %r1, %r2;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        u64 out = 0;
        for (int at = 0; at < 4; ++at) {
            const u32 pick = (U(c) >> (4 * at)) & 7;
            u64 byte = ((pick < 4 ? U(a) >> (8 * pick) : U(b) >> (8 * (pick - 4)))) & 0xff;
            if (((U(c) >> (4 * at)) & 8) != 0) byte = byte > 127 ? 255 : 0;
            out |= byte << (8 * at);
        }
        return out;
    });
    expect_all("prmt.b32.b4e %r3, %r0, %r1, 1;", 'r', few, 2, [](u64 a, u64 b, u64) {
        const u64 both = (b << 32) | U(a);  // bytes 1, 0, 7, 6
        return ((both >> 8) & 0xff) | ((both & 0xff) << 8) | ((both >> 56) << 16) | (((both >> 48) & 0xff) << 24);
    });
    expect_all("dp4a.s32.u32 %r3, %r0, %r1, %r2;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        s64 sum = S(c);
        for (int at = 0; at < 32; at += 8)
            sum += s64{static_cast<std::int8_t>(a >> at)} * static_cast<std::uint8_t>(b >> at);
        return u64{U(static_cast<u64>(sum))};
    });
    expect_all("cnot.b32 %r3, %r0;", 'r', edges, 1, [](u64 a, u64, u64) { return u64{U(a) == 0}; });
    expect_all("not.b64 %d3, %d0;", 'd', edges, 1, [](u64 a, u64, u64) { return ~a; });
}

TEST(PtxIntegers, CarriesGoFromWordToWord) {
    expect_all(
        "{ .reg .b32 a, b, c, d; mov.b64 {a, b}, %d0; mov.b64 {c, d}, %d1; add.cc.u32 a, a, c; addc.u32 b, b, d; "
        "mov.b64 %d3, {a, b}; }",
        'd', edges, 2, [](u64 a, u64 b, u64) { return a + b; });
    expect_all(
        "{ .reg .b32 a, b, c, d; mov.b64 {a, b}, %d0; mov.b64 {c, d}, %d1; sub.cc.u32 a, a, c; subc.u32 b, b, d; "
        "mov.b64 %d3, {a, b}; }",
        'd', edges, 2, [](u64 a, u64 b, u64) { return a - b; });
    expect_all("{ .reg .b32 l, h; mad.lo.cc.u32 l, %r0, %r1, %r2; madc.hi.u32 h, %r0, %r1, 0; mov.b64 %d3, {l, h}; }",
               'd', few, 3, [](u64 a, u64 b, u64 c) { return u64{U(a)} * U(b) + U(c); });
}

// CC.CF after a difference: 1 if nothing was borrowed. The code that nvcc makes of a division of 128 bits reads it so.
TEST(PtxIntegers, ADifferenceLeavesACarryIfItBorrowsNothing) {  // keeps W8
    expect_all("{ .reg .b32 a, z; sub.cc.u32 a, %r0, %r1; addc.u32 %r3, 0, 0; }", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(a) >= U(b)}; });
    expect_all("{ .reg .b64 a; sub.cc.u64 a, %d0, %d1; addc.u64 %d3, 0, 0; }", 'd', edges, 2,
               [](u64 a, u64 b, u64) { return u64{a >= b}; });
    expect_all("{ .reg .b32 a; add.cc.u32 a, %r0, %r1; subc.u32 %r3, 0, 0; }", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(a + b) < U(a) ? 0u : ~0u}; });
    expect_all("{ .reg .b32 a; sub.cc.u32 a, %r0, %r1; subc.cc.u32 a, 5, 5; addc.u32 %r3, 0, 0; }", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{U(a) >= U(b)}; });
}

// The results of an H100 (580).
TEST(PtxIntegers, TheFlagIsACarryForAllThatWriteIt) {  // keeps W8
    const auto of = [](const std::string& first, u64 a, u64 b, u64 c, const std::string& then) {
        return evaluate(first + " " + then, 'r', {a}, {b}, {c})[0];
    };
    const std::string carry = "addc.u32 %r3, 0, 0;", less = "subc.u32 %r3, 10, 0;";
    const std::string difference = "sub.cc.u32 %r2, %r0, %r1;", sum = "add.cc.u32 %r2, %r0, %r1;",
                      product = "mad.lo.cc.u32 %r2, %r0, %r1, %r2;";
    EXPECT_EQ(of(difference, 5, 3, 0, carry), 1u);
    EXPECT_EQ(of(difference, 3, 5, 0, carry), 0u);
    EXPECT_EQ(of(difference, 0, 0, 0, carry), 1u);
    EXPECT_EQ(of(difference, 5, 3, 0, less), 10u);
    EXPECT_EQ(of(difference, 3, 5, 0, less), 9u);
    EXPECT_EQ(of(sum, 0xffffffff, 1, 0, carry), 1u);
    EXPECT_EQ(of(sum, 1, 1, 0, carry), 0u);
    EXPECT_EQ(of(sum, 1, 1, 0, less), 9u);
    EXPECT_EQ(of(sum, 0xffffffff, 1, 0, less), 10u);
    EXPECT_EQ(of(product, 2, 3, 4, less), 9u);
    EXPECT_EQ(of(product, 2, 0x7fffffff, 2, less), 10u);
}

TEST(PtxIntegers, NumbersOf128BitsAreDivided) {  // keeps W8
    __extension__ using Wide = unsigned __int128;
    constexpr std::size_t count = 256;
    Buffers buffers;
    std::vector<u64> of(4 * count), out(4 * count);
    u64 seed = 1;
    for (std::size_t at = 0; at < of.size(); ++at) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        of[at] = seed >> (seed >> 58);
        if (at % 4 == 2 && at % 8 == 2) of[at] = 0;  // divisors of 64 bits
        if (at % 4 == 3 && of[at] == 0 && of[at - 1] == 0) of[at] = 1;
    }
    const u64 from = buffers.add(of), to = buffers.add(out);
    Loaded loaded(made_by_nvcc("division"), buffers);
    const Fault fault = loaded.run("divide", blocks_of(2, 128), from, to);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (std::size_t at = 0; at < of.size(); at += 4) {
        const Wide a = Wide{of[at]} << 64 | of[at + 1], b = Wide{of[at + 2]} << 64 | of[at + 3];
        EXPECT_EQ(out[at], static_cast<u64>(a / b >> 64)) << at;
        EXPECT_EQ(out[at + 1], static_cast<u64>(a / b)) << at;
        EXPECT_EQ(out[at + 2], static_cast<u64>(a % b >> 64)) << at;
        EXPECT_EQ(out[at + 3], static_cast<u64>(a % b)) << at;
    }
}

// What nvcc makes of the SIMD and DPX functions of CUDA, such as __vmaxs2, __viaddmax_s16x2_relu and __vsadu4.
TEST(PtxIntegers, PartsOfAWordAreTakenByThemselves) {  // keeps W8
    const auto in_parts = [](unsigned width, auto each) {
        return [width, each](u64 a, u64 b, u64) {
            u64 out = 0;
            for (unsigned at = 0; at < 32; at += width) {
                const u64 mask = (u64{1} << width) - 1;
                out |= (static_cast<u64>(each((a >> at) & mask, (b >> at) & mask)) & mask) << at;
            }
            return out;
        };
    };
    const auto s = [](u64 part) { return s32{static_cast<s16>(part)}; };
    expect_all("add.u16x2 %r3, %r0, %r1;", 'r', edges, 2, in_parts(16, [](u64 a, u64 b) { return a + b; }));
    expect_all("add.s16x2 %r3, %r0, %r1;", 'r', edges, 2, in_parts(16, [](u64 a, u64 b) { return a + b; }));
    expect_all("max.u16x2 %r3, %r0, %r1;", 'r', edges, 2, in_parts(16, [](u64 a, u64 b) { return std::max(a, b); }));
    expect_all("min.u16x2 %r3, %r0, %r1;", 'r', edges, 2, in_parts(16, [](u64 a, u64 b) { return std::min(a, b); }));
    expect_all("max.s16x2 %r3, %r0, %r1;", 'r', edges, 2,
               in_parts(16, [s](u64 a, u64 b) { return std::max(s(a), s(b)); }));
    expect_all("min.s16x2 %r3, %r0, %r1;", 'r', edges, 2,
               in_parts(16, [s](u64 a, u64 b) { return std::min(s(a), s(b)); }));
    expect_all("max.s16x2.relu %r3, %r0, %r1;", 'r', edges, 2, in_parts(16, [s](u64 a, u64 b) {
                   return std::max({s(a), s(b), 0});
               }));
    expect_all("min.s16x2.relu %r3, %r0, %r1;", 'r', edges, 2,
               in_parts(16, [s](u64 a, u64 b) { return std::max(std::min(s(a), s(b)), 0); }));
    expect_all("max.relu.s32 %r3, %r0, %r1;", 'r', edges, 2, [](u64 a, u64 b, u64) {
        return u64{static_cast<u32>(std::max({S(a), S(b), 0}))};
    });
    expect_all("min.s32.relu %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{static_cast<u32>(std::max(std::min(S(a), S(b)), 0))}; });
    expect_all("vabsdiff4.u32.u32.u32 %r3, %r0, %r1, 0;", 'r', edges, 2,
               in_parts(8, [](u64 a, u64 b) { return a > b ? a - b : b - a; }));
    expect_all("vabsdiff2.s32.s32.s32 %r3, %r0, %r1, 0;", 'r', edges, 2,
               in_parts(16, [s](u64 a, u64 b) { return std::abs(s(a) - s(b)); }));
    const auto sum = [](unsigned width) {
        return [width](u64 a, u64 b, u64 c) {
            u32 out = U(c);
            for (unsigned at = 0; at < 32; at += width) {
                const s32 mask = (1 << width) - 1, x = static_cast<s32>(U(a) >> at) & mask,
                          y = static_cast<s32>(U(b) >> at) & mask;
                out += static_cast<u32>(std::abs(x - y));
            }
            return u64{out};
        };
    };
    expect_all("vabsdiff4.u32.u32.u32.add %r3, %r0, %r1, %r2;", 'r', few, 3, sum(8));
    expect_all("vabsdiff2.u32.u32.u32.add %r3, %r0, %r1, %r2;", 'r', few, 3, sum(16));
    for (const char* const other : {"vabsdiff4.u32.u32.u32.sat %r3, %r0, %r1, 0;", "add.u16x2.relu %r3, %r0, %r1;",
                                    "max.u16x2.relu %r3, %r0, %r1;", "max.relu.u32 %r3, %r0, %r1;"}) {
        EXPECT_TRUE(Program(kernel_of(other, 'r')).entry("k")->refusal.refused()) << other;
    }
}

TEST(PtxIntegers, ComparisonsAndSelections) {
    expect_all("setp.lt.s32 %p, %r0, %r1;", 'p', edges, 2, [](u64 a, u64 b, u64) { return u64{S(a) < S(b)}; });
    expect_all("setp.lo.u32 %p, %r0, %r1;", 'p', edges, 2, [](u64 a, u64 b, u64) { return u64{U(a) < U(b)}; });
    expect_all("setp.ge.u64 %p, %d0, %d1;", 'p', edges, 2, [](u64 a, u64 b, u64) { return u64{a >= b}; });
    expect_all("setp.eq.s32 %q, %r2, 7; setp.gt.and.s32 %p|%s, %r0, %r1, !%q;", 'p', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{S(a) > S(b) && S(c) != 7}; });
    expect_all("setp.eq.s32 %q, %r2, 7; setp.gt.xor.s32 %s|%p, %r0, %r1, %q;", 'p', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{!(S(a) > S(b))} ^ u64 { S(c) == 7 }; });
    expect_all("setp.ne.s32 %q, %r0, %r1; selp.b32 %r3, %r0, %r2, %q;", 'r', few, 3,
               [](u64 a, u64 b, u64 c) { return u64{S(a) != S(b) ? U(a) : U(c)}; });
    expect_all("set.lt.u32.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{S(a) < S(b) ? 0xffffffffu : 0}; });
    expect_all("set.lt.f32.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return u64{S(a) < S(b) ? 0x3f800000u : 0}; });
    expect_all("setp.lt.s32 %q, %r0, 5; setp.gt.s32 %s, %r1, 5; xor.pred %p, %q, %s; not.pred %p, %p;", 'p', edges, 2,
               [](u64 a, u64 b, u64) { return u64{(S(a) < 5) == (S(b) > 5)}; });
}

TEST(PtxIntegers, ProductsOf24Bits) {
    const auto low24 = [](u64 a) { return s64{static_cast<s32>(U(a) << 8) >> 8}; };
    expect_all("mul24.lo.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return ((a & 0xffffff) * (b & 0xffffff)) & 0xffffffff; });
    expect_all("mul24.hi.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [](u64 a, u64 b, u64) { return (((a & 0xffffff) * (b & 0xffffff)) >> 16) & 0xffffffff; });
    expect_all("mul24.hi.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [&](u64 a, u64 b, u64) { return u64{U(static_cast<u64>((low24(a) * low24(b)) >> 16))}; });
    expect_all("mad24.lo.s32 %r3, %r0, %r1, %r2;", 'r', few, 3,
               [&](u64 a, u64 b, u64 c) { return u64{U(static_cast<u64>(low24(a) * low24(b)) + c)}; });
    expect_all("mad.hi.sat.s32 %r3, %r0, %r1, %r2;", 'r', few, 3, [](u64 a, u64 b, u64 c) {
        const s64 sum = ((s64{S(a)} * s64{S(b)}) >> 32) + S(c);
        return u64{U(static_cast<u64>(std::clamp<s64>(sum, -0x80000000ll, 0x7fffffffll)))};
    });
}

TEST(PtxIntegers, TheNthSetBitIsFoundUpwardsAndDownwards) {
    const auto nth = [](u64 mask, u64 base, u64 offset) -> u64 {
        std::vector<u64> set;  // from the base on, in the direction
        const std::int64_t wanted = S(offset);
        if (base > 31) return 0xffffffffu;
        for (std::int64_t bit = static_cast<std::int64_t>(base); bit >= 0 && bit < 32; bit += wanted < 0 ? -1 : 1) {
            if (((mask >> bit) & 1) != 0) set.push_back(static_cast<u64>(bit));
        }
        if (wanted == 0) return ((mask >> base) & 1) != 0 ? base : 0xffffffffu;
        const auto at = static_cast<std::size_t>(std::abs(wanted)) - 1;
        return at < set.size() ? set[at] : 0xffffffffu;
    };
    const std::vector<u64> values = {0,  1,          2,          5,          17,         31,
                                     32, 0xf0f0f0f0, 0x80000001, 0xffffffff, 0xfffffffe, 0x80000000};
    expect_all("fns.b32 %r3, %r0, %r1, %r2;", 'r', values, 3, [&](u64 a, u64 b, u64 c) { return nth(a, U(b), c); });
}

// Bit by bit.
TEST(PtxIntegers, MasksAndNumbersOfSomeBits) {
    const auto mask = [](u64 from, u64 count) {
        u64 out = 0;
        for (u64 bit = from; bit < 32 && bit < from + count; ++bit) out |= u64{1} << bit;
        return out;
    };
    expect_all("bmsk.clamp.b32 %r3, %r0, %r1;", 'r', edges, 2, [&](u64 a, u64 b, u64) { return mask(U(a), U(b)); });
    expect_all("bmsk.wrap.b32 %r3, %r0, %r1;", 'r', edges, 2, [&](u64 a, u64 b, u64) { return mask(a & 31, b & 31); });
    const auto extended = [](u64 a, u64 count, bool is_signed) {
        u64 out = 0;
        for (u64 bit = 0; bit < 32 && count > 0; ++bit) {
            const bool one = bit < count ? ((a >> bit) & 1) != 0 : is_signed && ((a >> (count - 1)) & 1) != 0;
            out |= u64{one} << bit;
        }
        return out;
    };
    expect_all("szext.clamp.s32 %r3, %r0, %r1;", 'r', edges, 2,
               [&](u64 a, u64 b, u64) { return extended(a, std::min<u64>(U(b), 32), true); });
    expect_all("szext.wrap.u32 %r3, %r0, %r1;", 'r', edges, 2,
               [&](u64 a, u64 b, u64) { return extended(a, b & 31, false); });
    expect_all("slct.u64.s32 %d3, %d0, %d1, %r2;", 'd', few, 3, [](u64 a, u64 b, u64 c) { return S(c) >= 0 ? a : b; });
}

TEST(PtxIntegers, PredicatesMayBeConstantsAndNegated) {  // keeps W8
    const std::string of_a = "setp.ne.u32 %p, %r0, 0; ", of_b = "setp.ne.u32 %q, %r1, 0; ";
    const struct {
        std::string instructions;
        bool (*expected)(bool a, bool b);
    } rows[] = {{"and.pred %p, %p, !%q;", [](bool a, bool b) { return a && !b; }},
                {"or.pred %p, !%p, !%q;", [](bool a, bool b) { return !a || !b; }},
                {"xor.pred %p, %p, !%q;", [](bool a, bool b) { return a != !b; }},
                {"xor.pred %p, %p, %q;", [](bool a, bool b) { return a != b; }},
                {"setp.eq.or.u32 %p, %r0, %r1, 1;", [](bool, bool) { return true; }},
                {"setp.eq.and.u32 %p, %r0, %r1, 1;", [](bool a, bool b) { return a == b; }},
                {"setp.eq.xor.u32 %p, %r0, %r1, 1;", [](bool a, bool b) { return a != b; }},
                {"setp.eq.and.u32 %p, %r0, %r1, 0;", [](bool, bool) { return false; }},
                {"setp.eq.and.u32 %p, %r0, %r1, !%q;", [](bool a, bool b) { return a == b && !b; }},
                {"selp.u32 %r3, %r0, %r1, 1; setp.ne.u32 %p, %r3, 0;", [](bool a, bool) { return a; }},
                {"selp.u32 %r3, %r0, %r1, 0; setp.ne.u32 %p, %r3, 0;", [](bool, bool b) { return b; }},
                {"selp.u32 %r3, %r0, %r1, !%p; setp.ne.u32 %p, %r3, 0;", [](bool a, bool b) { return a ? b : a; }},
                // p = (a & b) != 0, combined with q; and the same without its number.
                {"lop3.or.b32 %r3|%p, %r0, %r1, 0, 0xc0, %q;", [](bool, bool b) { return b; }},
                {"lop3.and.b32 _|%p, %r0, %r1, 0, 0xfc, !%q;", [](bool a, bool b) { return a && !b; }},
                {"lop3.and.b32 %r3|%p, %r0, %r1, 0, 0xc0, 1;", [](bool a, bool b) { return a && b; }}};
    for (const auto& row : rows) {
        for (const bool a : {false, true}) {
            for (const bool b : {false, true}) {
                const Values found = evaluate(of_a + of_b + row.instructions, 'p', {a}, {b}, {0});
                EXPECT_EQ(found[0] != 0, row.expected(a, b)) << row.instructions << " of " << a << ", " << b;
            }
        }
    }
    EXPECT_EQ(
        evaluate("setp.ne.u32 %q, %r1, 0; lop3.or.b32 %r3|%p, %r0, %r1, 0, 0xc0, %q;", 'r', {0xf0}, {0x3f}, {0})[0],
        0x30u);
    for (const char* const wrong : {"lop3.or.b32 %r3, %r0, %r1, 0, 0xc0, %q;", "lop3.b32 %r3|%p, %r0, %r1, 0, 0xc0;"})
        EXPECT_TRUE(Program(kernel_of(wrong, 'r')).entries()[0].refusal.refused()) << wrong;
}

}  // namespace
}  // namespace isthmus::ptx::test
