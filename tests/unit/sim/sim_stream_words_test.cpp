// SPDX-License-Identifier: Apache-2.0
// Waits for values in memory and writes of values: in streams, in batches, in captures and as nodes.
#include "sim_capture_scene.hpp"

namespace isthmus::sim::test {
namespace {

constexpr unsigned at_least = 0, equal = 1, any_bit = 2, nor = 3, then_flush = 1u << 30;

MemoryOperation operation(int type, Address address, std::uint64_t value, unsigned flags = 0) {
    return {type, 0, address, value, flags, 0, 0, 0};
}

struct WordScene {
    CaptureScene scene = open_scene();
    void* host = nullptr;
    Address device = 0;
    WordScene() {
        REQUIRE_CODE(cuMemHostAlloc(&host, 4096, 2), 0);  // mapped
        REQUIRE_CODE(cuMemHostGetDevicePointer_v2(&device, host, 0), 0);
        std::fill_n(static_cast<std::uint64_t*>(host), 512, 0);
    }
    std::atomic<std::uint32_t>& word(std::size_t index = 0) {
        return reinterpret_cast<std::atomic<std::uint32_t>*>(host)[index];
    }
    void synchronize() { REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0); }
};

TEST(SimStreamWords, AWaitEndsWhenTheCpuWritesTheValue) {
    in_own_process([] {
        WordScene w;
        REQUIRE_CODE(cuStreamWaitValue32_v2(w.scene.stream, w.device, 5, at_least), 0);
        REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.stream, w.device + 4, 9, 0), 0);
        REQUIRE_CODE(cuStreamQuery(w.scene.stream), 600);
        w.word() = 4;
        REQUIRE_CODE(cuStreamQuery(w.scene.stream), 600);
        REQUIRE_THAT(w.word(1) == 0);
        w.word() = 6;
        w.synchronize();
        REQUIRE_THAT(w.word(1) == 9);
    });
}

TEST(SimStreamWords, EachComparisonIsTheDocumentedOne) {
    in_own_process([] {
        WordScene w;
        struct Row {
            std::uint32_t now, wanted;
            unsigned how;
            bool holds;
        };
        const Row rows[] = {{5, 5, at_least, true},
                            {4, 5, at_least, false},
                            {0xFFFFFFFE, 2, at_least, false},  // wraps around
                            {2, 0xFFFFFFFE, at_least, true},
                            {5, 5, equal, true},
                            {6, 5, equal, false},
                            {6, 4, any_bit, true},
                            {3, 4, any_bit, false},
                            {0xFFFF0000, 0x0000FFFF, nor, false},
                            {0xFFFF0000, 0x00007FFF, nor, true}};
        for (const Row& row : rows) {
            if (row.how == nor && fact(123) == 0) continue;
            w.word(0) = row.now;
            w.word(1) = 0;
            REQUIRE_CODE(cuStreamWaitValue32_v2(w.scene.stream, w.device, row.wanted, row.how), 0);
            REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.stream, w.device + 4, 9, 0), 0);
            if (!row.holds) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a wait that ends too early has ended
                REQUIRE_CODE(cuStreamQuery(w.scene.stream), 600);
                REQUIRE_THAT(w.word(1) == 0);
                w.word(0) = row.how == nor ? 0 : row.wanted;
            }
            w.synchronize();
            REQUIRE_THAT(w.word(1) == 9);
        }
    });
}

TEST(SimStreamWords, SixtyFourBitsAndTwoStreams) {
    in_own_process([] {
        WordScene w;
        if (fact(122) == 0) {
            REQUIRE_CODE(cuStreamWriteValue64_v2(w.scene.stream, w.device, 1, 0), 801);
            return;
        }
        constexpr std::uint64_t big = (std::uint64_t{1} << 40) + 1;
        REQUIRE_CODE(cuStreamWaitValue64_v2(w.scene.stream, w.device, big, equal), 0);
        REQUIRE_CODE(cuStreamWriteValue64_v2(w.scene.other, w.device, big, 0), 0);
        w.synchronize();
        REQUIRE_THAT(*static_cast<std::uint64_t*>(w.host) == big);
        REQUIRE_CODE(cuStreamWriteValue64_v2(w.scene.stream, w.device + 4, 1, 0), 1);  // not aligned
    });
}

