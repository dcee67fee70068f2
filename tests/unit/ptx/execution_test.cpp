// SPDX-License-Identifier: Apache-2.0
// Whole kernels: calls, barriers, shared and dynamic memory, atomics, printf, assert, faults, and blocks that wait.
#include "ptx_machine.hpp"

#include <atomic>
#include <new>
#include <thread>

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

ExecutionShape shape_of(u32 grid, u32 block, u32 dynamic = 0) {
    ExecutionShape out;
    out.grid.x = grid;
    out.block.x = block;
    out.dynamic_shared_bytes = dynamic;
    return out;
}

// Words of local, shared and global memory: what was not written is reported once for each instruction, and the kernel
// goes on. A call's variables begin anew; what it gives back counts as written if it was.
TEST(PtxExecution, ReadsOfWhatNothingWroteAreReportedOnRequest) {
    const std::string text = module_of(R"(
.func (.param .b32 r) half(.param .b32 n) {
    .reg .b32 %r<4>; .reg .b64 %d<2>; .local .align 8 .b8 own[8];
    mov.u64 %d0, own;
    ld.param.u32 %r1, [n];
    ld.local.u32 %r2, [%d0];
    st.local.u32 [%d0], %r1;
    ld.local.u32 %r2, [%d0];
    st.param.b32 [r], %r2; ret;
}
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<6>; .reg .b64 %d<5>;
    .shared .align 8 .b8 words[256];
    mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
    mov.u64 %d2, words; add.u64 %d2, %d2, %d1;
    st.shared.u16 [%d2], 1;
    ld.shared.u16 %r1, [%d2];
    ld.shared.u32 %r1, [%d2];
    atom.shared.add.u32 %r2, [%d2+128], 1;
    ld.shared.u32 %r1, [%d2+128];
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), half, (a); ld.param.b32 %r3, [b]; }
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), half, (a); ld.param.b32 %r3, [b]; }
    ld.global.u32 %r4, [%d0];
    st.global.u32 [%d0], %r3;
    ld.global.u32 %r4, [%d0];
    ret;
})");
    for (const bool on : {false, true}) {
        Buffers buffers;
        std::vector<u32> out(32);
        const u64 place = buffers.add(out);
        std::vector<std::byte> written(128);
        buffers.buffers[0].written = written.data();
        Loaded loaded(text, buffers);
        ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
        ExecutionShape shape = shape_of(1, 32);
        shape.finds_uninitialised = on;
        const Fault fault = loaded.run("k", shape, place);
        ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
        EXPECT_EQ(out[31], 31u);
        std::vector<std::string> wanted;
        if (on) {
            wanted = {
                "kernel k, PTX line 21, block (0, 0, 0), thread (0, 0, 0): a read of 4 bytes at 0x400 of the shared "
                "memory",
                "kernel k, PTX line 22, block (0, 0, 0), thread (0, 0, 0): a read of 4 bytes at 0x480 of the shared "
                "memory",
                "kernel k in function half, PTX line 9,", "kernel k, PTX line 26,"};
        }
        ASSERT_EQ(buffers.uninitialised_reads.size(), wanted.size());
        for (std::size_t at = 0; at < wanted.size(); ++at) {
            EXPECT_TRUE(buffers.uninitialised_reads[at].starts_with(wanted[at])) << buffers.uninitialised_reads[at];
        }
        EXPECT_EQ(written[127], std::byte{on});
    }
}

// What a function of the driver gives is written, too.
TEST(PtxExecution, ResultsOfTheDriversFunctionsCountAsWritten) {  // keeps W8
    Buffers buffers;
    std::vector<u32> out(32);
    const u64 place = buffers.add(out);
    std::vector<std::byte> written(128);
    buffers.buffers[0].written = written.data();
    Loaded loaded(module_of(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[3] = {104, 105, 0};
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<3>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out]; mov.u64 %d1, text;
    { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [a], 0;
      call.uni (r), vprintf, (f, a); ld.param.b32 %r0, [r]; }
    st.global.u32 [%d0], %r0; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    ExecutionShape shape = shape_of(1, 1);
    shape.finds_uninitialised = true;
    const Fault fault = loaded.run("k", shape, place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(buffers.uninitialised_reads, std::vector<std::string>{});
}

TEST(PtxExecution, CallsPassParametersAndReturn) {
    Buffers buffers;
    std::vector<u32> out(64);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.func (.param .b32 r) factorial(.param .b32 n) {
    .reg .pred %p; .reg .b32 %r<5>;
    ld.param.u32 %r1, [n];
    setp.lt.u32 %p, %r1, 2;
    @%p bra ONE;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a+0], %r2; call.uni (b), factorial, (a); ld.param.b32 %r3, [b+0]; }
    mul.lo.u32 %r3, %r3, %r1;
    st.param.b32 [r+0], %r3; ret;
ONE: st.param.b32 [r+0], 1; ret;
}
.func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %r<2>; ld.param.u32 %r0, [n]; add.u32 %r0, %r0, %r0; st.param.b32 [r], %r0; ret; }
.global .align 8 .u64 table[2] = {twice, factorial};
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<5>; .reg .b64 %d<5>;
    mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
    and.b32 %r1, %r0, 1; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, table; add.u64 %d2, %d2, %d1; ld.global.u64 %d3, [%d2];
    rem.u32 %r2, %r0, 12;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;
      prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
      call (b), %d3, (a), prototype_0; ld.param.b32 %r3, [b]; }
    st.global.u32 [%d0], %r3; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    const Fault fault = loaded.run("k", shape_of(1, 64), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 thread = 0; thread < 64; ++thread) {
        u32 factorial = 1;
        for (u32 n = 2; n <= thread % 12; ++n) factorial *= n;
        EXPECT_EQ(out[thread], (thread & 1) != 0 ? factorial : 2 * (thread % 12)) << thread;
    }
}

