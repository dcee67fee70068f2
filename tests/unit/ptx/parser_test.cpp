// SPDX-License-Identifier: Apache-2.0
// Reading PTX: what is understood, and what is refused by name and line.
#include "ptx_machine.hpp"

namespace isthmus::ptx::test {
namespace {

Refusal refusal_of(const std::string& text) {
    const Program program(text);
    if (program.refusal().refused()) return program.refusal();
    return program.entries().empty() ? Refusal{} : program.entries()[0].refusal;
}

TEST(PtxParser, DeclaresParametersSharedMemoryAndVariables) {
    const Program program(module_of(R"(
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .u32 counts[3];
.global .align 8 .u64 table[2] = {generic(text), work};
.global .align 1 .b8 text[4] = {104, 105};
.const .f32 one = 0f3F800000;
.func work() { ret; }
.visible .entry k(.param .u8 a, .param .align 8 .b8 s[12], .param .u32 n)
.maxntid 256, 1, 1
.minnctapersm 2
{
    .pragma "nounroll";
    .shared .align 8 .b8 own[10];
    .local .align 16 .b8 depot[20];
    ret;
})"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    EXPECT_EQ(program.target(), 120u);
    const Entry* const entry = program.entry("k");
    ASSERT_NE(entry, nullptr);
    ASSERT_EQ(entry->parameters.size(), 3u);
    EXPECT_EQ(entry->parameters[1].offset_bytes, 8u);
    EXPECT_EQ(entry->parameters[1].size_bytes, 12u);
    EXPECT_EQ(entry->parameters[2].offset_bytes, 20u);
    EXPECT_EQ(entry->parameter_bytes, 24u);
    EXPECT_EQ(entry->shared_bytes,
              32u);  // 12 of counts, 10 from 16 on, and dynamic shared memory begins at a multiple of 16
    ASSERT_EQ(program.variables().size(), 3u);
    EXPECT_EQ(program.variables()[1].size_bytes, 4u);
    EXPECT_TRUE(program.variables()[2].is_constant);
}

TEST(PtxParser, VariablesBeginWithTheirValues) {
    Program program(
        module_of(".global .align 8 .u64 place = generic(text)+2;\n.global .align 1 .b8 text[4] = {104, 105};\n"
                  ".global .f64 half = 0d3FE0000000000000;\n.global .align 2 .u16 nested[2][2] = {{1, 2}, {3}};"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    program.place({0x1000, 0x2000, 0x3000, 0x4000});
    std::uint64_t place = 0;
    std::memcpy(&place, program.content(0).data(), 8);
    EXPECT_EQ(place, 0x2002u);
    EXPECT_EQ(program.content(1), (std::vector<std::byte>{std::byte{104}, std::byte{105}}));
    double half = 0;
    std::memcpy(&half, program.content(2).data(), 8);
    EXPECT_EQ(half, 0.5);
    EXPECT_EQ(program.content(3).size(), 6u);
}

TEST(PtxParser, AMinusChangesTheSignOfAnInitialFloat) {
    Program program(
        module_of(".global .f32 a = -0f3F800000;\n.global .f64 b = -0d3FE0000000000000;\n"
                  ".global .f64 c = -2.5;\n.global .f32 d[2] = {-0f3F800000, 0f3F800000};"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    program.place({0x1000, 0x2000, 0x3000, 0x4000});
    const auto number = [&](std::size_t variable, std::size_t at, auto kind) {
        std::memcpy(&kind, program.content(variable).data() + at, sizeof kind);
        return kind;
    };
    EXPECT_EQ(number(0, 0, 0.0f), -1.0f);
    EXPECT_EQ(number(1, 0, 0.0), -0.5);
    EXPECT_EQ(number(2, 0, 0.0), -2.5);
    EXPECT_EQ(number(3, 0, 0.0f), -1.0f);
    EXPECT_EQ(number(3, 4, 0.0f), 1.0f);
    EXPECT_NE(refusal_of(module_of(".global .u64 x;\n.global .u64 p = -x;")).what.find("minus"), std::string::npos);
}

TEST(PtxParser, ADeclarationAndADefinitionAreOneVariable) {
    for (const char* const text :
         {".extern .global .u32 x;\n.global .u32 x = 7;", ".global .u32 x = 7;\n.extern .global .u32 x;"}) {
        const Program program(module_of(text));
        ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
        ASSERT_EQ(program.variables().size(), 1u);
        EXPECT_FALSE(program.variables()[0].is_extern);
        EXPECT_EQ(program.content(0).size(), 4u);
    }
    EXPECT_TRUE(refusal_of(module_of(".global .u32 x = 7;\n.global .u32 x = 8;")).refused());
}

// Rows are not filled up, so that a short one would move those behind it.
TEST(PtxParser, OnlyTheLastRowOfInitialValuesMayBeShort) {
    const auto refused = [](const char* values) {
        return refusal_of(module_of(std::string(".global .u32 x") + values + ";")).refused();
    };
    EXPECT_FALSE(refused("[2][2] = {{1, 2}, {3}}"));
    EXPECT_FALSE(refused("[2][2] = {1, 2, 3, 4}"));
    EXPECT_FALSE(refused("[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}}}"));
    EXPECT_FALSE(refused("[][2] = {{1, 2}, {3, 4}}"));
    EXPECT_TRUE(refused("[2][2] = {{1}, {2, 3}}"));
    EXPECT_TRUE(refused("[2][2] = {{}, {2, 3}}"));
    EXPECT_TRUE(refused("[2][2][2] = {{{1, 2}}, {{5, 6}, {7, 8}}}"));
    EXPECT_TRUE(refused("[2][2] = {{1, 2, 3}, {4}}"));
}

// A module cannot make the simulator keep any amount of memory.
TEST(PtxParser, WhatNeedsTooMuchMemoryIsRefusedByName) {
    const auto refusal = [](const std::string& parameters, const std::string& body) {
        return refusal_of(module_of(".visible .entry k(" + parameters + ") {" + body + " ret; }")).what;
    };
    EXPECT_EQ(refusal("", ".local .align 8 .b8 a[524288];"), "");
    EXPECT_NE(refusal("", ".local .align 8 .b8 a[524296];").find("512 KiB"), std::string::npos);
    EXPECT_EQ(refusal("", ".reg .b32 %r<65536>;"), "");
    EXPECT_NE(refusal("", ".reg .b32 %r<65537>;").find("registers"), std::string::npos);
    EXPECT_EQ(refusal(".param .align 8 .b8 a[32764]", ""), "");
    EXPECT_NE(refusal(".param .align 8 .b8 a[32764], .param .u8 b", "").find("32764"), std::string::npos);
    EXPECT_NE(refusal(".param .align 8192 .b8 a[8]", "").find("4096"), std::string::npos);
    // The frames of a call add up.
    const std::string called = ".func f() { .local .align 8 .b8 a[300000]; ret; }\n";
    const Refusal both =
        refusal_of(module_of(called + ".visible .entry k() { .local .align 8 .b8 a[300000]; call f; ret; }"));
    EXPECT_NE(both.what.find("512 KiB"), std::string::npos) << both.what;
}

// The name of the instruction, and its line.
TEST(PtxParser, WhatIsNotModelledIsRefusedByNameAndLine) {
    const auto refused = [](const std::string& instruction) {
        return refusal_of(
            module_of(".visible .entry k() {\n.reg .b32 %r<9>; .reg .b64 %d<4>; .reg .b16 %h<4>; .reg .f32 %f<9>; .reg "
                      ".pred %p;\n" +
                      instruction + "\nret;\n}"));
    };
    EXPECT_FALSE(refused("add.u32 %r0, %r1, %r2;").refused());
    for (const char* const instruction :
         {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1}, {%r0,%r1}, {%r4,%r5}, {%f4,%f5};",
          "tex.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%d0, {%f4,%f5,%f6,%f6}];", "wgmma.fence.sync.aligned;",
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%d0], [%r3];",
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%r4];",
          "mapa.shared::unheard.u64 %d0, %d1, %r0;", "shfl.down.b32 %r0, %r1, 1, 31;",
          "vadd2.s32.s32.s32 %r0, %r1, %r2, %r3;", "cvt.rn.satfinite.e2m3x2.f32 %h0, %f0, %f1;",
          "barrier.cluster.unheard;", "add.u32.unheard %r0, %r1, %r2;", "mov.u32 %r0, %unheard;",
          "mul.u32 %r0, %r1, %r2;", "cvt.s32.f32 %r0, %f0;", "add.u64 %d0, %r0, %d1;",
          "atom.global.add.v2.f32 {%f0, %f1}, [%d0], {%f2, %f3};", "sqrt.f32.unheard %f0, %f1;"}) {
        const Refusal refusal = refused(instruction);
        EXPECT_TRUE(refusal.refused()) << instruction;
        EXPECT_EQ(refusal.line, 6u) << instruction;
        const std::string opcode = std::string(instruction).substr(0, std::string(instruction).find('.'));
        EXPECT_EQ(refusal.what.substr(0, opcode.size()), opcode) << refusal.what;
    }
}

TEST(PtxParser, AnEntryIsRefusedForWhatItCalls) {
    const Program program(module_of(R"(
.func helper() { .reg .b32 %r<3>; wgmma.fence.sync.aligned; ret; }
.extern .func (.param .b64 r) unheard(.param .b64 n);
.visible .entry direct() { call helper; ret; }
.visible .entry unknown() { .param .b64 n; .param .b64 r; call (r), unheard, (n); ret; }
.visible .entry fine() { ret; }
)"));
    ASSERT_FALSE(program.refusal().refused());
    EXPECT_NE(program.entry("direct")->refusal.what.find("wgmma"), std::string::npos);
    EXPECT_NE(program.entry("unknown")->refusal.what.find("unheard"), std::string::npos);
    EXPECT_FALSE(program.entry("fine")->refusal.refused());
}

TEST(PtxParser, TextThatIsNoPtxIsRefusedAsAWhole) {
    EXPECT_TRUE(refusal_of("").refused());
    EXPECT_TRUE(refusal_of("garbage").refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k() { ret;")).refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k() { bra NOWHERE; }")).refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k() { .reg .b32 %r<2>; add.u32 %r0, %r1, 0f3; }")).refused());
    EXPECT_TRUE(refusal_of(module_of(".global .u32 x = {1, 2};")).refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k() {{{{ }")).refused());
    EXPECT_TRUE(refusal_of(".version 9.0\n.target sm_90\n.address_size 32\n").refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k() .unheard 2, 1, 1 { ret; }")).refused());
}

}  // namespace
}  // namespace isthmus::ptx::test
