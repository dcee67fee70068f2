// SPDX-License-Identifier: Apache-2.0
// Memory that threads take while they run: alloca and the kernel's heap; and brkpt.
#include "made_by_nvcc.hpp"

#include <list>

namespace isthmus::ptx::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A heap with so much memory, of which each block is a buffer of its own.
class WithHeap final : public Memory {
public:
    explicit WithHeap(std::size_t bytes) : left_(bytes) {}
    MemoryWindow window(std::uint64_t address, std::uint32_t bytes, bool writes) override {
        for (auto& block : blocks) {
            const auto begin = reinterpret_cast<std::uint64_t>(block.data());
            const std::uint64_t size = block.size() * sizeof(u64);
            if (address >= begin && address - begin < size && size - (address - begin) >= bytes) {
                return {begin, size, reinterpret_cast<std::byte*>(begin), true, {}};
            }
        }
        return others.window(address, bytes, writes);
    }
    std::uint64_t update(void* word, std::uint32_t bytes, Update& update) override {
        return others.update(word, bytes, update);
    }
    void print(std::string_view) override {}
    void pause() override {}
    bool set_condition(std::uint64_t, std::uint32_t) override { return false; }
    std::uint64_t allocate(std::uint64_t bytes) override {
        if (bytes > left_) return 0;
        left_ -= bytes;
        return reinterpret_cast<std::uint64_t>(blocks.emplace_back((bytes + 7) / 8).data());
    }
    std::string release(std::uint64_t address) override {
        for (auto block = blocks.begin(); block != blocks.end(); ++block) {
            if (reinterpret_cast<std::uint64_t>(block->data()) != address) continue;
            left_ += block->size() * sizeof(u64);
            freed.splice(freed.end(), blocks, block);
            return {};
        }
        return "malloc() did not give it";
    }

    Buffers others;
    std::list<std::vector<u64>> blocks, freed;

private:
    std::size_t left_;
};

Fault run_with(WithHeap& memory, const Program& program, const char* name, u32 threads, std::vector<u64> arguments) {
    const Entry* const entry = program.entry(name);
    if (entry == nullptr || entry->refusal.refused()) return {FaultKind::illegal_instruction, "it cannot run"};
    std::vector<std::byte> block(entry->parameter_bytes);
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        std::memcpy(block.data() + entry->parameters[at].offset_bytes, &arguments[at],
                    entry->parameters[at].size_bytes);
    }
    Execution execution(program, *entry, blocks_of(1, threads), block, memory);
    execution.run();
    return execution.fault();
}

TEST(PtxHeap, ListsAndVirtualFunctionsLiveInTheHeap) {  // keeps W8
    WithHeap memory(1 << 20);
    Program program(made_by_nvcc("heap"));
    std::vector<std::vector<u64>> contents;
    std::vector<u64> addresses;
    for (const GlobalVariable& variable : program.variables()) {
        contents.emplace_back(variable.size_bytes / 8 + 2);
        addresses.push_back(memory.others.add(contents.back()));
    }
    program.place(addresses);
    for (std::size_t at = 0; at < contents.size(); ++at) {
        const std::vector<std::byte> content = program.content(at);
        std::memcpy(contents[at].data(), content.data(), content.size());
    }
    std::vector<u64> heads(64);
    std::vector<u32> sums(64);
    const u64 pheads = memory.others.add(heads), psums = memory.others.add(sums);
    Fault fault = run_with(memory, program, "build_list", 64, {pheads, 5});
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(memory.blocks.size(), 320u);
    fault = run_with(memory, program, "sum_list", 64, {pheads, psums});
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_TRUE(memory.blocks.empty());
    for (u32 at = 0; at < 64; ++at) EXPECT_EQ(sums[at], 500 * at + 10);
    fault = run_with(memory, program, "shapes", 64, {psums});
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (u32 at = 0; at < 64; ++at) EXPECT_EQ(sums[at], at % 2 != 0 ? at * at : 3 * at);
    EXPECT_TRUE(program.entry("build_list")->uses_heap);
    EXPECT_FALSE(Program(made_by_nvcc("stack")).entry("stop")->uses_heap);
}

// What was freed is gone at once, also for an instruction that reached it before.
TEST(PtxHeap, FreedMemoryAndWrongAddressesAreFaults) {  // keeps W8
    WithHeap memory(1 << 16);
    const Program program(made_by_nvcc("heap"));
    std::vector<u64> out(64);
    const u64 place = memory.others.add(out);
    Fault fault = run_with(memory, program, "after_free", 1, {place});
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    EXPECT_NE(fault.message.find("it is no buffer"), std::string::npos) << fault.message;
    fault = run_with(memory, program, "read_again", 1, {place});
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    EXPECT_EQ(static_cast<u32>(out[0]), 7u);
    fault = run_with(memory, program, "free_twice", 1, {place});
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("kernel free_twice, PTX line "), std::string::npos) << fault.message;
    EXPECT_NE(fault.message.find("malloc() did not give it"), std::string::npos) << fault.message;
    EXPECT_EQ(static_cast<u32>(out[0]), 1u);
    EXPECT_EQ(run_with(memory, program, "free_null", 1, {}).kind, FaultKind::none);
    fault = run_with(memory, program, "exhaust", 1, {place, 1000});
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out[0], 65u);
    EXPECT_EQ(out[1], 1u);
}