TEST(PtxExecution, AnIndirectCallOfNoFunctionIsAFault) {
    Buffers buffers;
    Loaded loaded(module_of(".visible .entry k(.param .u64 f) { .reg .b64 %d; ld.param.u64 %d, [f]; p : .callprototype "
                            "_ (); call %d, p; ret; }"),
                  buffers);
    EXPECT_EQ(loaded.run("k", shape_of(1, 1), u64{64}).kind, FaultKind::invalid_pc);
}

TEST(PtxExecution, BarriersOrderSharedMemoryAndCountThreads) {
    Buffers buffers;
    std::vector<u32> out(256), counted(1);
    const u64 place = buffers.add(out), count = buffers.add(counted);
    Loaded loaded(module_of(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out, .param .u64 counted) {
    .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %d<5>;
    .shared .align 4 .b8 own[1024];
    mov.u32 %r0, %tid.x; mov.u32 %r1, dynamic; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], %r0; mov.u32 %r3, own; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], 5;
    bar.sync 0;
    xor.b32 %r4, %r2, 1020; mov.u32 %r5, dynamic; add.u32 %r5, %r5, %r4; ld.shared.u32 %r6, [%r5];
    setp.gt.u32 %p, %r0, 249; bar.red.popc.u32 %r7, 0, %p;
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r6;
    ld.param.u64 %d2, [counted]; setp.eq.u32 %q, %r0, 77; @%q st.global.u32 [%d2], %r7; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    const Fault fault = loaded.run("k", shape_of(1, 256, 1024), place, count);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 thread = 0; thread < 256; ++thread) EXPECT_EQ(out[thread], 255 - thread);
    EXPECT_EQ(counted[0], 6u);
    EXPECT_EQ(loaded.run("k", shape_of(1, 256, 512), place, count).kind,
              FaultKind::illegal_address);  // too little shared memory
}

// Each of two rounds writes to shared memory, waits, and lets the first warp read, without a barrier before the next
// round. A GPU's first warp reads before the last one, which came to the barrier last, writes again.
TEST(PtxExecution, TheWarpThatCameLastDoesNotRunAheadOfLowerOnes) {  // keeps W8's ground
    Buffers buffers;
    std::vector<u32> out(64);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %d<5>;
    .shared .align 4 .b8 own[512];
    mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, own; add.u32 %r2, %r2, %r1;
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; mov.u32 %r3, 0;
    ROUND: mad.lo.u32 %r4, %r3, 1000, %r0; st.shared.u32 [%r2], %r4;
    bar.sync 0;
    setp.ge.u32 %p, %r0, 32; @%p bra NEXT;
    ld.shared.u32 %r5, [%r2+384]; st.global.u32 [%d0], %r5;
    NEXT: add.u64 %d0, %d0, 128; add.u32 %r3, %r3, 1; setp.lt.u32 %q, %r3, 2; @%q bra ROUND; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    const Fault fault = loaded.run("k", shape_of(1, 128), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(out[lane], 96 + lane);
        EXPECT_EQ(out[32 + lane], 1096 + lane);
    }
}

TEST(PtxExecution, ABarrierThatNobodyCanReachIsADeadlock) {
    Buffers buffers;
    Loaded loaded(module_of(".visible .entry k() { .reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, "
                            "%r, 32; @%p bar.sync 1, 64; ret; }"),
                  buffers);
    const Fault fault = loaded.run("k", shape_of(1, 64));
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("waits"), std::string::npos) << fault.message;
}

