// SPDX-License-Identifier: Apache-2.0
// Copies to, from and between arrays: by calls, in graphs, in batches, and of arrays that are gone.
#include "sim_array_scene.hpp"
#include "sim_capture_scene.hpp"

#include <csignal>
#include <cstdio>

namespace isthmus::sim::test {
namespace {

using Bytes = std::vector<unsigned char>;

TEST(SimArrayCopies, ReachEachRowAndLayer) {
    in_own_process([] {
        open_device();
        Array* const volume = new_array(described(4, 3, 2, u16));
        const Bytes values = ascending(48);
        REQUIRE_CODE(copied(array_end(volume), host_end(values.data(), 8, 3), 8, 3, 2), 0);
        REQUIRE_THAT(content(volume, 8, 3, 2) == values);
        // A part, from rows with gaps: 2 elements of rows 1 and 2 of layer 1.
        const Bytes rows = {200, 201, 202, 203, 0, 0, 210, 211, 212, 213};
        REQUIRE_CODE(copied(array_end(volume, 2, 1, 1), host_end(rows.data(), 6, 2), 4, 2), 0);
        Bytes expected = values;
        for (std::size_t i = 0; i < 4; ++i) {
            expected[24 + 8 + 2 + i] = static_cast<unsigned char>(200 + i);
            expected[24 + 16 + 2 + i] = static_cast<unsigned char>(210 + i);
        }
        REQUIRE_THAT(content(volume, 8, 3, 2) == expected);
        // To device memory and back into layers, by the structure of two dimensions.
        const Address memory = device_memory(64);
        Array* const layers = new_array(described(4, 3, 2, u16, 1, layered));
        REQUIRE_CODE(copied(device_end(memory, 8, 3), array_end(volume), 8, 3, 2), 0);
        REQUIRE_CODE(copied(array_end(layers), device_end(memory, 8, 3), 8, 3, 2), 0);
        REQUIRE_THAT(content(layers, 8, 3, 2) == expected);
        Copy2D flat = {};
        flat.source_type = 3;
        flat.source_array = layers;
        flat.source_y = 1;
        flat.destination_type = 1;
        Bytes two_rows(16);
        flat.destination_host = two_rows.data();
        flat.width_bytes = 8;
        flat.height = 2;
        REQUIRE_CODE(cuMemcpy2D_v2(&flat), 0);
        REQUIRE_THAT(two_rows == Bytes(expected.begin() + 8, expected.begin() + 24));
        Stream* const stream = new_stream();
        REQUIRE_CODE(cuMemcpy2DAsync_v2(&flat, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuMemcpy2DUnaligned_v2(&flat), 0);
        // Layers without rows.
        Array* const lines = new_array(described(4, 0, 3, u8, 1, layered));
        REQUIRE_CODE(copied(array_end(lines, 0, 0, 1), host_end(values.data(), 4, 1), 4, 1, 2), 0);
        REQUIRE_THAT(content(lines, 4, 1, 3)[4] == 0 && content(lines, 4, 1, 3)[11] == 7);
    });
}

TEST(SimArrayCopies, ThatLeaveTheArrayAreRefused) {
    in_own_process([] {
        open_device();
        Array* const array = new_array(described(4, 3, 2, u32));
        Array* const bytes = new_array(described(64, 3, 2, u8));
        const Bytes values = ascending(256);
        const auto code = [&](const Copy3DEnd& to, std::size_t width_bytes, std::size_t height, std::size_t depth) {
            return copied(to, host_end(values.data(), 16, 4), width_bytes, height, depth);
        };
        REQUIRE_CODE(code(array_end(array), 16, 3, 2), 0);
        REQUIRE_CODE(code(array_end(array, 4), 16, 1, 1), 1);
        REQUIRE_CODE(code(array_end(array, 0, 1), 16, 3, 1), 1);
        REQUIRE_CODE(code(array_end(array, 0, 0, 1), 16, 3, 2), 1);
        REQUIRE_CODE(code(array_end(array, ~std::size_t{0} - 3), 8, 1, 1), 1);
        // As a driver 580 on an H200: they may cut elements, and elements may differ in size.
        REQUIRE_CODE(code(array_end(array, 2), 4, 1, 1), 0);
        REQUIRE_THAT(content(array, 16, 3, 2)[2] == 0 && content(array, 16, 3, 2)[6] == 6);
        REQUIRE_CODE(code(array_end(array), 6, 1, 1), 0);
        Copy3DEnd level = array_end(array);
        level.lod = 1;
        REQUIRE_CODE(code(level, 16, 1, 1), 1);
        REQUIRE_CODE(copied(array_end(bytes), array_end(array), 16), 0);
        REQUIRE_THAT(content(bytes, 64, 3, 2)[5] == 5);
        REQUIRE_CODE(copied(array_end(new_array(described(8, 0, 0, f32))), array_end(array, 0, 1, 1), 16), 0);
    });
}

TEST(SimArrayCopies, OfLinesGoByOffsets) {
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        Array* const line = new_array(described(16, 0, 0, u16));
        Array* const other = new_array(described(16, 0, 0, 0x10));  // other elements of the same size
        const Bytes values = ascending(32);
        const Address memory = device_memory(32);
        Bytes got(32);
        REQUIRE_CODE(cuMemcpyHtoA_v2(line, 0, values.data(), 32), 0);
        REQUIRE_CODE(cuMemcpyAtoA_v2(other, 4, line, 2, 28), 0);
        REQUIRE_CODE(cuMemcpyAtoD_v2(memory, other, 4, 28), 0);
        REQUIRE_CODE(cuMemcpyDtoA_v2(line, 0, memory, 28), 0);
        REQUIRE_CODE(cuMemcpyAtoH_v2(got.data(), line, 0, 32), 0);
        REQUIRE_THAT(got[0] == 2 && got[27] == 29 && got[28] == 28);
        REQUIRE_CODE(cuMemcpyHtoAAsync_v2(line, 2, values.data(), 4, stream), 0);
        REQUIRE_CODE(cuMemcpyAtoHAsync_v2(got.data(), line, 0, 8, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(got[0] == 2 && got[2] == 0 && got[5] == 3 && got[6] == 8);
        REQUIRE_CODE(cuMemcpyAtoH_v2(got.data(), line, 2, 32), 1);
        // As a driver 580 on an H200: parts of elements, elements of another size, and the first row of several.
        REQUIRE_CODE(cuMemcpyAtoH_v2(got.data(), line, 1, 2), 0);
        REQUIRE_CODE(cuMemcpyAtoH_v2(got.data(), line, 0, 3), 0);
        REQUIRE_CODE(cuMemcpyAtoH_v2(nullptr, line, 0, 2), 1);
        REQUIRE_CODE(cuMemcpyAtoA_v2(new_array(described(16, 0, 0, u8)), 0, line, 0, 2), 0);
        Array* const rows = new_array(described(16, 2, 0, u8));
        REQUIRE_CODE(cuMemcpyHtoA_v2(rows, 0, values.data(), 16), 0);
        REQUIRE_THAT(content(rows, 16, 2)[15] == 15);
        REQUIRE_CODE(cuMemcpyHtoA_v2(rows, 0, values.data(), 32), 1);
        REQUIRE_CODE(cuMemcpyDtoA_v2(line, 0, 0, 2), 1);
    });
}

TEST(SimArrayCopies, AreNodesOfGraphs) {
    in_own_process([] {
        CaptureScene s = open_scene();
        Array* const array = new_array(described(8, 2, 0, u8));
        GraphObject* graph = nullptr;
        NodeObject* node = nullptr;
        std::size_t count = 1;
        const Copy3D into = {device_end(s.memory, 8, 2), array_end(array), 8, 2, 1};
        const Copy3D out = {array_end(array), device_end(s.memory + 64, 8, 2), 8, 2, 1};
        REQUIRE_CODE(cuMemsetD8_v2(s.memory, 7, 16), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(s.stream, global), 0);
        REQUIRE_CODE(cuMemcpy3DAsync_v2(&into, s.stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(s.stream, &graph), 0);
        REQUIRE_CODE(cuGraphGetNodes(graph, &node, &count), 0);
        Copy3D known = {};
        REQUIRE_CODE(cuGraphMemcpyNodeGetParams(node, &known), 0);
        REQUIRE_THAT(known.destination.type == 3 && known.destination.array == array && known.height == 2);
        NodeObject *second = nullptr, *third = nullptr;
        REQUIRE_CODE(cuGraphAddMemcpyNode(&second, graph, &node, 1, &out, s.context), 0);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, graph, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(content(array, 8, 2) == Bytes(16, 7));
        unsigned char last = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&last, s.memory + 79, 1), 0);
        REQUIRE_THAT(last == 7);
        Copy3D wrong = out;
        wrong.source.x_bytes = 1;
        REQUIRE_CODE(cuGraphAddMemcpyNode(&third, graph, nullptr, 0, &wrong, s.context), 1);
        wrong.source.array = nullptr;
        REQUIRE_CODE(cuGraphAddMemcpyNode(&third, graph, nullptr, 0, &wrong, s.context), 1);
        // An instance keeps the types of memory.
        const Copy3D line = {device_end(s.memory), array_end(array), 8, 1, 1},
                     plain = {device_end(s.memory), device_end(s.memory + 64), 8, 1, 1};
        GraphObject* small = nullptr;
        REQUIRE_CODE(cuGraphCreate(&small, 0), 0);
        REQUIRE_CODE(cuGraphAddMemcpyNode(&third, small, nullptr, 0, &line, s.context), 0);
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, small, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, third, &plain, s.context), 1);
        const Copy3D other_row = {device_end(s.memory), array_end(array, 0, 1), 8, 1, 1};
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, third, &other_row, s.context), 0);
    });
}