TEST(SimStreamWords, InSeededOrderAnotherStreamWritesTheValue) {
    for (const char* seed : {"1", "2", "3", "4", "5"}) {
        in_own_process([seed] {
            ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
            ::setenv("ISTHMUS_SIM_SEED", seed, 1);
            open_device();
            Stream *const waiting = new_stream(), *const writing = new_stream();
            const Address memory = device_memory(64);
            REQUIRE_CODE(cuMemsetD8_v2(memory, 0, 64), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            // Two waits in one batch, whose values come from the other stream one after the other.
            MemoryOperation both[3] = {
                {1, 0, memory, 5, 0, 0, 0, 0}, {1, 0, memory + 4, 6, 0, 0, 0, 0}, {2, 0, memory + 8, 7, 0, 0, 0, 0}};
            REQUIRE_CODE(cuStreamBatchMemOp_v2(waiting, 3, both, 0), 0);
            REQUIRE_CODE(cuStreamWriteValue32_v2(writing, memory + 4, 6, 0), 0);
            REQUIRE_CODE(cuStreamWaitValue32_v2(writing, memory + 8, 7, 0), 0);
            REQUIRE_CODE(cuStreamQuery(writing), 600);
            Stream* const third = new_stream();
            REQUIRE_CODE(cuStreamWriteValue32_v2(third, memory, 5, 0), 0);
            REQUIRE_CODE(cuStreamSynchronize(waiting), 0);
            REQUIRE_CODE(cuStreamSynchronize(writing), 0);
            int found[3] = {};
            REQUIRE_CODE(cuMemcpyDtoH_v2(found, memory, 12), 0);
            REQUIRE_THAT(found[0] == 5 && found[1] == 6 && found[2] == 7);
        });
    }
}

TEST(SimStreamWords, ABatchRunsInItsOrder) {
    in_own_process([] {
        WordScene w;
        MemoryOperation all[] = {operation(2, w.device, 7), operation(1, w.device + 4, 1, equal), operation(6, 0, 0),
                                 operation(2, w.device + 8, 3)};
        REQUIRE_CODE(cuStreamBatchMemOp_v2(w.scene.stream, 4, all, 0), 0);
        REQUIRE_CODE(cuStreamQuery(w.scene.stream), 600);
        w.word(1) = 1;
        w.synchronize();
        REQUIRE_THAT(w.word(0) == 7 && w.word(2) == 3);
        REQUIRE_CODE(cuStreamBatchMemOp_v2(w.scene.stream, 256, all, 0), 1);
        REQUIRE_CODE(cuStreamBatchMemOp_v2(w.scene.stream, 4, nullptr, 0), 1);
        REQUIRE_CODE(cuStreamBatchMemOp_v2(w.scene.stream, 4, all, 1), 1);
        all[3].type = 7;
        REQUIRE_CODE(cuStreamBatchMemOp_v2(w.scene.stream, 4, all, 0), 1);
        w.word(0) = 0;
        w.synchronize();
        REQUIRE_THAT(w.word(0) == 0);  // none of a refused batch ran
    });
}

TEST(SimStreamWords, WrongOnesAreRefused) {
    in_own_process([] {
        WordScene w;
        Stream* const stream = w.scene.stream;
        REQUIRE_CODE(cuStreamWaitValue32_v2(stream, 0, 0, at_least), 1);
        REQUIRE_CODE(cuStreamWaitValue32_v2(stream, w.device + 2, 0, at_least), 1);
        REQUIRE_CODE(cuStreamWaitValue32_v2(stream, w.device, 0, 4), 1);
        REQUIRE_CODE(cuStreamWriteValue32_v2(stream, w.device, 0, 2), 1);
        REQUIRE_CODE(cuStreamWriteValue32_v2(stream, w.device, 0, 1), 1);  // 580, H200: a flag of the first version
        REQUIRE_CODE(cuStreamWaitValue32_v2(stream, w.device, 0, then_flush), fact(98) != 0 ? 0 : 801);
        MemoryOperation flush = operation(3, 0, 0);
        REQUIRE_CODE(cuStreamBatchMemOp_v2(stream, 1, &flush, 0), fact(98) != 0 ? 0 : 801);
        const int first = fact(92) != 0 ? 0 : 801;
        REQUIRE_CODE(cuStreamWaitValue32(stream, w.device, 0, at_least), first);
        REQUIRE_CODE(cuStreamWriteValue32(stream, w.device, 0, 0), first);
        REQUIRE_CODE(cuStreamWaitValue64(stream, w.device, 0, at_least), first);
        REQUIRE_CODE(cuStreamWriteValue64(stream, w.device, 0, 0), first);
        REQUIRE_CODE(cuStreamBatchMemOp(stream, 1, &flush, 0), first);
        Address managed = 0;
        if (fact(attribute::managed) != 0 && cuMemAllocManaged(&managed, 4096, 1) == 0) {
            REQUIRE_CODE(cuStreamWaitValue32_v2(stream, managed, 0, at_least), 1);  // documented, for both
            REQUIRE_CODE(cuStreamWriteValue32_v2(stream, managed, 3, 0), 1);
            MemoryOperation write = operation(2, managed, 3);
            REQUIRE_CODE(cuStreamBatchMemOp_v2(stream, 1, &write, 0), 1);
            w.synchronize();
            REQUIRE_THAT(*as_pointer(managed) == 0);
        }
        static std::uint32_t unknown = 0;
        REQUIRE_CODE(cuStreamWaitValue32_v2(stream, reinterpret_cast<Address>(&unknown), 0, at_least),
                     pageable() ? 0 : 1);
        w.synchronize();
    });
}

TEST(SimStreamWords, AWriteToFreedMemoryLosesTheDevice) {
    in_own_process(
        [] {
            WordScene w;
            Address memory = 0;
            REQUIRE_CODE(cuMemAlloc_v2(&memory, 4096), 0);
            Gate gate;
            REQUIRE_CODE(launch_hold(w.scene.stream, gate), 0);
            REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.stream, memory, 1, 0), 0);
            REQUIRE_CODE(cuMemFreeAsync(memory, w.scene.other), 0);
            REQUIRE_CODE(cuStreamSynchronize(w.scene.other), 0);
            gate.released = 1;
            REQUIRE_CODE(cuStreamSynchronize(w.scene.stream), 700);
        },
        "a write of a value of device 0 cannot reach its memory: it was freed");
}