// Addresses in shared and local memory have 32 bits: a sum beyond them wraps.
TEST(PtxExecution, AddressesOfSharedAndLocalMemoryWrap) {
    Buffers buffers;
    std::vector<u32> out(3);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %d; .shared .align 4 .b8 own[16]; .local .align 4 .b8 mine[16];
    mov.u32 %r0, own; sub.u32 %r0, %r0, 4; st.shared.u32 [own+4], 7; ld.shared.u32 %r1, [%r0+8];
    atom.shared.add.u32 %r3, [%r0+8], 1; ld.param.u64 %d, [out]; st.global.u32 [%d], %r1; st.global.u32 [%d+4], %r3;
    mov.u32 %r0, mine; sub.u32 %r0, %r0, 4; st.local.u32 [%r0+4], 9; ld.local.u32 %r2, [mine];
    st.global.u32 [%d+8], %r2; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 1), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u32>{7, 7, 9}));
}

// The first element is a sink; the others fill their registers by their sign.
TEST(PtxExecution, VectorsOfSignedValuesFillTheirRegisters) {
    Buffers buffers;
    std::vector<u64> out(1);
    std::vector<std::int8_t> in = {1, -2};
    const u64 place = buffers.add(out), from = buffers.add(in);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 out, .param .u64 in) {
    .reg .b32 %r; .reg .b64 %d<3>; ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];
    ld.global.v2.s8 {_, %r}, [%d1]; cvt.u64.u32 %d2, %r; st.global.u64 [%d0], %d2; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    ASSERT_EQ(loaded.run("k", shape_of(1, 1), place, from).kind, FaultKind::none);
    EXPECT_EQ(out[0], 0xfffffffeu);
}

// PTX ISA, bar: threads are counted in multiples of the warp size, also those of a warp that is not full.
TEST(PtxExecution, ACountedBarrierCountsWholeWarps) {
    Buffers buffers;
    std::vector<u32> out(48);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .pred %p, %q; .reg .b32 %r<4>; .reg .b64 %d<2>; .shared .align 4 .b8 own[192];
    mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, own; add.u32 %r3, %r2, %r1; st.shared.u32 [%r3], %r0;
    setp.lt.u32 %p, %r0, 40; @%p bra MEET;
    MEET: bar.sync 1, 64; add.u32 %r2, %r2, 188; sub.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2];
    bar.red.and.pred %q, 2, 64, 1; @!%q mov.u32 %r3, 999;
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r3; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 48), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 thread = 0; thread < 48; ++thread) EXPECT_EQ(out[thread], 47 - thread);
}

