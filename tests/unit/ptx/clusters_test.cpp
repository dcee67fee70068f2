// SPDX-License-Identifier: Apache-2.0
// Thread block clusters: cooperative_groups::this_cluster() as nvcc makes it, and what blocks do to each other.
#include "made_by_nvcc.hpp"

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

ExecutionShape clusters_of(u32 grid, u32 block, u32 cluster) {
    ExecutionShape out = blocks_of(grid, block);
    out.cluster.x = cluster;
    out.explicit_cluster = true;
    return out;
}

TEST(PtxClusters, BlocksKnowTheirPlaceInTheirCluster) {  // keeps W8
    for (const bool in_clusters : {false, true}) {
        Buffers buffers;
        std::vector<u32> out(8 * 24);
        const u64 place = buffers.add(out);
        Loaded loaded(made_by_nvcc("clusters"), buffers);
        ExecutionShape shape = blocks_of(6, 32);
        shape.grid.y = 4;
        if (in_clusters) shape.cluster = {3, 2, 1};
        shape.explicit_cluster = in_clusters;
        loaded.threads = 2;
        const Fault fault = loaded.run("describe", shape, place);
        ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
        for (u32 y = 0; y < 4; ++y) {
            for (u32 x = 0; x < 6; ++x) {
                const std::vector<u32> found(out.begin() + 8 * (x + 6 * y), out.begin() + 8 * (x + 6 * y) + 8);
                const u32 rank = x % 3 + 3 * (y % 2);
                const std::vector<u32> wanted =
                    in_clusters
                        ? std::vector<u32>{rank,      6, x % 3 + 100 * (y % 2), 203, x / 3 + 100 * (y / 2) + 20000, 192,
                                           32 * rank, 1}
                        : std::vector<u32>{0, 1, 0, 101, x + 100 * y + 60000, 32, 0, 0};
                EXPECT_EQ(found, wanted) << x << ", " << y;
            }
        }
    }
}

TEST(PtxClusters, BlocksReadAndUpdateEachOthersSharedMemory) {  // keeps W8
    Buffers buffers;
    std::vector<int> out(16 * 64), bins(256);
    std::vector<unsigned char> in(10000);
    u32 seed = 1;
    std::vector<int> counted(256);
    for (unsigned char& one : in) {
        seed = seed * 1664525 + 1013904223;
        one = static_cast<unsigned char>(seed >> 24);
        ++counted[one];
    }
    const u64 pout = buffers.add(out), pin = buffers.add(in), pbins = buffers.add(bins);
    Loaded loaded(made_by_nvcc("clusters"), buffers);
    loaded.threads = 2;
    Fault fault = loaded.run("exchange", clusters_of(16, 64, 4), pout);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (int block = 0; block < 16; ++block) {
        const int next = block / 4 * 4 + (block + 1) % 4;
        for (int thread = 0; thread < 64; ++thread) {
            ASSERT_EQ(out[static_cast<std::size_t>(block * 64 + thread)], 1000 * next + 63 - thread);
        }
    }
    ASSERT_EQ(loaded.program.entry("histogram")->required_cluster, (std::array<u32, 3>{4, 1, 1}));
    fault = loaded.run("histogram", clusters_of(8, 96, 4), pin, 10000, pbins);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(bins, counted);
    fault = loaded.run("split", clusters_of(4, 64, 4), pout);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ((std::vector<int>(out.begin(), out.begin() + 4)), (std::vector<int>{10, 11, 12, 13}));
}

// The memory of another block is as bounded as the own one, and ends with its block.
TEST(PtxClusters, AnotherBlocksMemoryHasItsBoundsAndItsEnd) {  // keeps W8
    Buffers buffers;
    std::vector<int> out(64);
    const u64 place = buffers.add(out);
    Loaded loaded(made_by_nvcc("clusters"), buffers);
    Fault fault = loaded.run("beyond", clusters_of(2, 64, 2), place, 63);
    EXPECT_EQ(fault.kind, FaultKind::none) << fault.message;
    fault = loaded.run("beyond", clusters_of(2, 64, 2), place, 64);
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    EXPECT_NE(fault.message.find("it leaves the block's shared memory (256 bytes at 0x400)"), std::string::npos)
        << fault.message;
    fault = loaded.run("after_its_end", clusters_of(2, 64, 2), place);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("block 0 of the cluster has ended"), std::string::npos) << fault.message;
    EXPECT_NE(fault.message.find("kernel after_its_end, PTX line "), std::string::npos) << fault.message;
}

