// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp: shuffles, votes, matches, reductions, and how groups part and meet.
#include "made_by_nvcc.hpp"

#include <bit>

namespace isthmus::ptx::test {
namespace {

using u64 = std::uint64_t;

// One warp; lane i has a = i.
Values of_lanes(const std::string& instructions, char result, std::size_t count = 32) {
    Values lane(count), zero(count);
    for (std::size_t at = 0; at < count; ++at) lane[at] = at;
    return evaluate(instructions, result, lane, zero, zero);
}

// How such a warp of 32 lanes ends.
Fault fault_of_lanes(Buffers& buffers, const std::string& instructions, bool finds_uninitialised = false) {
    Values lane(32);
    for (std::size_t at = 0; at < 32; ++at) lane[at] = at;
    const u64 p = buffers.add(lane);
    Loaded loaded(kernel_of(instructions, 'r'), buffers);
    ExecutionShape shape;
    shape.block.x = 32;
    shape.finds_uninitialised = finds_uninitialised;
    return loaded.run("k", shape, p, p, p, p, 32u);
}

TEST(PtxWarps, ShufflesMoveValuesWithinSegments) {
    const Values up = of_lanes("shfl.sync.up.b32 %r3|%p, %r0, 3, 0, -1;", 'r');
    const Values down = of_lanes("shfl.sync.down.b32 %r3, %r0, 5, 31, -1;", 'r');
    const Values butterfly = of_lanes("shfl.sync.bfly.b32 %r3, %r0, 9, 31, 0xffffffff;", 'r');
    const Values index = of_lanes("shfl.sync.idx.b32 %r3, %r0, 33, 31, -1;", 'r');
    // Segments of 8 lanes: mask 0b11000 in bits 8 to 12.
    const Values segment = of_lanes("shfl.sync.down.b32 %r3, %r0, 3, 0x181f, -1;", 'r');
    const Values inside = of_lanes("shfl.sync.down.b32 %r3|%p, %r0, 3, 0x181f, -1;", 'p');
    for (u64 lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(up[lane], lane < 3 ? lane : lane - 3);
        EXPECT_EQ(down[lane], lane + 5 > 31 ? lane : lane + 5);
        EXPECT_EQ(butterfly[lane], lane ^ 9);
        EXPECT_EQ(index[lane], 1u);
        EXPECT_EQ(segment[lane], lane % 8 + 3 > 7 ? lane : lane + 3);
        EXPECT_EQ(inside[lane], lane % 8 + 3 > 7 ? 0u : 1u);
    }
}

TEST(PtxWarps, VotesMatchesAndReductions) {
    const Values ballot = of_lanes("setp.gt.u32 %q, %r0, 29; vote.sync.ballot.b32 %r3, %q, -1;", 'r');
    const Values any = of_lanes("setp.gt.u32 %q, %r0, 29; vote.sync.any.pred %p, %q, -1;", 'p');
    const Values all = of_lanes("setp.gt.u32 %q, %r0, 29; vote.sync.all.pred %p, !%q, -1;", 'p');
    const Values uniform = of_lanes("setp.gt.u32 %q, %r0, 40; vote.sync.uni.pred %p, %q, -1;", 'p');
    const Values same = of_lanes("and.b32 %r4, %r0, 3; match.any.sync.b32 %r3, %r4, -1;", 'r');
    const Values not_all = of_lanes("match.all.sync.b32 %r3|%p, %r0, -1;", 'r');
    const Values sum = of_lanes("redux.sync.add.s32 %r3, %r0, -1;", 'r');
    const Values least = of_lanes("sub.s32 %r4, %r0, 7; redux.sync.min.s32 %r3, %r4, -1;", 'r');
    const Values largest = of_lanes("sub.s32 %r4, %r0, 7; redux.sync.max.u32 %r3, %r4, -1;", 'r');
    const Values active = of_lanes("setp.lt.u32 %q, %r0, 4; @%q bra SKIP; activemask.b32 %r3; SKIP:", 'r');
    for (u64 lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(ballot[lane], 0xc0000000u);
        EXPECT_EQ(any[lane], 1u);
        EXPECT_EQ(all[lane], 0u);
        EXPECT_EQ(uniform[lane], 1u);
        EXPECT_EQ(same[lane], u64{0x11111111} << (lane & 3));
        EXPECT_EQ(not_all[lane], 0u);
        EXPECT_EQ(sum[lane], 31u * 32 / 2);
        EXPECT_EQ(least[lane], 0xfffffff9u);
        EXPECT_EQ(largest[lane], 0xffffffffu);
        EXPECT_EQ(active[lane], lane < 4 ? 0u : 0xfffffff0u);
    }
}

TEST(PtxWarps, AWarpThatIsNotFullCountsItsLanesAlone) {
    EXPECT_EQ(
        of_lanes("mov.u32 %r3, %tid.x; setp.lt.u32 %q, %r3, 100; vote.sync.ballot.b32 %r3, %q, 0x3ff;", 'r', 10)[9],
        0x3ffu);
}

// Lanes leave a loop after different counts, and meet behind it.
TEST(PtxWarps, DivergentLoopsMeetAgain) {
    const Values found = of_lanes(R"(
        mov.u32 %r3, 0; mov.u32 %r4, 0;
    LOOP: setp.ge.u32 %q, %r4, %r0; @%q bra END;
        mad.lo.u32 %r3, %r4, 3, %r3; add.u32 %r4, %r4, 1; bra LOOP;
    END: vote.sync.ballot.b32 %r5, 1, -1; activemask.b32 %r6; setp.eq.u32 %q, %r5, %r6; @!%q mov.u32 %r3, 999;)",
                                  'r');
    for (u64 lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], 3 * (lane * (lane - 1) / 2) * (lane > 0));
}