TEST(SimArrayCopies, IntoAnArrayThatIsGoneLoseTheDevice) {
    in_own_process(
        [] {
            CaptureScene s = open_scene();
            Array* const array = new_array(described(8, 0, 0, u8));
            GraphObject* graph = nullptr;
            NodeObject* node = nullptr;
            GraphExec* instance = nullptr;
            const Copy3D into = {device_end(s.memory), array_end(array), 8, 1, 1};
            REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
            REQUIRE_CODE(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &into, s.context), 0);
            REQUIRE_CODE(cuGraphInstantiate_v2(&instance, graph, nullptr, nullptr, 0), 0);
            // Work that was submitted before is waited for.
            Gate gate;
            REQUIRE_CODE(launch_hold(s.stream, gate), 0);
            REQUIRE_CODE(cuMemcpyHtoAAsync_v2(array, 0, s.host.data(), 8, s.stream), 0);
            std::thread([&] {
                wait_until(gate.begun);
                gate.released = 1;
            }).detach();
            REQUIRE_CODE(cuArrayDestroy(array), 0);
            REQUIRE_CODE(cuStreamQuery(s.stream), 0);
            REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(s.stream), 700);
        },
        "a copy of device 0 cannot reach its memory: it was freed");
}

TEST(SimArrayCopies, InBatchesCountElements) {
    in_own_process([] {
        if (version() < 12080) return;
        open_device();
        Stream* const stream = new_stream();
        Array *const a = new_array(described(4, 3, 2, u32)), *const b = new_array(described(4, 3, 2, f32));
        const Bytes values = ascending(96);
        BatchedCopy all[2] = {};
        all[0].source.type = 1;
        all[0].source.pointer = {reinterpret_cast<Address>(values.data()), 0, 0, {}};
        all[0].destination.type = 2;
        all[0].destination.array = {a, {0, 0, 0}};
        all[0].width = 4;
        all[0].height = 3;
        all[0].depth = 2;
        all[0].source_order = 2;
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, all, 0, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(content(a, 16, 3, 2) == values);
        all[1] = all[0];
        all[1].source.type = 2;
        all[1].source.array = {a, {1, 1, 1}};
        all[1].destination.array = {b, {2, 0, 0}};
        all[1].width = 2;
        all[1].height = 2;
        all[1].depth = 1;
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, &all[1], 0, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        const Bytes got = content(b, 16, 3, 2);
        REQUIRE_THAT(got[8] == 48 + 16 + 4 && got[15] == 48 + 16 + 11 && got[24] == 48 + 32 + 4);
        // Rows with gaps are counted in elements too: 5 of 4 bytes.
        const Bytes wide = ascending(16 + 20);
        all[0].source.pointer = {reinterpret_cast<Address>(wide.data()), 5, 0, {}};
        all[0].height = 2;
        all[0].depth = 1;
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, all, 0, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(content(a, 16, 3, 2)[16] == 20);
        const BatchedCopy right = all[1];
        const auto refused = [&](Result code) {
            std::size_t failed = 0;
            REQUIRE_CODE(cuMemcpy3DBatchAsync(1, &all[1], &failed, 0, stream), code);
            REQUIRE_THAT(failed == 0);
            all[1] = right;
        };
        all[1].source.array.offset[0] = 3;
        refused(1);
        all[1].source.array.offset[0] = ~std::size_t{0} / 2;
        refused(1);
        all[1].width = 5;
        refused(1);
        all[1].destination.array.array = new_array(described(4, 3, 2, u8));
        refused(1);
    });
}

