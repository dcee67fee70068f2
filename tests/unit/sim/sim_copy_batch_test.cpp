// SPDX-License-Identifier: Apache-2.0
// Batches of copies, of lines and of boxes.
#include "sim_capture_scene.hpp"

#include <cstring>

namespace isthmus::sim::test {
namespace {

constexpr int in_stream_order = 1, during_call = 2, any_order = 3;

struct Batch {
    CaptureScene scene = open_scene();
    std::vector<unsigned char> source = std::vector<unsigned char>(256), back = std::vector<unsigned char>(256);
    std::vector<Address> to, from;
    std::vector<std::size_t> sizes, first_of = {0};
    std::vector<CopyAttributes> attributes = {{in_stream_order, {}, {}, 0}};
    Batch() {
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i);
    }
    void add(Address destination, Address origin, std::size_t bytes) {
        to.push_back(destination);
        from.push_back(origin);
        sizes.push_back(bytes);
    }
    void add_halves() {
        add(scene.memory, reinterpret_cast<Address>(source.data()), 128);
        add(scene.memory + 128, reinterpret_cast<Address>(source.data()) + 128, 128);
    }
    Result go(Stream* stream) {
        return cuMemcpyBatchAsync_v2(to.data(), from.data(), sizes.data(), to.size(), attributes.data(),
                                     first_of.data(), attributes.size(), stream);
    }
    Result go() { return go(scene.stream); }
    const std::vector<unsigned char>& result() {
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_CODE(cuMemcpyDtoH_v2(back.data(), scene.memory, back.size()), 0);
        return back;
    }
};

TEST(SimCopyBatch, AllCopiesRunInStreamOrder) {
    in_own_process([] {
        Batch b;
        Gate gate;
        b.add_halves();
        REQUIRE_CODE(launch_hold(b.scene.stream, gate), 0);
        REQUIRE_CODE(b.go(), 0);
        b.source[0] = 99;  // the source is read in stream order
        gate.released = 1;
        REQUIRE_THAT(b.result() == b.source);
    });
}

TEST(SimCopyBatch, ASourceOfTheCallIsReadBeforeItReturns) {
    in_own_process([] {
        Batch b;
        Gate gate;
        b.add_halves();
        b.attributes = {{during_call, {}, {}, 0}, {any_order, {}, {}, 1}};
        b.first_of = {0, 1};
        REQUIRE_CODE(launch_hold(b.scene.stream, gate), 0);
        REQUIRE_CODE(b.go(), 0);
        std::fill_n(b.source.begin(), 128, 7);
        gate.released = 1;
        const std::vector<unsigned char>& got = b.result();
        REQUIRE_THAT(got[0] == 0 && got[127] == 127 && got[128] == 128);
    });
}

TEST(SimCopyBatch, ASourceThatWasReadMayBeFreedBeforeTheBatchRuns) {
    in_own_process([] {
        int devices = 0;
        void* pinned = nullptr;
        open_device();
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        open_device(1);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 1), 0);  // portable; its end waits for device 1 alone
        std::memset(pinned, 7, 4096);
        Batch b;
        Gate gate;
        b.add(b.scene.memory, reinterpret_cast<Address>(pinned), 256);
        b.attributes[0].source_order = during_call;
        REQUIRE_CODE(launch_hold(b.scene.stream, gate), 0);
        REQUIRE_CODE(b.go(), 0);
        REQUIRE_CODE(cuMemFreeHost(pinned), 0);
        gate.released = 1;
        REQUIRE_THAT(b.result() == std::vector<unsigned char>(256, 7));
    });
}

TEST(SimCopyBatch, WrongAttributesAreRefusedAndNothingIsCopied) {
    in_own_process([] {
        Batch b;
        b.add_halves();
        REQUIRE_CODE(cuMemsetD8_v2(b.scene.memory, 1, 256), 0);
        const auto refused = [&](auto spoil) {
            Batch& same = b;
            const auto attributes = same.attributes;
            const auto first_of = same.first_of;
            spoil();
            REQUIRE_CODE(same.go(), 1);
            same.attributes = attributes;
            same.first_of = first_of;
        };
        refused([&] { b.attributes[0].source_order = 0; });
        refused([&] { b.attributes[0].source_order = 4; });
        refused([&] { b.attributes[0].flags = 2; });
        refused([&] { b.first_of[0] = 1; });
        refused([&] { b.attributes.clear(); });
        refused([&] {
            b.attributes.push_back(b.attributes[0]);
            b.first_of = {0, 2};
        });
        refused([&] {
            b.attributes.push_back(b.attributes[0]);
            b.first_of = {0, 0};
        });
        REQUIRE_CODE(b.go(nullptr), 1);  // documented: not the legacy stream
        b.sizes[1] = 1 << 20;            // leaves its allocation
        REQUIRE_CODE(b.go(), 1);
        const std::vector<unsigned char> ones(256, 1);
        REQUIRE_THAT(b.result() == ones);
        b.to.clear();
        REQUIRE_CODE(b.go(), 1);
    });
}