// The path behind the branch lies before it in the text.
TEST(PtxWarps, BranchesBackwardAndNestedOnesMeet) {
    const Values found = of_lanes(R"(
        bra START;
    JOIN: activemask.b32 %r4; popc.b32 %r4, %r4; mad.lo.u32 %r3, %r3, 100, %r4; bra OUT;
    START: and.b32 %r4, %r0, 1; setp.eq.u32 %q, %r4, 0; @%q bra EVEN;
        and.b32 %r4, %r0, 2; setp.eq.u32 %q, %r4, 0; @%q bra ONE; mov.u32 %r3, 3; bra MEET;
    ONE: mov.u32 %r3, 1; bra MEET;
    EVEN: mov.u32 %r3, 2;
    MEET: bra JOIN;
    OUT:)",
                                  'r');
    for (u64 lane = 0; lane < 32; ++lane)
        EXPECT_EQ(found[lane], ((lane & 1) == 0 ? 2u : (lane & 2) == 0 ? 1u : 3u) * 100 + 32);
}

// A lock that lanes of one warp take from each other: each lane must make progress.
TEST(PtxWarps, LanesThatWaitForEachOtherMakeProgress) {
    const Values found = of_lanes(R"(
        .shared .align 4 .u32 lock; .shared .align 4 .u32 count;
        setp.eq.u32 %q, %r0, 0; @%q st.shared.u32 [lock], 0; @%q st.shared.u32 [count], 0; bar.warp.sync -1;
    TRY: atom.shared.cas.b32 %r4, [lock], 0, 1; setp.ne.u32 %q, %r4, 0; @%q bra TRY;
        ld.shared.u32 %r5, [count]; add.u32 %r5, %r5, 1; st.shared.u32 [count], %r5;
        atom.shared.exch.b32 %r4, [lock], 0;
        bar.warp.sync -1; ld.shared.u32 %r3, [count];)",
                                  'r');
    EXPECT_EQ(found[0], 32u);
    EXPECT_EQ(found[31], 32u);
}