TEST(SimStreamWords, AMemoryHandleIsTakenWhileAStreamWaits) {
    in_own_process([] {
        WordScene w;
        Address memory = 0;
        ShareableBytes bytes = {};
        REQUIRE_CODE(cuMemAlloc_v2(&memory, 4096), 0);
        REQUIRE_CODE(cuMemsetD32_v2(memory, 5, 1024), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);  // the stream does not wait for the fill, and the call below would
        REQUIRE_CODE(cuStreamWaitValue32_v2(w.scene.stream, memory, 6, equal), 0);
        REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.stream, memory + 4, 7, 0), 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const Result code = cuIpcGetMemHandle(&bytes, memory);
        REQUIRE_THAT(code == 0 || code == 801);
        REQUIRE_CODE(cuStreamQuery(w.scene.stream), 600);
        REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.other, memory, 6, 0), 0);  // the wait looks at the same memory
        w.synchronize();
        int values[3] = {};
        REQUIRE_CODE(cuMemcpyDtoH_v2(values, memory, sizeof(values)), 0);
        REQUIRE_THAT(values[0] == 6 && values[1] == 7 && values[2] == 5);
    });
}

TEST(SimStreamWords, TheCpuFaultsOnDeviceMemoryWhileAStreamWaits) {  // keeps A6
    const auto read_during_a_wait = [](bool in_host_memory) {
        WordScene w;
        const Address memory = device_memory(4096);
        const Address word = in_host_memory ? w.device : memory;
        REQUIRE_CODE(cuMemsetD32_v2(memory, 0, 1024), 0);
        REQUIRE_CODE(cuStreamWaitValue32_v2(w.scene.stream, word, 1, equal), 0);
        // Memory is open for each look alone.
        for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
             std::chrono::steady_clock::now() < end;) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            static_cast<void>(*as_pointer(memory + 64));
        }
    };
    in_own_process_faults([&] { read_during_a_wait(true); }, "no CPU can reach");
    in_own_process_faults([&] { read_during_a_wait(false); }, "no CPU can reach");
}