// CUDA C++ Programming Guide, formatted output: the width may be an argument. That a precision may be one is assumed.
TEST(PtxExecution, WidthsOfPrintfMayBeArguments) {  // keeps W8
    const std::string format = "%*d|%-*d|%*d|%.*f|%*.*f|%*c|%*s|%.*f|";
    std::string bytes;
    for (const char c : format) bytes += std::to_string(static_cast<int>(c)) + ", ";
    Buffers buffers;
    Loaded loaded(module_of(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                            ".global .align 1 .b8 format[] = {" +
                            bytes + R"(0};
.global .align 1 .b8 text[] = {97, 98, 0};
.visible .entry k() {
    .local .align 8 .b8 m[104]; .reg .b64 %d<5>; .param .b64 a; .param .b64 b; .param .b32 r;
    st.local.u32 [m], 6; st.local.u32 [m+4], 7; st.local.u32 [m+8], 4; st.local.u32 [m+12], 9;
    st.local.u32 [m+16], -3; st.local.u32 [m+20], 5; st.local.u32 [m+24], 3; mov.b64 %d1, 0d400921FB54442D18;
    st.local.b64 [m+32], %d1; st.local.u32 [m+40], 8; st.local.u32 [m+44], 2; st.local.b64 [m+48], %d1;
    st.local.u32 [m+56], 3; st.local.u32 [m+60], 65; st.local.u32 [m+64], 4; mov.u64 %d2, text; st.local.u64 [m+72], %d2;
    st.local.u32 [m+80], -1; st.local.b64 [m+88], %d1;
    mov.u64 %d3, format; mov.u64 %d4, m; cvta.local.u64 %d4, %d4; st.param.b64 [a], %d3; st.param.b64 [b], %d4;
    call (r), vprintf, (a, b); ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 1));
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(buffers.printed, "     7|9   |5  |3.142|    3.14|  A|  ab|3.141593|");
}

// PTX ISA, bar: the arrival count grows by the size of the warp, not by its active threads. Lanes come to their end
// behind the barrier's arrivals where a compiler puts `return` at the end of the text.
TEST(PtxExecution, LanesThatEndAfterTheirWarpHasArrivedDoNotHoldABarrierUp) {  // keeps W8
    const auto end_of = [](const std::string& body, std::uint32_t threads) {
        Buffers buffers;
        std::vector<std::uint32_t> out(1);
        const std::uint64_t place = buffers.add(out);
        Loaded loaded(module_of(".visible .entry k(.param .u64 o) { .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %o; "
                                "ld.param.u64 %o, [o]; mov.u32 %r1, %tid.x; " +
                                body + " setp.ne.u32 %p2, %r1, 0; @%p2 bra END; st.global.u32 [%o], 5; END: ret; }"),
                      buffers);
        ExecutionShape shape;
        shape.block.x = threads;
        const Fault fault = loaded.run("k", shape, place);
        return fault.kind == FaultKind::none ? std::to_string(out[0]) : fault.message;
    };
    EXPECT_EQ(end_of("setp.ge.u32 %p1, %r1, 48; @%p1 bra END; bar.sync 1, 64;", 64), "5");
    EXPECT_EQ(end_of("setp.ge.u32 %p1, %r1, 48; @%p1 ret; bar.sync 1, 64;", 64), "5");
    // A second phase, and lanes that end between the two.
    EXPECT_EQ(end_of("setp.ge.u32 %p1, %r1, 60; @%p1 bra END; bar.sync 1, 64; setp.ge.u32 %p1, %r1, 40; "
                     "@%p1 bra END; bar.sync 1, 64;",
                     64),
              "5");
    // A warp of which nobody came does not count, and lanes that arrived count once although they end then.
    EXPECT_NE(end_of("setp.ge.u32 %p1, %r1, 32; @%p1 bra END; bar.sync 1, 64;", 64), "5");
    EXPECT_NE(end_of("setp.lt.u32 %p1, %r1, 32; @%p1 bra WAIT; bar.arrive 1, 96; bra END; WAIT: bar.sync 1, 96;", 64),
              "5");
}

std::string atomics_module() {
    return module_of(R"(
.visible .entry k(.param .u64 w) {
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<3>; .reg .f64 %e<3>;
    ld.param.u64 %d0, [w]; mov.u32 %r0, %tid.x; cvt.s32.u32 %r1, %r0; neg.s32 %r1, %r1;
    atom.global.add.u32 %r2, [%d0], 1;
    red.global.max.u32 [%d0+4], %r0;
    red.global.min.s32 [%d0+8], %r1;
    atom.global.or.b32 %r3, [%d0+12], %r0;
    atom.global.inc.u32 %r4, [%d0+16], 9;
    atom.global.dec.u32 %r4, [%d0+20], 9;
    red.global.add.f32 [%d0+24], 0f3F000000;
    red.global.add.u64 [%d0+32], 0x100000000;
    red.global.add.f64 [%d0+40], 0d3FF8000000000000;
    atom.global.cas.b32 %r5, [%d0+28], 0, %r0;
    red.global.xor.b32 [%d0+48], 1;
    red.relaxed.sys.global.add.noftz.f16x2 [%d0+52], 0x3c003c00; ret;
})");
}

TEST(PtxExecution, AtomicsUpdateWholeWords) {
    for (const bool whole : {true, false}) {
        Buffers buffers;
        std::vector<u32> words(14);
        const u64 place = buffers.add(words);
        buffers.buffers[0].whole_updates = whole;
        Loaded loaded(atomics_module(), buffers);
        ASSERT_FALSE(loaded.program.refusal().refused())
            << loaded.program.refusal().what << loaded.program.refusal().line;
        loaded.threads = 2;
        const Fault fault = loaded.run("k", shape_of(4, 32), place);
        ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
        EXPECT_EQ(words[0], 128u);
        EXPECT_EQ(words[1], 31u);
        EXPECT_EQ(static_cast<std::int32_t>(words[2]), -31);
        EXPECT_EQ(words[3], 31u);
        EXPECT_EQ(words[4], 128u % 10);
        EXPECT_EQ(words[5], (10 - 128 % 10) % 10u);
        EXPECT_EQ(words[6], 0x42800000u);  // 64.0
        EXPECT_LT(words[7], 32u);
        EXPECT_EQ(words[9], 128u);
        double sum = 0;
        std::memcpy(&sum, &words[10], 8);
        EXPECT_EQ(sum, 192.0);
        EXPECT_EQ(words[12], 0u);
        EXPECT_EQ(words[13], 0x58005800u);  // 128.0, twice
        EXPECT_EQ(buffers.split_updates, whole ? 0 : 128 * 12);
    }
}

TEST(PtxExecution, AtomicAddsOfSinglesFlushInGlobalMemoryAlone) {
    Buffers buffers;
    std::vector<u32> words(2);
    const u64 place = buffers.add(words);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 w) {
    .reg .b32 %r<3>; .reg .b64 %d<2>; .shared .align 4 .f32 s;
    ld.param.u64 %d0, [w]; st.shared.u32 [s], 1; red.shared.add.f32 [s], 0f00000001; ld.shared.u32 %r0, [s];
    st.global.u32 [%d0+4], %r0; red.global.add.f32 [%d0], 0f00000001; ret;
})"),
                  buffers);
    ASSERT_EQ(loaded.run("k", shape_of(1, 1), place).kind, FaultKind::none);
    EXPECT_EQ(words[0], 0u);
    EXPECT_EQ(words[1], 2u);
}