std::string kernel_with(const std::string& instructions) {
    return module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b32 %a, %r<8>; .reg .b64 %d<8>, %o;
    .shared .align 16 .b8 b[64];
    ld.param.u64 %o, [out]; mov.u32 %a, b; mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p0, %r0, 0;
)" + instructions + "\n    ret;\n}\n");
}
Fault run_two(const std::string& instructions, std::vector<u64>& out, u32 threads = 32) {
    Buffers buffers;
    const u64 place = buffers.add(out);
    Loaded loaded(kernel_with(instructions), buffers);
    const Entry* const entry = loaded.program.entry("k");
    EXPECT_TRUE(entry != nullptr && !entry->refusal.refused()) << (entry ? entry->refusal.what : "");
    return loaded.run("k", clusters_of(2, threads, 2), place);
}

TEST(PtxClusters, AddressesNameTheirBlock) {  // keeps W8
    std::vector<u64> out(8);
    const Fault fault = run_two(R"(
    cvt.u64.u32 %d1, %a; cvta.shared.u64 %d1, %d1;
    mapa.u64 %d2, %d1, 1; mapa.shared::cluster.u32 %r1, %a, 1;
    getctarank.u64 %r2, %d2; getctarank.shared::cluster.u32 %r3, %r1; getctarank.shared::cluster.u32 %r4, %a;
    isspacep.shared::cluster %p1, %d2; isspacep.shared::cta %p2, %d2; isspacep.shared %p3, %d1;
    @!%p0 bra END;
    shl.b32 %r3, %r3, 4; shl.b32 %r4, %r4, 8; or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4;
    selp.u32 %r5, 4096, 0, %p1; or.b32 %r2, %r2, %r5;
    selp.u32 %r5, 8192, 0, %p2; or.b32 %r2, %r2, %r5;
    selp.u32 %r5, 16384, 0, %p3; or.b32 %r2, %r2, %r5;
    cvt.u64.u32 %d3, %r2; st.global.u64 [%o], %d3;
    st.shared::cluster.u32 [%r1], 77; ld.u32 %r6, [%d2]; cvt.u64.u32 %d3, %r6; st.global.u64 [%o+8], %d3;
END:
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;)",
                                out);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out[0], 0x5011u);
    EXPECT_EQ(out[1], 77u);
}

// An arrival at another block's mbarrier object.
TEST(PtxClusters, ABlockArrivesAtAnotherBlocksBarrier) {  // keeps W8
    std::vector<u64> out(8);
    const Fault fault = run_two(R"(
    @%p0 mbarrier.init.shared.b64 [%a], 33;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p0 bra FIRST;
    mapa.shared::cluster.u32 %r1, %a, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
    bra.uni END;
FIRST:
    mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0;
    @%p1 mbarrier.arrive.shared.b64 _, [%a];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [%a], 0;
    @!%p2 bra WAIT;
    st.global.u64 [%o], 5;
END:
    barrier.cluster.arrive; barrier.cluster.wait;)",
                                out);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out[0], 5u);
}

// Threads that end count no more; a barrier that cannot be completed is a deadlock, and misuse a fault.
TEST(PtxClusters, BarriersOfTheCluster) {  // keeps W8
    std::vector<u64> out(8);
    EXPECT_EQ(run_two("@%p0 ret; barrier.cluster.arrive; barrier.cluster.wait; st.global.u64 [%o], 9;", out).kind,
              FaultKind::none);
    EXPECT_EQ(out[0], 9u);
    struct Case {
        const char* instructions;
        FaultKind kind;
        const char* says;
    };
    const Case cases[] = {
        {"barrier.cluster.wait;", FaultKind::illegal_instruction, "without barrier.cluster.arrive"},
        {"barrier.cluster.arrive; barrier.cluster.arrive;", FaultKind::illegal_instruction, "again"},
        {"@!%p0 bra WAIT; barrier.cluster.arrive; barrier.cluster.wait; WAIT: bar.sync 1, 64;",
         FaultKind::launch_failed, "waits for others"},
        {"mov.u32 %r1, 2; mapa.shared::cluster.u32 %r2, %a, %r1;", FaultKind::launch_failed,
         "mapa to block 2 of a cluster of 2"},
        {"mapa.u64 %d1, %o, 0;", FaultKind::illegal_instruction, "no address of shared memory"},
    };
    for (const Case& one : cases) {
        const Fault fault = run_two(one.instructions, out);
        EXPECT_EQ(fault.kind, one.kind) << one.instructions << ": " << fault.message;
        EXPECT_NE(fault.message.find(one.says), std::string::npos) << one.instructions << ": " << fault.message;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