TEST(SimCopyBatch, DependentCopiesAreNamed) {
    in_own_process(
        [] {
            Batch b;
            b.add(b.scene.memory, reinterpret_cast<Address>(b.source.data()), 64);
            b.add(b.scene.memory + 128, b.scene.memory + 32, 64);
            REQUIRE_CODE(b.go(), 0);
            REQUIRE_CODE(cuStreamSynchronize(b.scene.stream), 0);
        },
        "touch the same memory");
}

// Halves of an image: rows of 256 bytes, each half at its own column.
struct Halves {
    Batch b;
    std::vector<unsigned char> image = std::vector<unsigned char>(1024);
    BatchedCopy all[2] = {};
    Halves() {
        for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<unsigned char>(i / 4);
        for (std::size_t i = 0; i < 2; ++i) {
            all[i].source.type = all[i].destination.type = 1;
            all[i].source.pointer = {reinterpret_cast<Address>(image.data()) + i * 128, 256, 2, {}};
            all[i].destination.pointer = {b.scene.memory + i * 128, 256, 2, {}};
            all[i].width = 128;
            all[i].height = all[i].depth = 2;
            all[i].source_order = in_stream_order;
        }
    }
    Result go() { return cuMemcpy3DBatchAsync_v2(2, all, 0, b.scene.stream); }
    void synchronize() { REQUIRE_CODE(cuStreamSynchronize(b.scene.stream), 0); }
};

TEST(SimCopyBatch, RowsThatLieBetweenThoseOfAnotherAreIndependent) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_STRICT", "1", 1);
        Halves h;
        REQUIRE_CODE(h.go(), 0);
        h.synchronize();
        std::vector<unsigned char> got(1024);
        REQUIRE_CODE(cuMemcpyDtoH_v2(got.data(), h.b.scene.memory, got.size()), 0);
        REQUIRE_THAT(got == h.image);
        h.all[1].destination.pointer = {h.b.scene.memory + 400, 300, 1, {}};  // other distances, between the rows too
        h.all[1].width = 1;
        h.all[1].height = 1;
        REQUIRE_CODE(h.go(), 0);
        h.synchronize();
    });
}

TEST(SimCopyBatch, OneCommonByteOfTwoRowsIsNamed) {
    const auto is_named = [](std::size_t offset, std::size_t row_bytes, std::size_t bytes, std::size_t rows) {
        in_own_process(
            [&] {
                Halves h;  // the rows of the first begin at 0, 256, 512 and 768
                h.all[1].destination.pointer = {h.b.scene.memory + offset, row_bytes, 0, {}};
                h.all[1].width = bytes;
                h.all[1].height = rows;
                h.all[1].depth = 1;
                REQUIRE_CODE(h.go(), 0);
                h.synchronize();
            },
            "copies 0 and 1 of a batch touch the same memory");
    };
    for (const std::size_t offset : {0, 127, 256 + 127, 512, 768, 768 + 127}) is_named(offset, 0, 1, 1);
    is_named(200, 0, 57, 1);   // ends in the second row
    is_named(400, 0, 113, 1);  // ends in the second layer
    is_named(400, 367, 4, 2);  // rows at other distances: the last byte of the second
}

TEST(SimCopyBatch, ARefusedBatchIsNotJudged) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_STRICT", "1", 1);
        Halves h;
        h.all[0].destination.pointer = h.all[1].destination.pointer;
        h.all[1].height = std::size_t{1} << 20;  // leaves its allocation
        h.all[1].source.pointer.layer_rows = h.all[1].destination.pointer.layer_rows = 0;
        REQUIRE_CODE(h.go(), 1);
        h.all[1].destination.pointer.row_length = h.all[1].source.pointer.row_length = std::size_t{1} << 43;
        h.all[1].depth = 4;  // its size is no number of 64 bits
        REQUIRE_CODE(h.go(), 1);
    });
}