TEST(SimStreamWords, ALostDeviceEndsWaits) {
    in_own_process([] {
        WordScene w;
        REQUIRE_CODE(cuStreamWaitValue32_v2(w.scene.stream, w.device, 1, equal), 0);
        REQUIRE_CODE(launch_wild_store(w.scene.other, nullptr), 0);
        REQUIRE_CODE(cuStreamSynchronize(w.scene.other), 700);
        REQUIRE_CODE(cuStreamSynchronize(w.scene.stream), 700);
    });
}

TEST(SimStreamWords, CapturedOnesAreNodesThatAreReadAndSet) {
    in_own_process([] {
        WordScene w;
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(w.scene.stream, global), 0);
        REQUIRE_CODE(cuStreamWriteValue32_v2(w.scene.stream, w.device, 3, 0), 0);
        REQUIRE_CODE(cuStreamEndCapture(w.scene.stream, &graph), 0);
        REQUIRE_THAT(w.word() == 0);
        NodeObject *node = nullptr, *added = nullptr;
        std::size_t count = 1;
        int type = 0;
        REQUIRE_CODE(cuGraphGetNodes(graph, &node, &count), 0);
        REQUIRE_CODE(cuGraphNodeGetType(node, &type), 0);
        REQUIRE_THAT(type == 12);
        MemoryOperations known = {};
        REQUIRE_CODE(cuGraphBatchMemOpNodeGetParams(node, &known), 0);
        REQUIRE_THAT(known.context == w.scene.context && known.count == 1 && known.all[0].value == 3);
        MemoryOperation two[] = {operation(1, w.device, 3, equal), operation(2, w.device + 4, 4)};
        MemoryOperations asked = {w.scene.context, 2, two, 0};
        REQUIRE_CODE(cuGraphAddBatchMemOpNode(&added, graph, &node, 1, &asked), 0);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, w.scene.stream), 0);
        w.synchronize();
        REQUIRE_THAT(w.word(0) == 3 && w.word(1) == 4);
        two[0].flags = at_least;  // documented: the comparison, the address and the value change
        two[1].address = w.device + 8;
        two[1].value = 6;
        REQUIRE_CODE(cuGraphExecBatchMemOpNodeSetParams(instance, added, &asked), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, w.scene.stream), 0);
        w.synchronize();
        REQUIRE_THAT(w.word(2) == 6);
        asked.count = 1;  // their number does not
        REQUIRE_CODE(cuGraphExecBatchMemOpNodeSetParams(instance, added, &asked), 1);
        REQUIRE_CODE(cuGraphBatchMemOpNodeSetParams(added, &asked), 0);
        REQUIRE_CODE(cuGraphBatchMemOpNodeGetParams(added, &known), 0);
        REQUIRE_THAT(known.count == 1);
        asked.context = nullptr;
        REQUIRE_CODE(cuGraphBatchMemOpNodeSetParams(added, &asked), 1);
        REQUIRE_CODE(cuGraphAddBatchMemOpNode(&added, graph, nullptr, 0, &asked), 1);  // 580, H200
        REQUIRE_CODE(cuGraphAddBatchMemOpNode(&added, graph, nullptr, 0, nullptr), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