// The length of a conversion cuts what is printed.
TEST(PtxExecution, PrintfCutsToTheLengthsOfItsConversions) {
    Buffers buffers;
    std::vector<char> format = {'%', 'h', 'h', 'd', ' ', '%', 'h', 'd', ' ', '%', 'h', 'h', 'x', 0};
    const u64 text = buffers.add(format);
    Loaded loaded(module_of(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.visible .entry k(.param .u64 text) {
    .reg .b64 %d<3>; .local .align 8 .b8 depot[16];
    mov.u64 %d0, depot; cvta.local.u64 %d1, %d0; st.local.u32 [%d0], 0x1ff; st.local.u32 [%d0+4], 0x18000;
    st.local.u32 [%d0+8], 0x1ab; ld.param.u64 %d2, [text];
    { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d2; st.param.b64 [a], %d1; call.uni (r), vprintf, (f, a); }
    ret;
})"),
                  buffers);
    const Fault fault = loaded.run("k", shape_of(1, 1), text);
    EXPECT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(buffers.printed, "-1 -32768 ab");
}

class NoMemory final : public Memory {
public:
    MemoryWindow window(std::uint64_t, std::uint32_t, bool) override { throw std::bad_alloc(); }
    std::uint64_t update(void*, std::uint32_t, Update&) override { return 0; }
    void print(std::string_view) override {}
    void pause() override {}
    bool set_condition(std::uint64_t, std::uint32_t) override { return false; }
};

TEST(PtxExecution, AProcessWithoutMemoryIsAFault) {
    Program program(module_of(".visible .entry k() { .reg .b32 %r; ld.global.u32 %r, [64]; ret; }"));
    ASSERT_NE(program.entry("k"), nullptr);
    NoMemory memory;
    Execution execution(program, *program.entry("k"), shape_of(1, 1), {}, memory);
    execution.run();
    EXPECT_EQ(execution.fault().kind, FaultKind::out_of_memory);
}