int expected_squares(int threads) {
    int sum = 0;
    for (int round = 0; round < 100; ++round) {
        for (int at = 0; at < threads + 1 + round; ++at) sum += at * at;
    }
    return sum;
}

// Each call's memory ends with it: 100 calls need no more than the largest one.
TEST(PtxStack, AllocaLastsAsLongAsItsFunction) {  // keeps W8
    Buffers buffers;
    std::vector<int> out(64);
    const u64 place = buffers.add(out);
    Loaded loaded(made_by_nvcc("stack"), buffers);
    Fault fault = loaded.run("squares", blocks_of(1, 64), place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    for (int at = 0; at < 64; ++at) EXPECT_EQ(out[static_cast<std::size_t>(at)], expected_squares(at));
    fault = loaded.run("in_entry", blocks_of(1, 64), place, 10000);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    int sum = 0;
    for (int at = 0; at < 10000; ++at) sum += static_cast<signed char>(at + 63);
    EXPECT_EQ(out[63], sum);
    fault = loaded.run("in_entry", blocks_of(1, 64), place, 17000);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("alloca of 17000 bytes: the stack has "), std::string::npos) << fault.message;
}

// It never reaches into what the function declares.
TEST(PtxStack, AllocaLeavesTheVariablesOfItsFunction) {  // keeps W8
    for (const int bytes : {16384, 16400}) {
        Buffers buffers;
        const std::string text = module_of(
            ".visible .entry k() { .local .align 8 .b8 own[64]; .reg .b64 %d<2>;\n"
            "mov.u64 %d0, own; st.local.u64 [%d0], 1; alloca.u64 %d1, " +
            std::to_string(bytes) + ", 16; ret; }");
        Loaded loaded(text, buffers);
        const Fault fault = loaded.run("k", blocks_of(1, 32));
        EXPECT_EQ(fault.kind, bytes > 16384 ? FaultKind::launch_failed : FaultKind::none) << fault.message;
    }
}

TEST(PtxStack, SavedEndsAreRestored) {  // keeps W8
    Buffers buffers;
    std::vector<u64> out(4);
    const u64 place = buffers.add(out);
    const std::string text = module_of(R"(
.visible .entry k(.param .u64 out) {
    .reg .b64 %d<8>, %o; ld.param.u64 %o, [out];
    stacksave.u64 %d0;
    alloca.u64 %d1, 40, 64; alloca.u64 %d2, 1;
    st.local.u64 [%d1], 7; st.local.u8 [%d2], 8; ld.local.u64 %d3, [%d1]; st.global.u64 [%o], %d3;
    and.b64 %d4, %d1, 63; st.global.u64 [%o+8], %d4;
    stackrestore.u64 %d0;
    alloca.u64 %d5, 40, 64; sub.u64 %d5, %d5, %d1; st.global.u64 [%o+16], %d5;
    stackrestore.u64 0;
})");
    Loaded loaded(text, buffers);
    const Fault fault = loaded.run("k", blocks_of(1, 1), place);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("PTX line 13"), std::string::npos) << fault.message;
    EXPECT_EQ(out, (std::vector<u64>{7, 0, 0, 0}));
}

TEST(PtxStack, ABreakpointTraps) {  // keeps W8
    Buffers buffers;
    std::vector<int> out(32);
    const u64 place = buffers.add(out);
    Loaded loaded(made_by_nvcc("stack"), buffers);
    const Fault fault = loaded.run("stop", blocks_of(1, 32), place);
    EXPECT_EQ(fault.kind, FaultKind::launch_failed);
    EXPECT_NE(fault.message.find("thread (3, 0, 0): brkpt was executed, and there is no debugger"), std::string::npos)
        << fault.message;
    EXPECT_EQ(out[3], 1);
}

TEST(PtxStack, ABreakpointTakesNoOperand) {  // keeps W8
    for (const char* const opcode : {"brkpt", "trap"}) {
        const Program program(module_of(".visible .entry k() { " + std::string(opcode) + " 1; ret; }"));
        EXPECT_EQ(program.entries().at(0).refusal.what, std::string(opcode) + " has 1 operands");
        EXPECT_FALSE(Program(module_of(".visible .entry k() { " + std::string(opcode) + "; ret; }"))
                         .entries()
                         .at(0)
                         .refusal.refused());
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
