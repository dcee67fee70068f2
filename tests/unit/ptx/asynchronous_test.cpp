// SPDX-License-Identifier: Apache-2.0
// mbarrier objects and asynchronous copies: cuda::barrier, cuda::pipeline and memcpy_async as nvcc makes them, and what
// PTX leaves undefined.
#include "made_by_nvcc.hpp"

#include <mbarrier_state.hpp>

#include <numeric>

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::vector<int> numbers(std::size_t count) {
    std::vector<int> out(count);
    std::iota(out.begin(), out.end(), 1);
    return out;
}

// One kernel that handles shared memory `b` of 64 bytes, whose address is %a; results are stored at [%o + …].
std::string kernel_with(const std::string& instructions) {
    return module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b32 %a, %r<8>; .reg .b64 %d<8>, %o;
    .shared .align 16 .b8 b[64];
    ld.param.u64 %o, [out]; mov.u32 %a, b; mov.u32 %r0, %tid.x;
)" + instructions + "\n    ret;\n}\n");
}
Fault run_one(const std::string& instructions, std::vector<u64>& out, u32 threads = 1) {
    Buffers buffers;
    const u64 place = buffers.add(out);
    Loaded loaded(kernel_with(instructions), buffers);
    EXPECT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    if (const Entry* const entry = loaded.program.entry("k")) {
        EXPECT_FALSE(entry->refusal.refused()) << entry->refusal.what;
    }
    return loaded.run("k", blocks_of(1, threads), place);
}

// A phase ends when all arrivals have come and no byte is expected any more.
TEST(PtxBarriers, PhasesOfTheStateEndByArrivalsAndTransactions) {  // keeps W8
    MbarrierState state;
    EXPECT_EQ(init(state, 3), nullptr);
    const u64 first = state.bits();
    EXPECT_EQ(arrive(state, {}), nullptr);
    EXPECT_EQ(state.pending, 2u);
    EXPECT_FALSE(has_ended(state, first));
    EXPECT_FALSE(has_ended_by_parity(state, 0));
    EXPECT_TRUE(has_ended_by_parity(state, 1));  // the phase before
    EXPECT_EQ(arrive(state, {.transactions = 100, .drops = true}), nullptr);
    EXPECT_EQ(arrive(state, {}), nullptr);
    EXPECT_FALSE(has_ended(state, first));
    EXPECT_EQ(complete_transactions(state, 60), nullptr);
    EXPECT_FALSE(has_ended(state, first));
    EXPECT_EQ(complete_transactions(state, 40), nullptr);
    EXPECT_TRUE(has_ended(state, first));
    EXPECT_TRUE(has_ended_by_parity(state, 0));
    EXPECT_EQ(state.pending, 2u);  // one thread has dropped out
    // Bytes may come before they are expected.
    const u64 second = state.bits();
    EXPECT_EQ(complete_transactions(state, 8), nullptr);
    EXPECT_EQ(MbarrierState::of(state.bits()).transactions, -8);
    EXPECT_EQ(arrive(state, {2, 8}), nullptr);
    EXPECT_TRUE(has_ended(state, second));
}

TEST(PtxBarriers, WhatPtxLeavesUndefinedIsNamed) {  // keeps W8
    MbarrierState state;
    EXPECT_NE(init(state, 0), nullptr);
    EXPECT_NE(init(state, most_arrivals + 1), nullptr);
    ASSERT_EQ(init(state, most_arrivals), nullptr);
    EXPECT_EQ(MbarrierState::of(state.bits()).pending, most_arrivals);
    ASSERT_EQ(init(state, 2), nullptr);
    EXPECT_NE(arrive(state, {3}), nullptr);
    EXPECT_NE(arrive(state, {0}), nullptr);
    EXPECT_NE(arrive(state, {.count = 2, .completes = false}), nullptr);
    EXPECT_EQ(arrive(state, {.count = 1, .completes = false}), nullptr);
    EXPECT_EQ(add_transactions(state, most_arrivals), nullptr);
    EXPECT_NE(add_transactions(state, 1), nullptr);
}

class PtxBarriersOf : public testing::TestWithParam<const char*> {};