TEST(PtxExecution, PrintfAndAssert) {
    Buffers buffers;
    Loaded loaded(module_of(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[] = {37, 100, 32, 37, 115, 32, 37, 46, 50, 102, 32, 37, 108, 108, 120, 32, 37, 99, 37, 37, 10, 0};
.global .align 1 .b8 word[3] = {104, 105};
.visible .entry prints() {
    .reg .b64 %d<9>; .reg .b32 %r<2>; .local .align 8 .b8 depot[40];
    mov.u64 %d0, depot; cvta.local.u64 %d1, %d0; mov.u64 %d2, word; cvta.global.u64 %d2, %d2;
    st.local.u32 [%d0], -7; st.local.u64 [%d0+8], %d2; st.local.f64 [%d0+16], 0d3FF8000000000000; st.local.u64 [%d0+24], 0x1ffffffff; st.local.u32 [%d0+32], 65;
    mov.u64 %d3, text; { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d3; st.param.b64 [a], %d1; call.uni (r), vprintf, (f, a); }
    ret;
}
.visible .entry fails() {
    .reg .b64 %d<3>; mov.u64 %d0, word;
    { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
      st.param.b64 [m], %d0; st.param.b64 [f], %d0; st.param.b32 [l], 12; st.param.b64 [n], %d0; st.param.b64 [s], 1;
      call.uni __assertfail, (m, f, l, n, s); }
    ret;
}
.visible .entry traps() { trap; ret; })"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    Fault fault = loaded.run("prints", shape_of(1, 2));
    EXPECT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(buffers.printed, "-7 hi 1.50 1ffffffff A%\n-7 hi 1.50 1ffffffff A%\n");
    fault = loaded.run("fails", shape_of(1, 1));
    EXPECT_EQ(fault.kind, FaultKind::assertion);
    EXPECT_NE(fault.message.find("hi:12: hi: Assertion `hi` failed."), std::string::npos) << fault.message;
    EXPECT_EQ(loaded.run("traps", shape_of(1, 1)).kind, FaultKind::launch_failed);
}

// The message names the kernel, both lines, the thread, the address and the reason.
TEST(PtxExecution, FaultsNameTheirPlace) {
    Buffers buffers;
    std::vector<u32> data(8);
    const u64 place = buffers.add(data);
    Loaded loaded(module_of(R"(.file 1 "saxpy.cu"
.visible .entry k(.param .u64 w, .param .u32 step) {
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [w]; mov.u32 %r0, %tid.x; ld.param.u32 %r1, [step]; mul.lo.u32 %r0, %r0, %r1; cvt.u64.u32 %d1, %r0; add.u64 %d0, %d0, %d1;
    .loc 1 42 7
    st.global.u32 [%d0], 1; ret;
})"),
                  buffers);
    EXPECT_EQ(loaded.run("k", shape_of(1, 8), place, 4u).kind, FaultKind::none);
    Fault fault = loaded.run("k", shape_of(1, 9), place, 4u);
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    for (const char* const part :
         {"kernel k", "PTX line 9", "saxpy.cu:42", "thread (8, 0, 0)", "write of 4 bytes at 0x", "it is no buffer"}) {
        EXPECT_NE(fault.message.find(part), std::string::npos) << part << " is not in: " << fault.message;
    }
    fault = loaded.run("k", shape_of(1, 2), place, 2u);
    EXPECT_EQ(fault.kind, FaultKind::misaligned);
    EXPECT_NE(fault.message.find("thread (1, 0, 0)"), std::string::npos) << fault.message;
    buffers.buffers[0].writable = false;
    EXPECT_EQ(loaded.run("k", shape_of(1, 8), place, 4u).kind, FaultKind::illegal_address);
}

// An instruction keeps the window of its last access. Its next access begins in that window and ends behind it.
TEST(PtxExecution, AnAccessThatEndsBehindTheWindowOfTheLastOneIsRefused) {  // keeps L8
    const std::string begin = module_of(R"(
.visible .entry k(.param .u64 place, .param .u32 turns) {
    .reg .pred %p; .reg .b32 %n; .reg .b64 %d<3>;
    ld.param.u64 %d0, [place]; ld.param.u32 %n, [turns];
NEXT:
    )");
    const std::string end = R"(
    add.u64 %d0, %d0, 8; sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra NEXT; ret;
})";
    for (const char* const access : {"ld.global.u64 %d1, [%d0];", "ld.u64 %d1, [%d0];", "st.global.u64 [%d0], 0;",
                                     "ld.global.v2.u32 {%n0, %n1}, [%d0];", "red.global.add.u64 [%d0], 1;"}) {
        SCOPED_TRACE(access);
        Buffers buffers;
        std::vector<u64> storage(2, 5);
        buffers.buffers.push_back({reinterpret_cast<u64>(storage.data()), 12});
        // NOLINTNEXTLINE(performance-inefficient-string-concatenation)
        Loaded loaded(begin + "{ .reg .b32 %n<2>; " + access + " }" + end, buffers);
        ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
        const u64 place = buffers.buffers[0].begin;
        EXPECT_EQ(loaded.run("k", shape_of(1, 1), place, 1u).kind, FaultKind::none);
        const Fault fault = loaded.run("k", shape_of(1, 1), place, 2u);
        EXPECT_EQ(fault.kind, FaultKind::illegal_address);
        EXPECT_NE(fault.message.find("8 bytes at 0x"), std::string::npos) << fault.message;
        EXPECT_EQ(storage[1], 5u);
        buffers.buffers[0].size_bytes = 16;
        EXPECT_EQ(loaded.run("k", shape_of(1, 1), place, 2u).kind, FaultKind::none);
    }
}

