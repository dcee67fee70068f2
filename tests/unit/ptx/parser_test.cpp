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

// Of an entry that names the variable x, beside one that does not and is not refused.
Refusal refusal_of_x(const std::string& declaration) {
    const Program program(module_of(declaration + "\n.visible .entry uses() { .reg .b64 %d; mov.u64 %d, x; ret; }\n"
                                                  ".visible .entry fine() { ret; }"));
    EXPECT_FALSE(program.refusal().refused()) << declaration << ": " << program.refusal().what;
    const Entry *const uses = program.entry("uses"), *const fine = program.entry("fine");
    if (uses == nullptr || fine == nullptr) return {"no entry", 0};
    EXPECT_FALSE(fine->refusal.refused()) << declaration << ": " << fine->refusal.what;
    return uses->refusal;
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
    // 12 of counts, 10 from 16 on, and dynamic shared memory begins at a multiple of 16
    EXPECT_EQ(entry->shared_bytes, 1024u + 32u);
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
    EXPECT_NE(refusal_of_x(".global .u64 p;\n.global .u64 x = -p;").what.find("minus"), std::string::npos);
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
        return refusal_of_x(std::string(".global .u32 x") + values + ";").refused();
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
          "tex.2dms.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%d0, {%r4,%r5,%r6,%r6}];", "wgmma.fence.sync.aligned;",
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

// What one construct takes away are the entries that have or name it.
TEST(PtxParser, OnlyTheEntriesWithWhatIsNotUnderstoodAreRefused) {  // keeps W8
    for (const char* const declaration :
         {".global .texref x;", ".global .samplerref x;", ".global .surfref x;", ".global .unheard .u32 x = {1, {2}};",
          ".global .u32 x[2] = {1, 5/0};", ".func (.param .unheard r) x(.param .u32 a) { ret; }",
          ".global .u16 x[2] = {0xffff(x), 1};"}) {
        const Refusal refusal = refusal_of_x(declaration);
        EXPECT_NE(refusal.what.find("x, which is refused"), std::string::npos) << declaration << ": " << refusal.what;
    }
    const Program program(module_of(R"(
.unheard 1, 2;
.visible .entry header(.param .unheard a) { ret; }
.visible .entry body() {
    .reg .b32 %r;
    { mov.b32 %r, {1, }; }
    ret;
}
.visible .entry unheard_word() { .unheard x, {1, 2}; ret; }
.visible .entry fine() { ret; }
)"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    ASSERT_EQ(program.entries().size(), 4u);
    EXPECT_NE(program.entry("header")->refusal.what.find(".unheard"), std::string::npos);
    EXPECT_EQ(program.entry("header")->refusal.line, 6u);
    EXPECT_EQ(program.entry("body")->refusal.line, 9u);
    EXPECT_NE(program.entry("unheard_word")->refusal.what.find(".unheard"), std::string::npos);
    EXPECT_FALSE(program.entry("fine")->refusal.refused());
    // Where no end of the statement is found, nothing is known of the rest.
    EXPECT_TRUE(refusal_of(module_of(".unheard 1\n.visible .entry k() { ret; }")).refused());
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k(.param .unheard a)")).refused());
}

// Values as ptxas 13.0 gives them.
TEST(PtxParser, ConstantExpressions) {  // keeps W8
    const std::pair<const char*, std::int64_t> rows[] = {{"(3+4)*2", 14},
                                                         {"1<<4", 16},
                                                         {"0xf0&0xcc|0x2a", 0xea},
                                                         {"~5", -6},
                                                         {"-7/2", -3},
                                                         {"-7 % 3", 0},
                                                         {"7 % -3", 7},
                                                         {"-1 >> 1", -1},
                                                         {"0xffffffffffffffff >> 63", 1},
                                                         {"(~0) >> 63", 1},
                                                         {"(-1 | 0) >> 63", -1},
                                                         {"0xffffffffffffffff / 3", 0x5555555555555555},
                                                         {"!5", 0},
                                                         {"3 < 4", 1},
                                                         {"-1 < 0U", 0},
                                                         {"-8/2U", 0x7ffffffffffffffc},
                                                         {"5 && 0", 0},
                                                         {"0||2", 1},
                                                         {"1 ? 2 : 3", 2},
                                                         {"1+0xff&3", 0},
                                                         {"6&3==2", 0},
                                                         {"2 != 3 ^ 3", 2},
                                                         {"WARP_SZ*2", 64},
                                                         {"(.s64)-1 < 0", 1},
                                                         {"2+3*4-1", 13}};
    for (const auto& [text, wanted] : rows) {
        Program program(module_of(".global .s64 g = " + std::string(text) + ";"));
        ASSERT_FALSE(program.refusal().refused()) << text;
        ASSERT_EQ(program.content(0).size(), 8u) << text;
        std::int64_t found = 0;
        std::memcpy(&found, program.content(0).data(), 8);
        EXPECT_EQ(found, wanted) << text;
    }
    const auto float_of = [](const std::string& text) {
        Program program(module_of(".global .f64 g = " + text + ";"));
        double found = 0;
        if (program.content(0).size() == 8) std::memcpy(&found, program.content(0).data(), 8);
        return found;
    };
    EXPECT_EQ(float_of("1.5+2."), 3.5);
    EXPECT_EQ(float_of("-(2.*3.0)"), -6.0);
    for (const char* const refused : {"5/0", "1 %", "1.0+1", "0f3F800000*2.0", "~1.0", "1 ? 2", "3"}) {
        EXPECT_TRUE(refusal_of_x(".global .f64 x = " + std::string(refused) + ";").refused()) << refused;
    }
    // In operands and addresses.
    EXPECT_EQ(evaluate("mov.u32 %r3, (3+4)*2;", 'r', {0}, {0}, {0})[0], 14u);
    EXPECT_EQ(evaluate("add.u32 %r3, %r0, 1<<4|3;", 'r', {1}, {0}, {0})[0], 20u);
    EXPECT_EQ(evaluate("{ .local .align 8 .b8 m[16]; st.local.u64 [m], 0x700000009; .reg .b64 %l; mov.u64 %l, m; "
                       "ld.local.u32 %r3, [%l+ -4+8]; ld.local.u32 %r2, [%l+4*0]; add.u32 %r3, %r3, %r2; }",
                       'r', {0}, {0}, {0})[0],
              16u);
}

TEST(PtxParser, BytesOfAddressesAndRangesOfVariables) {  // keeps W8
    Program program(
        module_of(".global .u8 x;\n.global .u8 bytes[3] = {0xff(x), 0xff00(generic(x)+1), 7};\n"
                  ".global .u32 a<3>;\n.global .u32 one = 5, two[2] = {6, 7};\n.global .u64 p = a2;"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    ASSERT_EQ(program.variables().size(), 8u);
    program.place({0x12345, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(program.content(1), (std::vector<std::byte>{std::byte{0x45}, std::byte{0x23}, std::byte{7}}));
    EXPECT_EQ(program.variables()[4].name, "a2");
    EXPECT_EQ(program.content(5).size(), 4u);
    EXPECT_EQ(program.content(6).size(), 8u);
    EXPECT_EQ(program.content(7)[0], std::byte{5});
    EXPECT_TRUE(refusal_of_x(".global .u32 x<2>[3];").refused());
}

TEST(PtxParser, ManagedVariablesSayWhatTheyAre) {  // keeps W8
    const Program program(module_of(".global .attribute(.managed) .align 4 .u32 m = 7;\n.global .u32 g;"));
    ASSERT_FALSE(program.refusal().refused()) << program.refusal().what;
    EXPECT_TRUE(program.variables()[0].is_managed);
    EXPECT_FALSE(program.variables()[1].is_managed);
    EXPECT_TRUE(refusal_of_x(".const .attribute(.managed) .align 4 .u32 x = 7;").refused());
}

TEST(PtxParser, VectorsOfRegisters) {  // keeps W8
    EXPECT_EQ(evaluate(".reg .v2 .b32 v; .reg .v4 .u16 w; .local .align 8 .b8 m[8]; mov.u32 v.x, %r0; "
                       "mov.u32 v.y, %r1; st.local.v2.b32 [m], v; mov.b64 %d3, v; ld.local.v4.u16 w, [m]; "
                       "cvt.u32.u16 %r2, w.z; cvt.u64.u32 %d2, %r2; add.u64 %d3, %d3, %d2; cvt.u64.u16 %d2, w.r; "
                       "add.u64 %d3, %d3, %d2;",
                       'd', {0x10005}, {0x20007}, {0})[0],
              0x2000700010005u + 7 + 5);
    const auto refusal = [](const std::string& body) {
        return refusal_of(module_of(".visible .entry k() { .reg .b32 %r; .reg .v2 .b32 v; " + body + " ret; }"));
    };
    EXPECT_FALSE(refusal("mov.u32 v.y, 1;").refused());
    EXPECT_TRUE(refusal("mov.u32 v.z, 1;").refused());
    EXPECT_TRUE(refusal("{ .reg .b32 v; }").refused());
    EXPECT_TRUE(refusal("add.u32 %r, v, 1;").refused());
}

// The parameters of a function, and what a call passes, are variables of .param or registers.
TEST(PtxParser, CallsPassRegistersAndNumbers) {  // keeps W8
    Buffers buffers;
    std::vector<std::uint64_t> out(8);
    const std::uint64_t place = buffers.add(out);
    Loaded loaded(module_of(R"(
.func (.reg .u32 rv) registers(.reg .u32 a, .reg .f64 b) {
    .reg .u32 t; .reg .pred p;
    cvt.rzi.u32.f64 t, b; add.u32 rv, a, t; setp.gt.u32 p, a, 100; @p ret; add.u32 rv, rv, 1000;
}
.func (.param .b32 r) variables(.param .u32 a, .param .u16 b) {
    .reg .b32 %r<3>; .reg .b16 %h;
    ld.param.u32 %r0, [a]; ld.param.u16 %h, [b]; cvt.u32.u16 %r1, %h; add.u32 %r0, %r0, %r1; st.param.b32 [r], %r0;
}
.visible .func second(.param .u32 a, .param .u16 b);
.alias second, nothing;
.func nothing(.param .u32 a, .param .u16 b) { ret; }
.visible .entry k(.param .u64 o) {
    .reg .b64 %o; .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h; .reg .u32 t;
    .param .b32 q; .param .b64 g;
    ld.param.u64 %o, [o]; mov.u32 t, %tid.x; mov.u32 %r1, 7; mov.u16 %h, 3;
    call (%r2), registers, (%r1, 2.5); cvt.u64.u32 %d1, %r2; st.global.u64 [%o], %d1;
    call (%r2), registers, (101, 0d4000000000000000); cvt.u64.u32 %d1, %r2; st.global.u64 [%o+8], %d1;
    call (%r2), variables, (9+1, %h); cvt.u64.u32 %d1, %r2; st.global.u64 [%o+16], %d1;
    mov.u64 %d2, variables; prototype: .callprototype (.param .b32 _) _ (.param .u32 _, .param .u16 _);
    call (q), %d2, (%r1, 4), prototype; ld.param.b32 %r3, [q]; cvt.u64.u32 %d1, %r3; st.global.u64 [%o+24], %d1;
    call (_), variables, (1, 2); call second, (1, 2); st.global.u64 [%o+32], 5;
    ret;
}
)"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    ExecutionShape shape;
    const Fault fault = loaded.run("k", shape, place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<std::uint64_t>{1009, 103, 13, 11, 5, 0, 0, 0}));
    EXPECT_TRUE(refusal_of(module_of(".visible .entry k(.reg .u32 a) { ret; }")).refused());
    EXPECT_TRUE(refusal_of(module_of(".func f(.param .u32 a) { ret; } .visible .entry k() { .reg .pred %p; "
                                     "call f, (%p); ret; }"))
                    .refused());
    EXPECT_NE(refusal_of(module_of(".func f() { ret; } .alias g, nowhere; .visible .entry k() { call g; ret; }"))
                  .what.find("alias"),
              std::string::npos);
}

}  // namespace
}  // namespace isthmus::ptx::test