TEST_P(PtxBarriersOf, BarriersCopiesAndPipelinesOfLibcudacxx) {  // keeps W8
    Buffers buffers;
    std::vector<int> data = numbers(256), in = numbers(1024), out(1024);
    const u64 pdata = buffers.add(data), pin = buffers.add(in), pout = buffers.add(out);
    Loaded loaded(made_by_nvcc(GetParam()), buffers);
    for (const Entry& entry : loaded.program.entries()) {
        EXPECT_FALSE(entry.refusal.refused()) << entry.name << ": " << entry.refusal.what;
    }
    Fault fault = loaded.run("barriers", blocks_of(1, 256), pdata, 7);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (int at = 0; at < 256; ++at) ASSERT_EQ(data[static_cast<std::size_t>(at)], (at + 7) % 256 + 1);
    for (const char* const name : {"async_barrier", "async_aligned", "groups_copy"}) {
        for (const int count : {1000, 4}) {
            std::fill(out.begin(), out.end(), 0);
            fault = loaded.run(name, blocks_of(1, 96), pin, pout, count);
            ASSERT_EQ(fault.kind, FaultKind::none) << name << ": " << fault.message;
            for (int at = 0; at < count; ++at) ASSERT_EQ(out[static_cast<std::size_t>(at)], count - at) << name;
        }
    }
    fault = loaded.run("pipelined", blocks_of(1, 128), pin, pout, 8);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (int at = 0; at < 1024; ++at) {
        ASSERT_EQ(out[static_cast<std::size_t>(at)], 2 * (at / 128 * 128 + 128 - at % 128));
    }
    std::fill(out.begin(), out.end(), 0);
    fault = loaded.run("thread_pipe", blocks_of(1, 64), pin, pout);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (std::size_t at = 0; at < 256; ++at) ASSERT_EQ(out[at], in[at]);
}
INSTANTIATE_TEST_SUITE_P(Nvcc, PtxBarriersOf, testing::Values("barriers_80", "barriers_90"));

// A copy that leaves its source's memory is a fault of the instruction that starts it.
TEST(PtxBarriers, ACopyBeyondItsSourceIsAFault) {  // keeps W8
    for (const char* const text : {"barriers_80", "barriers_90"}) {
        for (const char* const name : {"async_barrier", "async_aligned"}) {
            Buffers buffers;
            std::vector<int> in = numbers(96), out(1024);
            const u64 pin = buffers.add(in), pout = buffers.add(out);
            Loaded loaded(made_by_nvcc(text), buffers);
            const Fault fault = loaded.run(name, blocks_of(1, 32), pin, pout, 100);
            EXPECT_EQ(fault.kind, FaultKind::illegal_address) << text << ": " << name;
            EXPECT_NE(fault.message.find(std::string("kernel ") + name + ", PTX line "), std::string::npos);
            EXPECT_NE(fault.message.find("a read of "), std::string::npos) << fault.message;
        }
    }
}

// Of a copy with fewer bytes to read than to write, memory must hold those alone; its address is aligned all the same.
TEST(PtxBarriers, ACopyReadsNoMoreThanItIsTold) {  // keeps W8
    const auto run = [](const std::string& from, const char* size, std::vector<u64>& out) {
        return run_one("cp.async.cg.shared.global [%a], [%o+" + from + "], 16, " + size + R"(;
    cp.async.wait_all;
    ld.shared.v2.u64 {%d1, %d2}, [%a]; st.global.u64 [%o], %d1; st.global.u64 [%o+8], %d2;)",
                       out);
    };
    const auto filled = [] { return std::vector<u64>{1, 2, 0x3333333344444444}; };  // 24 bytes
    struct Row {
        const char* size;
        u64 low;
    };
    for (const Row& row : {Row{"8", 0x3333333344444444}, {"5", 0x3344444444}, {"4", 0x44444444}, {"1", 0x44}}) {
        std::vector<u64> out = filled();
        const Fault fault = run("16", row.size, out);
        ASSERT_EQ(fault.kind, FaultKind::none) << row.size << ": " << fault.message;
        EXPECT_EQ(out, (std::vector<u64>{row.low, 0, 0x3333333344444444})) << row.size;
    }
    std::vector<u64> out = filled();
    EXPECT_EQ(run("4096", "0", out).kind, FaultKind::none);  // reads nothing
    EXPECT_EQ(out[0], 0u);
    for (const char* const size : {"9", "12", "16"}) {
        out = filled();
        const Fault fault = run("16", size, out);
        EXPECT_EQ(fault.kind, FaultKind::illegal_address) << size;
        EXPECT_NE(fault.message.find("a read of "), std::string::npos) << fault.message;
    }
    out = filled();
    EXPECT_EQ(run("32", "4", out).kind, FaultKind::illegal_address);
    out = filled();
    EXPECT_EQ(run("8", "4", out).kind, FaultKind::misaligned);
}