TEST(PtxExecution, RegistersOf128BitsAreMovedLoadedAndStored) {  // keeps W8
    const std::string text = R"(
    .reg .b32 %r<2>; .reg .b64 %d<9>; .reg .b128 %w<3>, %x; .reg .pred %p;
    .shared .align 16 .b8 own[512]; .local .align 16 .b8 mine[16];
    ld.param.u64 %d0, [place]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 16; add.u64 %d0, %d0, %d1;
    ld.relaxed.sys.global.b128 %w1, [%d0];
    mov.b128 {%d2, %d3}, %w1; mov.b128 %w2, {%d3, %d2}; mov.b128 %x, %w2;
    and.b32 %r1, %r0, 1; setp.eq.u32 %p, %r1, 0; @%p mov.b128 %x, %w1;
    mov.u64 %d4, own; add.u64 %d4, %d4, %d1; st.shared.b128 [%d4], %x; ld.shared.b128 %w0, [%d4];
    st.local.b128 [mine], %w0; ld.local.b128 %w1, [mine];)";
    const std::string begin = ".visible .entry k(.param .u64 place) {" + text, end = " ret; }";
    Buffers buffers;
    std::vector<u64> words(64);
    for (u64 at = 0; at < 64; ++at) words[at] = at * 0x0101010101010101u;
    const std::vector<u64> before = words;
    const u64 place = buffers.add(words);
    Loaded loaded(module_of(begin + "st.release.sys.global.b128 [%d0], %w1;" + end), buffers);
    ASSERT_FALSE(loaded.program.entry("k")->refusal.refused()) << loaded.program.entry("k")->refusal.what;
    ASSERT_EQ(loaded.run("k", shape_of(1, 32), place).kind, FaultKind::none);
    for (std::size_t at = 0; at < 64; ++at) EXPECT_EQ(words[at], before[at / 2 % 2 == 0 ? at : at ^ 1]) << at;
    EXPECT_EQ(loaded.run("k", shape_of(1, 32), place + 8).kind, FaultKind::misaligned);
    EXPECT_EQ(loaded.run("k", shape_of(1, 32), place + 16).kind, FaultKind::illegal_address);

    for (const char* const wrong :
         {"add.u64 %d2, %w1, %d3;", "mov.b64 %d2, %w1;", "mov.b128 %w1, %d2;", "mov.b128 %w1, 0;",
          "mov.b128 {%d2, %d3, %d4, %d5}, %w1;", "st.global.b64 [%d0], %w1;", "st.global.b128 [%w1], %w1;",
          "ld.global.v2.b128 {%w1, %w2}, [%d0];", "selp.b128 %w1, %w1, %w2, %p;",
          "atom.global.exch.b128 %w1, [%d0], %w2;", "mov.b128 %w3, %w1;"}) {
        // NOLINTNEXTLINE(performance-inefficient-string-concatenation)
        const Loaded refused(module_of(begin + wrong + end), buffers);
        EXPECT_TRUE(refused.program.entry("k")->refusal.refused()) << wrong;
    }
}

TEST(PtxExecution, LocalMemoryBelongsToEachThread) {
    Buffers buffers;
    std::vector<u32> out(64);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 w) {
    .reg .b32 %r<5>; .reg .b64 %d<9>; .reg .pred %p; .local .align 4 .b8 depot[16];
    ld.param.u64 %d0, [w]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
    mov.u64 %d2, depot; st.local.u32 [%d2+4], %r0; cvta.local.u64 %d3, %d2; ld.u32 %r1, [%d3+4];
    isspacep.local %p, %d3; selp.u32 %r2, 1, 0, %p; mad.lo.u32 %r1, %r1, 2, %r2; st.u32 [%d0], %r1; ret;
})"),
                  buffers);
    const Fault fault = loaded.run("k", shape_of(1, 64), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 thread = 0; thread < 64; ++thread) EXPECT_EQ(out[thread], 2 * thread + 1);
}

TEST(PtxExecution, TablesOfBranchesAndVectors) {
    Buffers buffers;
    std::vector<u32> in(128), out(128);
    for (u32 at = 0; at < 128; ++at) in[at] = at;
    const u64 from = buffers.add(in), to = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 a, .param .u64 b) {
    .reg .b32 %r<9>; .reg .b64 %d<9>;
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 16; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0];
    and.b32 %r5, %r0, 3;
    targets: .branchtargets A, B, C, D;
    brx.idx %r5, targets;
A: mov.u32 %r1, 1000; bra.uni END;
B: mov.u32 %r2, 2000; bra.uni END;
C: mov.u32 %r3, 3000; bra.uni END;
D: mov.u32 %r4, 4000;
END: st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4}; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    const Fault fault = loaded.run("k", shape_of(1, 32), from, to);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 at = 0; at < 128; ++at) {
        const u32 thread = at / 4, part = at % 4;
        EXPECT_EQ(out[at], thread % 4 == part ? 1000 * (part + 1) : at);
    }
}

// A persistent kernel and the CPU, which answer each other while the kernel runs.
TEST(PtxExecution, APersistentKernelTalksToTheRunningCpu) {
    Buffers buffers;
    std::vector<u32> words(2);
    const u64 place = buffers.add(words);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 w) {
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [w]; mov.u32 %r0, 1;
WAIT: ld.acquire.sys.global.u32 %r1, [%d0]; setp.ne.u32 %p, %r1, %r0; @%p bra WAIT;
    st.release.sys.global.u32 [%d0+4], %r0; add.u32 %r0, %r0, 1; setp.lt.u32 %p, %r0, 50; @%p bra WAIT;
    ret;
})"),
                  buffers);
    Fault fault;
    std::thread kernel([&] { fault = loaded.run("k", shape_of(1, 1), place); });
    for (u32 round = 1; round < 50; ++round) {
        __atomic_store_n(&words[0], round, __ATOMIC_RELEASE);
        while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != round) std::this_thread::yield();
    }
    kernel.join();
    EXPECT_EQ(fault.kind, FaultKind::none) << fault.message;
}

