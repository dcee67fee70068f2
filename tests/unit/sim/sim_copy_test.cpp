// SPDX-License-Identifier: Apache-2.0
// Copies and fills of rectangles and boxes: pitches, offsets, memory types, captures, and refused shapes.
#include "sim_test.hpp"

#include <cstring>
#include <limits>
#include <vector>

namespace isthmus::sim::test {
namespace {

constexpr int host = 1, device = 2, array = 3, unified = 4;

std::vector<unsigned char> counted(std::size_t count) {
    std::vector<unsigned char> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 13 + i / 256);
    return bytes;
}

// A 6 x 5 rectangle at (3, 2) of rows of 32 bytes, to (1, 1) of rows of 16.
Copy2D rectangle(Address from, void* to) {
    Copy2D rows = {};
    rows.source_type = device;
    rows.source_device = from;
    rows.source_pitch = 32;
    rows.source_x_bytes = 3;
    rows.source_y = 2;
    rows.destination_type = host;
    rows.destination_host = to;
    rows.destination_pitch = 16;
    rows.destination_x_bytes = 1;
    rows.destination_y = 1;
    rows.width_bytes = 6;
    rows.height = 5;
    return rows;
}

TEST(SimCopy, RectanglesGoFromOffsetsToOffsets) {  // keeps K22's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(1024);
        const std::vector<unsigned char> there = counted(1024);
        REQUIRE_CODE(cuMemcpyHtoDAsync_v2(memory, there.data(), 1024, stream), 0);
        for (const int type : {device, unified}) {
            std::vector<unsigned char> back(6 * 16);
            Copy2D rows = rectangle(memory, back.data());
            rows.source_type = type;
            REQUIRE_CODE(cuMemcpy2DAsync_v2(&rows, stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(stream), 0);
            for (std::size_t y = 0; y < 5; ++y) {
                for (std::size_t x = 0; x < 6; ++x) {
                    REQUIRE_THAT(back[(y + 1) * 16 + x + 1] == there[(y + 2) * 32 + x + 3]);
                }
                REQUIRE_THAT(back[(y + 1) * 16] == 0 && back[(y + 1) * 16 + 7] == 0);
            }
        }
        std::vector<unsigned char> back(6 * 16);
        const Copy2D rows = rectangle(memory, back.data());
        REQUIRE_CODE(cuMemcpy2DUnaligned_v2(&rows), 0);
        REQUIRE_THAT(back[17] == there[67]);
    });
}

TEST(SimCopy, RectanglesThatLeaveTheirRowsOrTheirMemoryAreInvalid) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(1024);
        std::vector<unsigned char> back(4096);
        const auto refuses = [&](Result code, auto change) {
            Copy2D rows = rectangle(memory, back.data());
            change(rows);
            REQUIRE_CODE(cuMemcpy2DAsync_v2(&rows, stream), code);
        };
        refuses(0, [](Copy2D&) {});
        refuses(1, [](Copy2D& c) { c.source_pitch = 8; });       // 3 + 6 bytes do not fit
        refuses(1, [](Copy2D& c) { c.destination_pitch = 6; });  // nor 1 + 6
        refuses(1, [](Copy2D& c) { c.source_pitch = std::size_t{1} << 32; });
        refuses(1, [](Copy2D& c) { c.height = 100; });  // exceeds the allocation
        refuses(1, [](Copy2D& c) { c.height = std::numeric_limits<std::size_t>::max(); });
        refuses(1, [](Copy2D& c) { c.source_x_bytes = std::numeric_limits<std::size_t>::max(); });
        refuses(1, [](Copy2D& c) { c.source_device = 0; });
        refuses(1, [](Copy2D& c) { c.source_type = 9; });
        refuses(1, [](Copy2D& c) { c.destination_type = array; });
        refuses(0, [](Copy2D& c) { c.width_bytes = 0; });
        refuses(0, [](Copy2D& c) { c.height = 0; });
        REQUIRE_CODE(cuMemcpy2DAsync_v2(nullptr, stream), 1);
    });
}

// A 4 x 3 x 2 box of planes of 8 rows of 16 bytes, packed.
Copy3D box(Address from, void* to) {
    Copy3D copy = {};
    copy.source = {2, 1, 1, 0, device, nullptr, from, nullptr, nullptr, 16, 8};
    copy.destination = {0, 0, 0, 0, host, to, 0, nullptr, nullptr, 4, 3};
    copy.width_bytes = 4;
    copy.height = 3;
    copy.depth = 2;
    return copy;
}

TEST(SimCopy, BoxesGoPlaneByPlane) {  // keeps K22's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(1024);
        const std::vector<unsigned char> there = counted(1024);
        REQUIRE_CODE(cuMemcpyHtoDAsync_v2(memory, there.data(), 1024, stream), 0);
        unsigned char back[2][3][4] = {};
        const Copy3D copy = box(memory, back);
        REQUIRE_CODE(cuMemcpy3DAsync_v2(&copy, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        for (std::size_t z = 0; z < 2; ++z) {
            for (std::size_t y = 0; y < 3; ++y) {
                for (std::size_t x = 0; x < 4; ++x) {
                    REQUIRE_THAT(back[z][y][x] == there[((z + 1) * 8 + y + 1) * 16 + x + 2]);
                }
            }
        }
        std::memset(back, 0, sizeof(back));
        REQUIRE_CODE(cuMemcpy3D_v2(&copy), 0);
        REQUIRE_THAT(back[1][2][3] == there[(2 * 8 + 3) * 16 + 5]);
    });
}

