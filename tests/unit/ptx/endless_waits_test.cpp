// SPDX-License-Identifier: Apache-2.0
// Waits at mbarrier objects that nobody ends are faults; waits that something could end are none.
#include "made_by_nvcc.hpp"

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// %a: 64 bytes of shared memory with an mbarrier object for two arrivals, of which one has come; %m: the same in block
// 0 of the cluster.
std::string kernel_with(const std::string& instructions) {
    return module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %none, %a, %m, %r<8>; .reg .b64 %d<8>, %o;
    .shared .align 16 .b8 b[64];
    ld.param.u64 %o, [out]; mov.u32 %a, b; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0;
    @%p0 bra MADE; mbarrier.init.shared.b64 [%a], 2; mbarrier.arrive.shared.b64 %d0, [%a]; mov.u32 %r7, 1;
MADE:
    bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; mapa.shared::cluster.u32 %m, %a, 0;
)" + instructions + "\n    ret;\n}\n");
}
Fault run_blocks(const std::string& instructions, std::vector<u64>& out, u32 threads, u32 blocks, u32 cluster) {
    Buffers buffers;
    const u64 place = buffers.add(out);
    Loaded loaded(kernel_with(instructions), buffers);
    EXPECT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    if (const Entry* const entry = loaded.program.entry("k")) {
        EXPECT_FALSE(entry->refusal.refused()) << entry->refusal.line << ": " << entry->refusal.what;
    }
    loaded.threads = 2;
    ExecutionShape shape = blocks_of(blocks, threads);
    shape.cluster.x = cluster;
    shape.explicit_cluster = cluster != 1;
    return loaded.run("k", shape, place);
}

// The loops of CUTLASS, of libcudacxx (with its pauses and timers), and of older programs.
const std::string plain_loop = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%a], 0; @%p1 bra D; bra.uni W; D:\n";
const std::string loops[] = {plain_loop, "W: mbarrier.test_wait.parity.shared.b64 %p1, [%a], 0; @!%p1 bra W;\n",
                             "W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], 0; not.pred %p2, %p1; @%p2 bra W;\n",
                             R"(mov.u64 %d2, %globaltimer; mov.u32 %r3, 0; bra.uni W;
    S: add.s32 %r3, %r3, 1;
    W: { .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%a], 0; selp.b32 %r2, 1, 0, p; }
    setp.eq.s32 %p3, %r2, 0; @%p3 bra L; bra.uni D;
    L: setp.lt.s32 %p4, %r3, 16; @%p4 bra S;
    mov.u64 %d3, %globaltimer; sub.s64 %d4, %d3, %d2; setp.lt.s64 %p5, %d4, 4000000; @%p5 bra M; bra.uni N;
    M: setp.lt.s64 %p6, %d4, 40000; @%p6 bra W; shr.u64 %d5, %d4, 2; cvt.u32.u64 %r4, %d5; nanosleep.u32 %r4; bra.uni W;
    N: mov.u32 %r5, 1000; nanosleep.u32 %r5; bra.uni W;
    D:
)"};

TEST(PtxEndlessWaits, ABlockWhoseThreadsAllWaitIsAFault) {  // keeps W8
    for (const std::string& loop : loops) {
        for (const u32 threads : {1u, 32u, 96u}) {
            std::vector<u64> out(8);
            const Fault fault = run_blocks(loop + "st.global.u64 [%o], 1;", out, threads, 3, 1);
            EXPECT_EQ(fault.kind, FaultKind::launch_failed) << loop << fault.message;
            EXPECT_NE(fault.message.find("it waits at the mbarrier object at 0x400, whose phase still expects 1 "
                                         "arrival; every thread of the block waits for others, and none can go on"),
                      std::string::npos)
                << loop << fault.message;
            EXPECT_NE(fault.message.find("kernel k, PTX line 1"), std::string::npos) << fault.message;
            EXPECT_EQ(out[0], 0u);
        }
    }
}

// Threads that wait elsewhere for those that wait at the object do not end it; nor do bytes that nobody copies.
TEST(PtxEndlessWaits, OthersMayWaitAtOtherBarriers) {  // keeps W8
    std::vector<u64> out(8);
    for (const std::string first :
         {"setp.lt.u32 %p7, %r0, 32; @%p7 bra E;\n", "setp.lt.u32 %p7, %r0, 5; @%p7 bra E;\n"}) {
        const Fault fault = run_blocks(first + plain_loop + "E: bar.sync 0;", out, 64, 1, 1);
        EXPECT_EQ(fault.kind, FaultKind::launch_failed) << fault.message;
        EXPECT_NE(fault.message.find("it waits at the mbarrier object"), std::string::npos) << fault.message;
    }
    const Fault fault =
        run_blocks("@%p0 bra W; mbarrier.arrive.expect_tx.shared.b64 %d1, [%a], 48;\n" + plain_loop, out, 32, 1, 1);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed) << fault.message;
    EXPECT_NE(fault.message.find("whose phase still expects 0 arrivals and 48 bytes"), std::string::npos)
        << fault.message;
}