TEST(SimCopyBatch, TheIndexIsThatOfTheProgram) {
    in_own_process(
        [] {
            Batch b;
            std::size_t failed = 7;
            const auto go = [&] {
                return cuMemcpyBatchAsync(b.to.data(), b.from.data(), b.sizes.data(), b.to.size(), b.attributes.data(),
                                          b.first_of.data(), 1, &failed, b.scene.stream);
            };
            b.add_halves();
            b.add(b.scene.memory + 256, reinterpret_cast<Address>(b.source.data()), 64);
            b.sizes[2] = 1 << 20;  // leaves its allocation
            REQUIRE_CODE(go(), 1);
            REQUIRE_THAT(failed == 2);
            b.sizes[1] = 0;  // 580, H200: refused
            REQUIRE_CODE(go(), 1);
            REQUIRE_THAT(failed == 1);
            b.sizes[1] = 128;
            b.sizes[2] = 64;
            REQUIRE_CODE(go(), 0);
            REQUIRE_THAT(failed == ~std::size_t{0});
            b.to[2] = b.to[1];
            REQUIRE_CODE(go(), 0);
            REQUIRE_CODE(cuStreamSynchronize(b.scene.stream), 0);
            Halves h;
            h.all[1].width = 0;
            REQUIRE_CODE(cuMemcpy3DBatchAsync(2, h.all, &failed, 0, b.scene.stream), 1);
            REQUIRE_THAT(failed == 1);
        },
        "copies (1 and 2|2 and 1) of a batch touch the same memory");
}

TEST(SimCopyBatch, ACaptureRefusesThemAndStaysValid) {  // 580, H200
    in_own_process([] {
        Batch b;
        b.add_halves();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(b.scene.stream, relaxed), 0);
        REQUIRE_CODE(b.go(), 900);
        REQUIRE_CODE(cuMemsetD8Async(b.scene.memory, 1, 4, b.scene.stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(b.scene.stream, &graph), 0);
        std::size_t count = 0;
        REQUIRE_CODE(cuGraphGetNodes(graph, nullptr, &count), 0);
        REQUIRE_THAT(count == 1);
    });
}

TEST(SimCopyBatch, BoxesHaveRowsAndLayers) {
    in_own_process([] {
        Batch b;
        BatchedCopy one = {};
        one.source.type = one.destination.type = 1;
        one.source.pointer = {reinterpret_cast<Address>(b.source.data()), 16, 4, {}};
        one.destination.pointer = {b.scene.memory, 0, 0, {}};
        one.width = 8;
        one.height = 2;
        one.depth = 2;
        one.source_order = in_stream_order;
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, &one, 0, b.scene.stream), 0);
        const std::vector<unsigned char>& got = b.result();
        REQUIRE_THAT(got[7] == 7 && got[8] == 16 && got[16] == 64 && got[24] == 80 && got[31] == 87);
        const BatchedCopy right = one;
        const auto refused = [&](Result code) {
            REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, &one, 0, b.scene.stream), code);
            one = right;
        };
        one.source.pointer.row_length = 7;
        refused(1);
        one.source.pointer.layer_rows = 1;
        refused(1);
        one.depth = 0;
        refused(1);
        one.source_order = 0;
        refused(1);
        one.destination.type = 3;
        refused(1);
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, &one, 1, b.scene.stream), 1);
        REQUIRE_CODE(cuMemcpy3DBatchAsync_v2(1, &one, 0, nullptr), 1);
        std::size_t failed = 0;
        REQUIRE_CODE(cuMemcpy3DBatchAsync(0, &one, &failed, 0, b.scene.stream), 1);
        REQUIRE_THAT(failed == ~std::size_t{0});
        REQUIRE_CODE(cuMemcpy3DBatchAsync(1, &one, &failed, 0, b.scene.stream), 0);
        b.add_halves();
        REQUIRE_CODE(cuMemcpyBatchAsync(b.to.data(), b.from.data(), b.sizes.data(), 2, b.attributes.data(),
                                        b.first_of.data(), 1, &failed, b.scene.stream),
                     0);
        REQUIRE_THAT(b.result() == b.source);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