TEST(SimCopy, BoxesThatLeaveTheirPlanesAreInvalid) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(1024);
        std::vector<unsigned char> back(4096);
        const auto refuses = [&](Result code, auto change) {
            Copy3D copy = box(memory, back.data());
            change(copy);
            REQUIRE_CODE(cuMemcpy3DAsync_v2(&copy, stream), code);
        };
        refuses(0, [](Copy3D&) {});
        refuses(1, [](Copy3D& c) { c.source.pitch = 5; });
        refuses(1, [](Copy3D& c) { c.source.height = 3; });  // 1 + 3 rows do not fit
        refuses(1, [](Copy3D& c) { c.source.height = 0; });  // valid for one plane only
        refuses(1, [](Copy3D& c) { c.source.lod = 1; });
        refuses(1, [](Copy3D& c) { c.depth = 9; });
        refuses(1, [](Copy3D& c) { c.source.z = std::numeric_limits<std::size_t>::max(); });
        refuses(1, [](Copy3D& c) { c.source.type = array; });
        refuses(0, [](Copy3D& c) { c.depth = 0; });
        refuses(0, [](Copy3D& c) {
            c.depth = 1;
            c.source.height = c.destination.height = 0;
        });
        Copy3D between = box(memory, back.data());
        REQUIRE_CODE(cuMemcpy3DPeerAsync(&between, stream), 201);  // names no contexts
    });
}

TEST(SimCopy, BoxesGoBetweenContexts) {
    in_own_process([] {
        Context* context = open_device();
        const Address from = device_memory(1024), to = device_memory(24);
        const std::vector<unsigned char> there = counted(1024);
        REQUIRE_CODE(cuMemcpyHtoD_v2(from, there.data(), 1024), 0);
        Copy3D copy = box(from, nullptr);
        copy.destination.type = device;
        copy.destination.device = to;
        copy.source.context = copy.destination.context = context;
        Stream* stream = new_stream();
        REQUIRE_CODE(cuMemcpy3DPeerAsync(&copy, stream), 0);
        unsigned char back[24] = {};
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back, to, 24, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back[23] == there[(2 * 8 + 3) * 16 + 5]);
        REQUIRE_CODE(cuMemcpy3DPeer(&copy), 0);
    });
}

TEST(SimCopy, FillsOfRectanglesLeaveTheGapsAlone) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(256);
        unsigned char back[256] = {};
        REQUIRE_CODE(cuMemsetD8Async(memory, 0xee, 256, stream), 0);
        REQUIRE_CODE(cuMemsetD2D8Async(memory, 16, 0x11, 3, 2, stream), 0);
        REQUIRE_CODE(cuMemsetD2D16Async(memory + 64, 16, 0x2233, 2, 2, stream), 0);
        REQUIRE_CODE(cuMemsetD2D32Async(memory + 128, 16, 0x44556677, 1, 2, stream), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back, memory, 256, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back[2] == 0x11 && back[3] == 0xee && back[18] == 0x11 && back[32] == 0xee);
        REQUIRE_THAT(back[64] == 0x33 && back[67] == 0x22 && back[68] == 0xee && back[80] == 0x33);
        REQUIRE_THAT(back[128] == 0x77 && back[131] == 0x44 && back[132] == 0xee && back[147] == 0x44);
        REQUIRE_CODE(cuMemsetD2D16_v2(memory, 15, 1, 2, 2), 1);      // rows begin between two values
        REQUIRE_CODE(cuMemsetD2D32_v2(memory, 4, 1, 2, 2), 1);       // rows overlap
        REQUIRE_CODE(cuMemsetD2D32_v2(memory + 2, 16, 1, 2, 2), 1);  // misaligned
        REQUIRE_CODE(cuMemsetD2D8_v2(memory, 16, 1, 16, 17), 1);     // exceeds the allocation
        REQUIRE_CODE(cuMemsetD2D8_v2(memory, 0, 1, 16, 1), 0);       // one row needs no pitch
        REQUIRE_CODE(cuMemsetD2D32Async(memory, 16, 1, 0, 3, stream), 0);
    });
}

TEST(SimCopy, ShapesAreCapturedAndReadHostMemoryWhenTheGraphRuns) {  // keeps S15's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(1024), planes = device_memory(64);
        std::vector<unsigned char> pageable(1024, 1), back(6 * 16), line(64);
        GraphObject* graph = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        REQUIRE_CODE(cuMemcpyHtoDAsync_v2(memory, pageable.data(), 1024, stream), 0);
        REQUIRE_CODE(cuMemsetD2D8Async(memory, 32, 7, 4, 8, stream), 0);
        const Copy2D rows = rectangle(memory, back.data());
        REQUIRE_CODE(cuMemcpy2DAsync_v2(&rows, stream), 0);
        Copy3D copy = box(memory, nullptr);
        copy.destination.type = device;
        copy.destination.device = planes;
        REQUIRE_CODE(cuMemcpy3DAsync_v2(&copy, stream), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(line.data(), planes, 64, stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
        REQUIRE_THAT(back[17] == 0 && line[0] == 0);  // nothing has run so far
        std::fill(pageable.begin(), pageable.end(), static_cast<unsigned char>(9));
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back[17] == 7 && back[18] == 9 && line[0] == 9);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);  // the graph does not hold the memory
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