TEST(PtxEndlessWaits, AClusterIsLookedAtAsAWhole) {  // keeps W8
    const std::string second = "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p7, %r1, 1; @%p7 bra S;\n";
    std::vector<u64> out(8);
    Fault fault =
        run_blocks(second + plain_loop + "bra E; S: E: barrier.cluster.arrive; barrier.cluster.wait;", out, 64, 2, 2);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed) << fault.message;
    EXPECT_NE(fault.message.find("every thread of the cluster waits for others"), std::string::npos) << fault.message;
    // The other block arrives, after a while.
    fault = run_blocks(second + plain_loop + "@%p0 bra E; st.global.u64 [%o], 7; bra E;\n" +
                           "S: mov.u32 %r2, 0; K: add.u32 %r2, %r2, 1; setp.lt.u32 %p6, %r2, 300000; @%p6 bra K;\n"
                           "@!%p0 mbarrier.arrive.shared::cluster.b64 _, [%m];\n"
                           "E: barrier.cluster.arrive; barrier.cluster.wait;",
                       out, 64, 2, 2);
    EXPECT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out[0], 7u);
}

// What a GPU would finish: the loop gives up, or another thread arrives.
TEST(PtxEndlessWaits, WaitsThatEndAreNoFaults) {  // keeps W8
    const std::string arrives = "mbarrier.arrive.shared.b64 _, [%a];\n";
    const std::string ends[] = {
        // by a count
        ("mov.u32 %r1, 0; W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], 0; add.u32 %r1, %r1, 1;\n"
         "setp.gt.u32 %p2, %r1, 20000; or.pred %p3, %p1, %p2; @!%p3 bra W;\n"),
        // by a timer
        ("mov.u64 %d1, %globaltimer; W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], 0; @%p1 bra D;\n"
         "mov.u64 %d2, %globaltimer; sub.u64 %d2, %d2, %d1; setp.lt.u64 %p2, %d2, 30000000; @%p2 bra W; D:\n"),
        // the object changes
        ("mov.u32 %r1, 0; mov.u32 %r2, %a; add.u32 %r3, %a, 8; @%p0 bra V;\n"
         "mbarrier.init.shared.b64 [%a+8], 1; mbarrier.arrive.shared.b64 _, [%a+8];\n"
         "V: bar.sync 0; W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; add.u32 %r1, %r1, 1;\n"
         "setp.eq.u32 %p2, %r1, 3000; selp.b32 %r2, %r3, %r2, %p2; @!%p1 bra W;\n"),
        // the phase changes
        "mov.u32 %r2, 0; W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], %r2; xor.b32 %r2, %r2, 1; @!%p1 bra W;\n",
        // by itself
        "mov.u32 %r1, 0; W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], 0; @%p1 bra D; add.u32 %r1, %r1, 1;\n"
        "setp.ne.u32 %p2, %r1, 5000; @%p2 bra W; @%p0 bra W; " +
            arrives + "bra W; D:\n",
        // by another thread of the warp, or of the block, which has more to do
        "@%p0 bra W; mov.u32 %r1, 0; K: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 400000; @%p2 bra K;\n" + arrives +
            plain_loop,
        "setp.ne.u32 %p7, %r0, 40; @%p7 bra W; mov.u32 %r1, 0;\n"
        "K: nanosleep.u32 100; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5000; @%p2 bra K;\n" +
            arrives + plain_loop,
        // by what the loop reads: a word that another block writes
        ("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p7, %r1, 1; @%p7 bra O;\n"
         "W: mbarrier.try_wait.parity.shared.b64 %p1, [%a], 0; ld.relaxed.gpu.global.u64 %d1, [%o+32];\n"
         "setp.eq.u64 %p2, %d1, 0; @%p2 bra W; bra D;\n"
         "O: mov.u32 %r1, 0; K: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 300000; @%p2 bra K;\n"
         "st.relaxed.gpu.global.u64 [%o+32], 1; D:\n"),
    };
    for (const std::string& end : ends) {
        std::vector<u64> out(8);
        const Fault fault = run_blocks(end + "st.global.u64 [%o], 3;", out, 64, 2, 1);
        EXPECT_EQ(fault.kind, FaultKind::none) << end << fault.message;
        EXPECT_EQ(out[0], 3u) << end;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
