// SPDX-License-Identifier: Apache-2.0
// Graphs of the CPU device: host work that only the CPU device records, and buffers of GPUs in it.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 200;

Stream new_stream() {
    return runtime().cpu().create_stream().value();
}
Buffer<std::int32_t> plain(std::int32_t value) {
    Buffer<std::int32_t> buffer = runtime().cpu().allocate<std::int32_t>(count).value();
    runtime().cpu().stream().fill(buffer, value).value();
    return buffer;
}
// keeps G8, G12, S15: waited for, brought up to date, and handed back
TEST(CpuGraphs, TakeTurnsWithGpusOnWhatTheCpuMayView) {
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::device}) {
            if (kind == MemoryKind::managed && !device.capabilities().has(Feature::managed)) {
                continue;
            }
            SCOPED_TRACE(isthmus::name(kind));
            Buffer<std::int32_t> data = shared_numbers(device, count, kind);
            Stream stream = new_stream();
            Capture capture = stream.begin_capture().value();
            stream.launch(add_one, count, data).value();
            stream.launch(add_one, count, data).value();
            const GraphInstance graph = capture.end().value().instantiate().value();
            device.stream().fill(data, 0).value();
            for (std::int32_t round = 1; round <= 3; ++round) {
                device.stream().launch(add_one, count, data).value();
                stream.launch(graph).value();
                EXPECT_TRUE(stream.finished().value());
                expect_all(data, 3 * round);
            }
        }
    });
}

// keeps S14, K22
TEST(CpuGraphs, RecordCopiesAndFillsOfTheHost) {
    Stream stream = new_stream();
    Buffer<std::int32_t> from = plain(1);
    Buffer<std::int32_t> to = plain(0);
    Buffer<std::int32_t> box = plain(0);
    Buffer<std::uint64_t> wide = runtime().cpu().allocate<std::uint64_t>(count).value();
    stream.fill(wide, 0).value();
    std::vector<std::int32_t> callers(count, 5);
    std::vector<std::int32_t> back(count, 0);
    Capture capture = stream.begin_capture().value();
    stream.copy(to, from).value();
    stream.fill(from, 9).value();
    stream.copy_region(box, {3, 10, 0}, to, {0, 20, 0}, {4, 5, 1}).value();
    stream.fill(wide, std::uint64_t{0x0123456789abcdef}).value();
    stream.copy_from_host(to, std::span<const std::int32_t>(callers).first(2)).value();
    stream.copy_to_host(std::span<std::int32_t>(back), to).value();
    expect_all(to, 0);
    EXPECT_EQ(back[0], 0);
    const Graph graph = capture.end().value();
    EXPECT_EQ(graph.size(), 6u);
    const GraphInstance instance = graph.instantiate().value();
    callers.assign(count, 6);  // read by each launch
    stream.launch(instance).value();
    EXPECT_EQ(back[0], 6);
    EXPECT_EQ(back[count - 1], 1);
    expect_all(from, 9);
    EXPECT_EQ(wide.read_on_host().value()[count - 1], std::uint64_t{0x0123456789abcdef});
    {
        auto view = box.read_on_host().value();
        EXPECT_EQ(view[2], 0);
        EXPECT_EQ(view[3], 1);
        EXPECT_EQ(view[46], 1);
        EXPECT_EQ(view[47], 0);
    }
    stream.launch(instance).value();
    EXPECT_EQ(back[count - 1], 9);
}

// keeps A17, S15
TEST(CpuGraphs, UseMemoryOfTheCallersWhereItLies) {
    Stream stream = new_stream();
    std::vector<std::int32_t> memory(count, 2);
    Buffer<std::int32_t> out = plain(0);
    Capture capture = stream.begin_capture().value();
    stream.launch(scale_into, count, out, std::span<const std::int32_t>(memory), 10).value();
    const GraphInstance instance = capture.end().value().instantiate().value();
    memory.assign(count, 3);
    stream.launch(instance).value();
    expect_all(out, 30);
}

// keeps S14, L11
TEST(CpuGraphs, RefuseWhatHasNoPlaceInThemAndGoOn) {
    using Odd = std::array<std::uint8_t, 3>;
    Stream stream = new_stream();
    Buffer<std::int32_t> data = plain(0);
    Buffer<Odd> odd = runtime().cpu().allocate<Odd>(count).value();
    stream.fill(odd, Odd{1, 2, 3}).value();  // filled by the calling thread: no operation could be recorded
    Device& device = runtime().default_device();
    Buffer<std::int32_t> of_gpu = device.allocate<std::int32_t>(count).value();
    Capture capture = stream.begin_capture().value();
    EXPECT_TRUE(refused_as(stream.fill(odd, Odd{1, 2, 3}), Code::unsupported));
    EXPECT_TRUE(refused_as(stream.launch({.mode = LaunchMode::verify}, add_one, count, data), Code::capture_error));
    if (!device.is_cpu()) {
        EXPECT_TRUE(refused_as(stream.copy(data, of_gpu), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.copy(of_gpu, data), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.fill(of_gpu, 1), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.launch(add_one, count, of_gpu), Code::not_accessible));
    }
    stream.launch(add_one, count, data).value();
    const Graph graph = capture.end().value();
    EXPECT_EQ(graph.size(), 1u);
    stream.launch(graph.instantiate().value()).value();
    expect_all(data, 1);
}

// keeps G8, G9: for its whole run, each buffer by all that the graph does with it
TEST(CpuGraphs, AreRefusedWhileAViewOfAnyOfTheirBuffersIsInTheWay) {
    Stream stream = new_stream();
    Buffer<std::int32_t> in = plain(4);
    Buffer<std::int32_t> out = plain(0);
    Capture capture = stream.begin_capture().value();
    stream.launch(scale_into, count, out, in, 2).value();
    const GraphInstance instance = capture.end().value().instantiate().value();
    {
        auto view = in.read_on_host().value();
        EXPECT_TRUE(worked(stream.launch(instance)));  // it also only reads it
    }
    {
        auto view = in.write_on_host().value();
        for (std::int32_t& one : view) one = 5;
        EXPECT_TRUE(refused_as(stream.launch(instance), Code::in_use));
    }
    {
        auto view = out.read_on_host().value();
        EXPECT_EQ(view[0], 8);
        const auto refused = stream.launch(instance);
        ASSERT_TRUE(refused_as(refused, Code::in_use));
        EXPECT_NE(refused.error().message().find("graph"), std::string_view::npos);
    }
    stream.launch(instance).value();
    expect_all(out, 10);
}

}  // namespace
}  // namespace conformance