// As a driver 580 on an H200, which ended in a segmentation fault; a destroyed array is assumed to do the same.
TEST(SimArrayCopies, ABatchWithoutAnArrayEndsTheProcess) {
    const auto crashes = [](bool destroyed, const char* says) {
        in_own_process_faults(
            [&] {
                open_device();
                if (version() < 12080) {
                    std::fprintf(stderr, "%s\n", says);
                    std::raise(SIGSEGV);
                }
                Array* const array = new_array(described(4, 3, 2, u32));
                REQUIRE_CODE(cuArrayDestroy(array), 0);
                static unsigned char bytes[96];
                BatchedCopy one = {};
                one.source.type = 1;
                one.source.pointer = {reinterpret_cast<Address>(bytes), 0, 0, {}};
                one.destination.type = 2;
                one.destination.array = {destroyed ? array : nullptr, {0, 0, 0}};
                one.width = one.height = one.depth = 1;
                one.source_order = 1;
                cuMemcpy3DBatchAsync_v2(1, &one, 0, new_stream());
            },
            says);
    };
    crashes(false, "a batch of copies with an array that is null");
    crashes(true, "a batch of copies of an array that is destroyed");
}

TEST(SimArrayCopies, BetweenDevicesNameTheContexts) {
    in_own_process([] {
        int devices = 0;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        Context* const second = open_device(1);
        Array* const there = new_array(described(8, 2, 0, u8));
        Context* const first = open_device(0);
        Array* const here = new_array(described(8, 2, 0, u8));
        const Bytes values = ascending(16);
        REQUIRE_CODE(copied(array_end(here), host_end(values.data()), 8, 2), 0);
        Copy3D copy = {array_end(here), array_end(there), 8, 2, 1};
        REQUIRE_CODE(cuMemcpy3D_v2(&copy), 400);  // an array of another device
        copy.source.context = first;
        copy.destination.context = second;
        REQUIRE_CODE(cuMemcpy3DPeer(&copy), 0);
        REQUIRE_CODE(cuMemcpy3DPeerAsync(&copy, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        copy.destination.context = first;
        REQUIRE_CODE(cuMemcpy3DPeer(&copy), 400);
        REQUIRE_CODE(cuCtxSetCurrent(second), 0);
        REQUIRE_THAT(content(there, 8, 2) == values);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