// The bytes are there when the thread has waited, and not before: so a missing wait is seen.
TEST(PtxBarriers, ACopyIsDoneWhenItsThreadWaits) {  // keeps W8
    std::vector<u64> out = {0x1111, 0x2222, 0x3333, 0x4444, 0, 0, 0, 0};
    const Fault fault = run_one(R"(
    cp.async.ca.shared.global [%a], [%o], 8;
    cp.async.commit_group;
    cp.async.ca.shared.global [%a+8], [%o+8], 8;
    cp.async.commit_group;
    st.shared.u64 [%a+16], -1;
    cp.async.ca.shared.global [%a+16], [%o+16], 8, 4;
    ld.shared.u64 %d1, [%a]; st.global.u64 [%o+32], %d1;
    cp.async.wait_group 1;
    ld.shared.u64 %d1, [%a]; st.global.u64 [%o+40], %d1;
    ld.shared.u64 %d1, [%a+8]; st.global.u64 [%o+48], %d1;
    cp.async.wait_all;
    ld.shared.v2.u64 {%d1, %d2}, [%a+16]; add.u64 %d1, %d1, %d2; st.global.u64 [%o+56], %d1;
    ld.shared.u64 %d1, [%a+8]; st.global.u64 [%o], %d1;)",
                                out);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u64>{0x2222, 0x2222, 0x3333, 0x4444, 0, 0x1111, 0, 0x3333}));
}

TEST(PtxBarriers, ACopyWithoutAWaitIsAReadOfWhatNothingWrote) {  // keeps W8
    Buffers buffers;
    std::vector<u64> out(8);
    const u64 place = buffers.add(out);
    Loaded loaded(kernel_with("cp.async.ca.shared.global [%a], [%o], 8; ld.shared.u64 %d1, [%a]; cp.async.wait_all; "
                              "ld.shared.u64 %d1, [%a];"),
                  buffers);
    ExecutionShape shape = blocks_of(1, 1);
    shape.finds_uninitialised = true;
    ASSERT_EQ(loaded.run("k", shape, place).kind, FaultKind::none);
    ASSERT_EQ(buffers.uninitialised_reads.size(), 1u);
    EXPECT_NE(buffers.uninitialised_reads[0].find("of the shared memory"), std::string::npos);
}

// Copies in bulk end a phase by their bytes; those to global memory are there after their group.
TEST(PtxBarriers, CopiesInBulkCompleteTransactions) {  // keeps W8
    std::vector<u64> out = {1, 2, 3, 4, 0, 0, 0, 0};
    const Fault fault = run_one(R"(
    mbarrier.init.shared::cta.b64 [%a], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d1, [%a], 32;
    mbarrier.test_wait.shared::cta.b64 %p0, [%a], %d1;
    selp.u64 %d2, 1, 0, %p0;
    add.u32 %r1, %a, 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%o], 32, [%a];
WAIT:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%a], 0, 100;
    @!%p1 bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%o+32], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    mbarrier.inval.shared::cta.b64 [%a];
    selp.u64 %d3, 2, 0, %p1; add.u64 %d2, %d2, %d3; st.global.u64 [%o+56], %d2;)",
                                out);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u64>{1, 2, 3, 4, 1, 2, 0, 2}));
}

TEST(PtxBarriers, StatesArrivalsAndDrops) {  // keeps W8
    std::vector<u64> out(8);
    const Fault fault = run_one(R"(
    mbarrier.init.shared.b64 [%a], 3;
    mbarrier.arrive.noComplete.shared.b64 %d1, [%a], 2;
    mbarrier.pending_count.b64 %r1, %d1; cvt.u64.u32 %d2, %r1; st.global.u64 [%o], %d2;
    mbarrier.arrive_drop.shared.b64 %d3, [%a];
    mbarrier.pending_count.b64 %r1, %d3; cvt.u64.u32 %d2, %r1; st.global.u64 [%o+8], %d2;
    mbarrier.test_wait.shared.b64 %p0, [%a], %d1; selp.u64 %d2, 1, 0, %p0; st.global.u64 [%o+16], %d2;
    mbarrier.arrive.shared.b64 %d4, [%a], 2;
    mbarrier.test_wait.parity.shared.b64 %p0, [%a], 1; selp.u64 %d2, 1, 0, %p0; st.global.u64 [%o+24], %d2;
    mbarrier.arrive.shared.b64 _, [%a];
    mbarrier.test_wait.parity.shared.b64 %p0, [%a], 0; selp.u64 %d2, 1, 0, %p0; st.global.u64 [%o+32], %d2;
    cp.async.mbarrier.arrive.shared.b64 [%a];
    mbarrier.test_wait.parity.shared.b64 %p0, [%a], 0; selp.u64 %d2, 1, 0, %p0; st.global.u64 [%o+40], %d2;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%a];
    mbarrier.test_wait.parity.shared.b64 %p0, [%a], 0; selp.u64 %d2, 1, 0, %p0; st.global.u64 [%o+48], %d2;)",
                                out);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u64>{3, 1, 1, 1, 0, 0, 1, 0}));
}