// Lanes that sleep come to their instruction again before the one that holds the lock.
TEST(PtxWarps, LanesThatSleepLetTheOthersRun) {
    const Values found = of_lanes(R"(
        .shared .align 4 .u32 lock; .shared .align 4 .u32 count;
        setp.eq.u32 %q, %r0, 0; @%q st.shared.u32 [lock], 0; @%q st.shared.u32 [count], 0; bar.warp.sync -1;
    TRY: atom.shared.cas.b32 %r4, [lock], 0, 1; setp.eq.u32 %q, %r4, 0; @%q bra GOT; nanosleep.u32 20; bra TRY;
    GOT: ld.shared.u32 %r5, [count]; add.u32 %r5, %r5, 1; st.shared.u32 [count], %r5;
        atom.shared.exch.b32 %r4, [lock], 0;
        bar.warp.sync -1; ld.shared.u32 %r3, [count];)",
                                  'r');
    EXPECT_EQ(found[0], 32u);
    EXPECT_EQ(found[31], 32u);
}

// Each call in the loop chooses a group anew.
TEST(PtxWarps, LanesThatWaitInALoopOfCallsMakeProgress) {
    Buffers buffers;
    std::vector<std::uint32_t> counted(1);
    const u64 place = buffers.add(counted);
    Loaded loaded(module_of(R"(
.shared .align 4 .u32 lock; .shared .align 4 .u32 count;
.func (.param .b32 old) take() {
    .reg .b32 %r; atom.shared.cas.b32 %r, [lock], 0, 1; st.param.b32 [old], %r; ret;
}
.visible .entry k(.param .u64 out) {
    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %d;
    TRY: { .param .b32 old; call (old), take, (); ld.param.b32 %r0, [old]; }
    setp.ne.u32 %q, %r0, 0; @%q bra TRY;
    ld.shared.u32 %r1, [count]; add.u32 %r1, %r1, 1; st.shared.u32 [count], %r1; atom.shared.exch.b32 %r2, [lock], 0;
    bar.warp.sync -1; ld.shared.u32 %r3, [count]; ld.param.u64 %d, [out]; st.global.u32 [%d], %r3; ret;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    ExecutionShape shape;
    shape.block.x = 32;
    const Fault fault = loaded.run("k", shape, place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(counted[0], 32u);
}

// Odd lanes come to the call by a detour, when even lanes already wait in the function.
TEST(PtxWarps, LanesMeetInAFunctionThatTheyEnterAtDifferentTimes) {
    Buffers buffers;
    std::vector<std::uint32_t> sums(32);
    const u64 place = buffers.add(sums);
    Loaded loaded(module_of(R"(
.func (.param .b32 sum) add_up(.param .b32 value) {
    .reg .pred %p; .reg .b32 %r<3>; ld.param.b32 %r0, [value];
    setp.eq.u32 %p, %r2, 0; @%p add.u32 %r2, %r2, %r0; redux.sync.add.s32 %r1, %r2, -1; st.param.b32 [sum], %r1; ret;
}
.visible .entry k(.param .u64 out) {
    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %d<2>;
    mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; setp.eq.u32 %q, %r1, 1; @%q bra DETOUR;
    CALL: { .param .b32 value; .param .b32 sum; st.param.b32 [value], %r0; call (sum), add_up, (value);
        ld.param.b32 %r2, [sum]; }
    ld.param.u64 %d0, [out]; mov.u32 %r3, %tid.x; mul.wide.u32 %d1, %r3, 4; add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r2; ret;
    DETOUR: add.u32 %r0, %r0, 100; bra CALL;
})"),
                  buffers);
    ASSERT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    ExecutionShape shape;
    shape.block.x = 32;
    const Fault fault = loaded.run("k", shape, place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (const std::uint32_t sum : sums) EXPECT_EQ(sum, 31u * 32 / 2 + 16 * 100);
}

TEST(PtxWarps, ABarrierOfTheWarpDoesNotStandForAnotherInstruction) {
    Buffers buffers;
    const Fault fault = fault_of_lanes(buffers,
                                       "setp.lt.u32 %q, %r0, 16; @%q bra OTHER; bar.warp.sync -1; bra MEET; "
                                       "OTHER: shfl.sync.idx.b32 %r3, %r0, 0, 31, -1; MEET:");
    EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
    EXPECT_NE(fault.message.find("different instructions"), std::string::npos) << fault.message;
}

// Lanes 0 to 2 wait at a barrier of the block, the others for them: no answer is made up.
TEST(PtxWarps, AMaskOfLanesThatWaitElsewhereIsADeadlockThatNamesThem) {
    Buffers buffers;
    const Fault fault =
        fault_of_lanes(buffers,
                       "setp.lt.u32 %q, %r0, 3; @%q bra OTHER; vote.sync.ballot.b32 %r3, %q, -1; bra MEET; "
                       "OTHER: bar.sync 0; MEET:");
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(
        fault.message.find("thread (3, 0, 0): it waits for lane 0 and 2 others of its mask, which waits at PTX line "),
        std::string::npos)
        << fault.message;
    EXPECT_NE(fault.message.find("; every thread of the block waits"), std::string::npos) << fault.message;
}

// PTX ISA, shfl.sync: what a lane that takes no part would give is undefined. Lanes that have ended take no part.
TEST(PtxWarps, ShufflesFromLanesThatTakeNoPartAreReportedOnRequest) {
    for (const bool on : {false, true}) {
        Buffers buffers;
        const Fault fault = fault_of_lanes(buffers,
                                           "setp.gt.u32 %q, %r0, 7; @%q ret; shfl.sync.bfly.b32 %r3, %r0, 7, 31, -1; "
                                           "shfl.sync.down.b32 %r3, %r0, 1, 31, 0xff;",
                                           on);
        ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
        ASSERT_EQ(buffers.uninitialised_reads.size(), on ? 1u : 0u);
        if (!on) continue;
        const std::string& text = buffers.uninitialised_reads[0];
        EXPECT_NE(text.find("thread (7, 0, 0): it reads a register of a lane that does not take part"),
                  std::string::npos)
            << text;
    }
}

// Groups of several warps: their barriers and values lie in shared memory that CUDA reserves, behind a name of its own.
TEST(PtxWarps, TilesOfSeveralWarpsExchangeValues) {  // keeps W8
    Buffers buffers;
    std::vector<int> out(4 * 256);
    const u64 place = buffers.add(out);
    Loaded loaded(made_by_nvcc("tiles"), buffers);
    const Fault fault = loaded.run("tiles", blocks_of(2, 128), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (int thread = 0; thread < 128; ++thread) {
        const int* const of = &out[static_cast<std::size_t>(4 * thread)];
        const int first = thread / 64 * 64;
        EXPECT_EQ(of[0], thread ^ 32);
        EXPECT_EQ(of[1], 3 * (64 * first + 63 * 32));
        EXPECT_EQ(of[2], first + 5);
        EXPECT_EQ(of[3], first == 64 ? 1 : 0);
    }
}

// The block's own shared memory begins behind the reserved part, which counts in none of its sizes.
TEST(PtxWarps, ReservedSharedMemoryLiesBesideTheBlocks) {  // keeps W8
    const auto value = [](const std::string& name) {
        return of_lanes("mov.u32 %r3, %reserved_smem_offset_" + name + ";", 'r', 1)[0];
    };
    EXPECT_EQ(value("end") - value("begin"), value("cap"));
    EXPECT_EQ(value("cap"), 1024u);
    EXPECT_GE(value("1"), value("0"));
    EXPECT_LE(value("1") + 288, value("end"));
    EXPECT_EQ(of_lanes("mov.u32 %r4, %reserved_smem_offset_0; mov.u32 %r3, %total_smem_size;", 'r', 1)[0], 0u);
    EXPECT_TRUE(Program(kernel_of("mov.u32 %r3, %reserved_smem_offset_2;", 'r')).entry("k")->refusal.refused());
    EXPECT_EQ(Program(made_by_nvcc("tiles")).entry("tiles")->static_shared_bytes, 512u);
}

// As on an H100 (580) with 256 bytes of static shared memory: its address, what lies behind it and before it.
TEST(PtxWarps, SharedMemoryEndsWhereAnH100sDoes) {  // keeps W8
    Buffers buffers;
    std::vector<u64> out(2);
    const u64 place = buffers.add(out);
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 out, .param .u32 offset, .param .u32 writes) {
    .reg .pred %p; .reg .b32 %a, %b, %r<4>; .reg .b64 %o, %d;
    .shared .align 4 .b8 own[256];
    ld.param.u64 %o, [out]; ld.param.u32 %r0, [offset]; ld.param.u32 %r1, [writes];
    mov.u32 %a, own; add.u32 %b, %a, %r0; mov.u32 %r2, 7;
    setp.ne.u32 %p, %r1, 0; @%p bra WRITES;
    ld.shared.u32 %r2, [%b]; bra.uni END;
WRITES:
    st.shared.u32 [%b], 7;
END:
    mov.b64 %d, {%r2, %a}; st.global.u64 [%o], %d;
    ret;
})"),
                  buffers);
    const auto ends = [&](std::int64_t offset, bool writes = false, std::uint32_t dynamic_bytes = 0) {
        ExecutionShape shape;
        shape.block.x = 1;
        shape.dynamic_shared_bytes = dynamic_bytes;
        out[0] = ~u64{0};
        return loaded.run("k", shape, place, static_cast<std::uint32_t>(offset), std::uint32_t{writes}).kind;
    };
    constexpr std::int64_t mib = 1 << 20;
    for (const std::int64_t offset : {0, 128, 252, -256, -1024}) {
        EXPECT_EQ(ends(offset), FaultKind::none) << offset;
        EXPECT_EQ(out[0], u64{1024} << 32) << offset;
    }
    for (const std::int64_t offset : {std::int64_t{256}, std::int64_t{512}, std::int64_t{64 << 10}, mib}) {
        EXPECT_EQ(ends(offset), FaultKind::illegal_address) << offset;
    }
    for (const std::int64_t offset : {16 * mib, 1024 * mib, std::int64_t{-2048}}) {
        EXPECT_EQ(ends(offset), FaultKind::illegal_instruction) << offset;  // 715
    }
    EXPECT_EQ(ends(764, false, 512), FaultKind::none);
    EXPECT_EQ(ends(1020, false, 512), FaultKind::illegal_address);
    EXPECT_EQ(ends(252, true), FaultKind::none);
    EXPECT_EQ(ends(-4, true), FaultKind::illegal_address);  // assumed
}

// `mapa` in a block without others gives the block's own address, which no window of another block begins with.
TEST(PtxWarps, ABlockWithoutOthersIsNamedByItsOwnAddresses) {  // keeps W8
    const std::string shared = "{ .shared .align 4 .b8 own[4]; mov.u32 %r0, own; cvt.u64.u32 %d0, %r0; ";
    EXPECT_EQ(of_lanes(shared + "mapa.shared::cluster.u32 %r3, %r0, 0; sub.u32 %r3, %r3, %r0; }", 'r', 1)[0], 0u);
    EXPECT_EQ(of_lanes(shared + "cvta.shared.u64 %d0, %d0; mapa.u64 %d3, %d0, 0; sub.u64 %d3, %d3, %d0; }", 'd', 1)[0],
              0u);
}

TEST(PtxWarps, MasksWithoutTheLaneAreAFault) {
    Buffers buffers;
    Values none(1);
    const std::uint64_t p = buffers.add(none);
    Loaded loaded(kernel_of("mov.u32 %r3, %tid.x; shfl.sync.idx.b32 %r3, %r3, 0, 31, 2;", 'r'), buffers);
    const Fault fault = loaded.run("k", {}, p, p, p, p, 1u);
    EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
    EXPECT_NE(fault.message.find("mask"), std::string::npos) << fault.message;
}

}  // namespace
}  // namespace isthmus::ptx::test