// Blocks that wait for each other are run in turns, although one thread runs them.
TEST(PtxExecution, BlocksThatWaitForEachOtherMakeProgress) {
    Buffers buffers;
    std::vector<u32> words(1);
    const u64 place = buffers.add(words);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 w, .param .u32 blocks) {
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [w]; ld.param.u32 %r0, [blocks]; mov.u32 %r3, %tid.x; setp.ne.u32 %p, %r3, 0; @%p bra MEET;
    atom.global.add.u32 %r1, [%d0], 1;
WAIT: ld.volatile.global.u32 %r2, [%d0]; setp.lt.u32 %p, %r2, %r0; @%p bra WAIT;
MEET: bar.sync 0; ret;
})"),
                  buffers);
    EXPECT_EQ(loaded.run("k", shape_of(20, 64), place, 20u).kind, FaultKind::none);
    EXPECT_EQ(words[0], 20u);
}

TEST(PtxExecution, HintsOfCachesAndCountsOfRegistersChangeNothing) {  // keeps W8
    Buffers buffers;
    std::vector<u32> out(8);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 o) {
    .reg .b32 %r<9>; .reg .b64 %o; .reg .b64 %d<5>; .reg .f32 %f;
    ld.param.u64 %o, [o]; setmaxnreg.inc.sync.aligned.u32 96;
    createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d0, 0.5;
    createpolicy.fractional.L2::evict_first.b64 %d1; createpolicy.range.global.L2::evict_last.b64 %d2, [%o], 16, 32;
    createpolicy.cvt.L2.b64 %d3, 0x10f0000000000000; mov.u32 %r0, 5;
    st.global.L2::cache_hint.u32 [%o], %r0, %d0; ld.global.L2::cache_hint.u32 %r1, [%o], %d1;
    ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v2.u32 {%r2, %r3}, [%o], %d2; st.global.u32 [%o+4], %r1;
    atom.global.add.L2::cache_hint.u32 %r4, [%o], 2, %d3; red.global.add.L2::cache_hint.u32 [%o], 3, %d3;
    st.global.u32 [%o+8], %r4; st.global.u32 [%o+12], %r2;
    ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 1), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u32>{10, 5, 5, 5, 0, 0, 0, 0}));
    const Program without(
        module_of(".visible .entry k() { .reg .b32 %r; .reg .b64 %d; "
                  "ld.global.L2::cache_hint.u32 %r, [%d]; ret; }"));
    EXPECT_TRUE(without.entries()[0].refusal.refused());
}

TEST(PtxExecution, VectorsOfSpecialRegistersAndCountersOfAProfiler) {  // keeps W8
    Buffers buffers;
    std::vector<u32> out(8, 77);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 o) {
    .reg .b32 %r<9>; .reg .b64 %o; .reg .v4 .u32 v; .reg .b64 %d; .reg .pred %p;
    ld.param.u64 %o, [o]; mov.v4.u32 {%r0, %r1, %r2, %r3}, %ntid; mov.v4.u32 v, %tid;
    setp.ne.u32 %p, v.x, 3; @%p ret;
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; st.global.u32 [%o+16], v.x; st.global.u32 [%o+20], v.w;
    mov.u32 %r4, %pm3; st.global.u32 [%o+24], %r4; mov.u64 %d, %current_graph_exec; cvt.u32.u64 %r4, %d;
    st.global.u32 [%o+28], %r4; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 8), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u32>{8, 1, 1, 0, 3, 0, 0, 0}));
}

TEST(PtxExecution, ConstantsAreASpaceOfTheirOwn) {  // keeps W8
    Buffers buffers;
    std::vector<u32> out(1);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.const .align 4 .u32 c[2] = {1, 2};
.visible .entry k(.param .u64 o) {
    .reg .b32 %r<4>; .reg .b64 %o; .reg .b64 %d<3>; .reg .pred %p;
    ld.param.u64 %o, [o]; mov.u64 %d0, c; cvta.const.u64 %d0, %d0; mov.u32 %r0, 0;
    isspacep.const %p, %d0; @%p or.b32 %r0, %r0, 1; isspacep.global %p, %d0; @%p or.b32 %r0, %r0, 2;
    add.u64 %d1, %d0, 7; isspacep.const %p, %d1; @%p or.b32 %r0, %r0, 4;
    isspacep.const %p, %o; @%p or.b32 %r0, %r0, 8; isspacep.global %p, %o; @%p or.b32 %r0, %r0, 16;
    st.global.u32 [%o], %r0; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.entries()[0].refusal.refused()) << loaded.program.entries()[0].refusal.what;
    const Fault fault = loaded.run("k", shape_of(1, 1), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out[0], 1u + 4 + 16);
}

}  // namespace
}  // namespace isthmus::ptx::test