// Each misuse is a fault with the instruction's line and the object's address.
TEST(PtxBarriers, MisuseIsAFault) {  // keeps W8
    struct Case {
        const char* instructions;
        FaultKind kind;
        const char* says;
    };
    const Case cases[] = {
        {"mbarrier.arrive.shared.b64 _, [%a];", FaultKind::launch_failed, "nothing has initialised it"},
        {"mbarrier.init.shared.b64 [%a], 1; mbarrier.inval.shared.b64 [%a]; mbarrier.arrive.shared.b64 _, [%a];",
         FaultKind::launch_failed, "nothing has initialised it"},
        {"mbarrier.init.shared.b64 [%a], 0;", FaultKind::launch_failed, "not in 1 to 1048575"},
        {"mbarrier.init.shared.b64 [%a], 1; mbarrier.arrive.shared.b64 _, [%a], 2;", FaultKind::launch_failed,
         "more threads arrive"},
        {"mbarrier.init.shared.b64 [%a+4], 1;", FaultKind::misaligned, "not a multiple of 8"},
        {"mbarrier.init.shared.b64 [%a+64], 1;", FaultKind::illegal_address, "leaves the block's shared memory"},
        {"mbarrier.init.b64 [%o], 1;", FaultKind::illegal_instruction, "does not lie in shared memory"},
        {"cp.async.bulk.global.shared::cta.bulk_group [%o], [%a], 24;", FaultKind::misaligned, "a multiple of 16"},
        {"cp.async.ca.shared.global [%a+2], [%o], 4;", FaultKind::misaligned, "not a multiple of 4"},
        {"mov.u32 %r1, 8; cp.async.ca.shared.global [%a], [%o], 4, %r1;", FaultKind::illegal_instruction, "more bytes"},
    };
    for (const Case& one : cases) {
        std::vector<u64> out(8);
        const Fault fault = run_one(one.instructions, out);
        EXPECT_EQ(fault.kind, one.kind) << one.instructions << ": " << fault.message;
        EXPECT_NE(fault.message.find(one.says), std::string::npos) << one.instructions << ": " << fault.message;
        EXPECT_NE(fault.message.find("kernel k, PTX line 9, block (0, 0, 0), thread (0, 0, 0)"), std::string::npos)
            << fault.message;
    }
}

// Tensor copies, reductions in bulk and multicast are not there.
TEST(PtxBarriers, OtherAsynchronousCopiesAreRefusedByName) {  // keeps W8
    for (const char* const instruction :
         {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%o, {%r0}], [%a];",
          "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%o], [%a], 16;",
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%o], 16, [%a], "
          "%r0;",
          "cp.async.cg.shared.global [%a], [%o], 8;", "mbarrier.arrive.global.b64 %d0, [%o];"}) {
        Buffers buffers;
        const Loaded loaded(kernel_with(instruction), buffers);
        const Entry* const entry = loaded.program.entry("k");
        ASSERT_NE(entry, nullptr) << instruction << ": " << loaded.program.refusal().what;
        const std::string name = std::string(instruction).substr(0, std::string(instruction).find(' '));
        EXPECT_TRUE(entry->refusal.what.starts_with(name + " is not modelled")) << entry->refusal.what;
        EXPECT_EQ(entry->refusal.line, 9u);
        const bool has_remedy = entry->refusal.what.find("; instead, ") != std::string::npos;
        EXPECT_EQ(has_remedy, name.find("tensor") != std::string::npos || name.starts_with("cp.reduce"))
            << entry->refusal.what;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
