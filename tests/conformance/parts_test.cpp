// SPDX-License-Identifier: Apache-2.0
// Parts of buffers: a use of one part excludes overlapping uses, and no others.
#include "scenario.hpp"
#include "gate.hpp"

#include <isthmus/graph.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 96;
constexpr std::size_t third = count / 3;

void expect_thirds(Buffer<std::int32_t>& buffer, std::int32_t first, std::int32_t second, std::int32_t last) {
    const auto view = buffer.read_on_host().value();
    for (std::size_t at = 0; at < count; ++at) {
        ASSERT_EQ(view[at], at < third ? first : at < 2 * third ? second : last) << at;
    }
}

TEST(Parts, KernelsAndViewsSeeTheElementsOfThePart) {  // keeps G8
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::device}) {  // and staged
            SCOPED_TRACE(isthmus::name(kind));
            SharedUse use;
            use.kind = kind;
            Result<Buffer<std::int32_t>> made = device.allocate_shared<std::int32_t>(count, use);
            if (!made) continue;
            Buffer<std::int32_t>& buffer = *made;
            const BufferPart<std::int32_t> first = buffer.part(0, third).value();
            const BufferPart<std::int32_t> middle = buffer.part(third, third).value();
            const BufferPart<const std::int32_t> seen = std::as_const(buffer).part(0, third).value();
            EXPECT_EQ(middle.size(), third);
            EXPECT_EQ(middle.first(), third);
            {
                auto all = buffer.write_on_host().value();
                for (std::int32_t& one : all) one = 1;
            }
            Stream& stream = device.stream();
            ASSERT_TRUE(worked(stream.launch(add_one, third, middle)));
            ASSERT_TRUE(worked(stream.launch(add_one, third, middle)));
            expect_thirds(buffer, 1, 3, 1);
            ASSERT_TRUE(worked(stream.launch(scale_into, third, middle, seen, 20)));
            expect_thirds(buffer, 1, 20, 1);
            {
                auto view = first.write_on_host().value();  // covers the whole part; the rest is unchanged
                ASSERT_EQ(view.size(), third);
                for (std::int32_t& one : view) one = 5;
            }
            ASSERT_TRUE(worked(stream.launch(add_one, third, buffer.part(2 * third, third).value())));
            ASSERT_TRUE(worked(runtime().cpu().stream().launch(add_one, third, first)));
            EXPECT_EQ(seen.read_on_host().value()[third - 1], 6);
            expect_thirds(buffer, 6, 20, 2);
            // Only the part is written: the rest is unchanged, also where the other side has its latest content.
            Buffer<std::int32_t> twos = pinned(device, third, 2);
            ASSERT_TRUE(worked(stream.launch(scale_into, third, middle, twos, 4)));
            {
                auto view = first.write_on_host().value();
                for (std::int32_t& one : view) one = 7;
            }
            expect_thirds(buffer, 7, 8, 2);
            {
                auto all = buffer.write_on_host().value();
                for (std::int32_t& one : all) one = 9;
            }
            ASSERT_TRUE(worked(stream.launch(scale_into, third, middle, twos, 5)));
            expect_thirds(buffer, 9, 10, 9);
        }
    });
}

TEST(Parts, PartsOfDeviceMemoryAreForKernels) {  // keeps G8, A6
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(count).value();
        Stream& stream = device.stream();
        ASSERT_TRUE(worked(stream.fill(buffer, 1)));
        const BufferPart<std::int32_t> middle = buffer.part(third, third).value();
        for (int round = 0; round < 3; ++round) ASSERT_TRUE(worked(stream.launch(add_one, third, middle)));
        const std::vector<std::int32_t> all = isthmus::read_back(buffer).value();
        for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(all[at], at / third == 1 ? 4 : 1) << at;
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(middle.read_on_host(), Code::not_accessible));
        }
    });
}

TEST(Parts, WhatLiesBeyondTheEndIsNoPart) {  // keeps G8
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = pinned(device, count, 0);
        const std::size_t most = static_cast<std::size_t>(-1);
        const std::vector<std::pair<std::size_t, std::size_t>> beyond = {
            {count + 1, 0}, {count, 1}, {1, count}, {1, most}, {most, 2}};
        for (const auto& [first, size] : beyond) {
            const auto part = buffer.part(first, size);
            ASSERT_TRUE(refused_as(part, Code::invalid_argument)) << first << " " << size;
            EXPECT_NE(part.error().message().find(std::to_string(count)), std::string_view::npos);
        }
        const BufferPart<std::int32_t> nothing = buffer.part(count, 0).value();
        EXPECT_EQ(nothing.size(), 0u);
        EXPECT_TRUE(worked(nothing.write_on_host()));
        const BufferPart<std::int32_t> part = buffer.part(0, 4).value();
        EXPECT_TRUE(worked(buffer.release()));
        EXPECT_TRUE(refused_as(buffer.part(0, 4), Code::invalid_handle));
        EXPECT_TRUE(refused_as(part.read_on_host(), Code::invalid_handle));
        EXPECT_TRUE(refused_as(part.concurrent_on_host(), Code::invalid_handle));
        EXPECT_TRUE(refused_as(device.stream().launch(add_one, 4, part), Code::invalid_handle));
    });
}

TEST(Parts, AReleaseAndThoseWhoUsePartsOnOtherThreadsDoNotMeet) {  // keeps G8, R1
    on_every_device([](Device& device) {
        for (const bool viewable : {true, false}) {
            Buffer<std::int32_t> buffer =
                viewable ? pinned(device, count, 1) : device.allocate<std::int32_t>(count).value();
            const BufferPart<std::int32_t> part = buffer.part(0, third).value();
            Stream stream = device.create_stream().value();
            std::atomic<bool> begun{false};
            std::atomic<bool> stop{false};
            std::atomic<Code> last{Code::ok};
            Thread user([&] {
                while ((last == Code::ok || last == Code::in_use) && !stop) {
                    last = stream.launch(add_one, third, part).code();
                    begun = true;
                    if (viewable && last == Code::ok) last = part.read_on_host().code();
                }
            });
            while (!begun) std::this_thread::yield();
            Result<void> released = buffer.release();
            while (released.code() == Code::in_use) released = buffer.release();  // the view that is just closing
            if (!released) stop = true;
            user.join();
            EXPECT_TRUE(worked(released));
            EXPECT_TRUE(unless_fault(last == Code::invalid_handle)) << isthmus::name(last);
        }
    });
}

TEST(Parts, OpenViewsKeepOutWhatOverlapsThemAndNothingElse) {  // keeps G8, G9
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> buffer = pinned(device, count, 1);
        const BufferPart<std::int32_t> first = buffer.part(0, third).value();
        const BufferPart<std::int32_t> middle = buffer.part(third, third).value();
        const BufferPart<std::int32_t> across = buffer.part(third - 1, 2).value();
        {
            auto writing = first.write_on_host().value();
            for (std::int32_t& one : writing) one = 3;
            EXPECT_TRUE(worked(stream.launch(add_one, third, middle)));
            EXPECT_TRUE(worked(middle.read_write_on_host()));
            EXPECT_TRUE(worked(middle.concurrent_on_host()));
            const auto launched = stream.launch(add_one, 2, across);
            ASSERT_TRUE(refused_as(launched, Code::in_use));
            EXPECT_NE(launched.error().message().find("bytes 0 to 127 of"), std::string_view::npos)
                << launched.error().text();
            EXPECT_TRUE(refused_as(stream.launch(add_one, count, buffer), Code::in_use));
            EXPECT_TRUE(refused_as(stream.launch(leave_mark, 1, across), Code::in_use));
            EXPECT_TRUE(refused_as(across.read_on_host(), Code::in_use));
            EXPECT_TRUE(refused_as(buffer.read_on_host(), Code::in_use));
            EXPECT_TRUE(refused_as(buffer.concurrent_on_host(), Code::in_use));
            EXPECT_TRUE(refused_as(stream.fill(buffer, 9), Code::in_use));
            EXPECT_TRUE(refused_as(buffer.release(), Code::in_use));
            // Copies and fills declare which elements they touch.
            EXPECT_TRUE(worked(stream.fill_region(buffer, {2 * third, 0, 0}, {third, 1, 1}, 8)));
            EXPECT_TRUE(refused_as(stream.fill_region(buffer, {third - 1, 0, 0}, {third, 1, 1}, 8), Code::in_use));
        }
        {
            const auto reading = first.read_on_host().value();
            EXPECT_TRUE(worked(across.read_on_host()));
            EXPECT_TRUE(refused_as(across.write_on_host(), Code::in_use));
            EXPECT_TRUE(worked(stream.launch(add_one, third, middle)));
            EXPECT_TRUE(refused_as(stream.launch(add_one, third, first), Code::in_use));
        }
        expect_thirds(buffer, 3, 3, 8);
        EXPECT_TRUE(worked(stream.launch(add_one, 2, across)));
        EXPECT_EQ(across.read_on_host().value()[0], 4);
    });
}

TEST(Parts, ViewsWaitForWorkOnTheirElementsAndForNothingElse) {  // keeps G8
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> buffer = pinned(device, count, 1);
        const BufferPart<std::int32_t> first = buffer.part(0, third).value();
        const BufferPart<std::int32_t> middle = buffer.part(third, third).value();
        Gate gate(device);
        // On one stream: the first part is done, the middle one in progress.
        ASSERT_TRUE(worked(stream.launch(add_one, third, first)));
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), middle, 10)));
        if (gate.holds()) {
            EXPECT_EQ(first.read_on_host().value()[0], 2) << "waits for its own launch, and not for the next one";
            {
                auto writing = first.write_on_host().value();
                for (std::int32_t& one : writing) one = 7;
            }
            EXPECT_TRUE(refused_as(middle.read_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(middle.concurrent_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(buffer.part(third - 1, 2).value().write_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(buffer.read_on_host(Wait::never()), Code::not_ready));
            gate.raise();
            expect_thirds(buffer, 7, 11, 1);
        } else {
            expect_thirds(buffer, 2, 11, 1);
        }
    });
}

TEST(Parts, ConcurrentAndPlainPartsOfOneBufferGoSideBySide) {  // keeps G8, G14
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> buffer = pinned(device, count, 0);
        const BufferPart<std::int32_t> words = buffer.part(0, third).value();
        const BufferPart<std::int32_t> data = buffer.part(third, third).value();
        {
            const auto shared = words.concurrent_on_host().value();
            EXPECT_EQ(shared.size(), third);
            EXPECT_TRUE(worked(stream.launch(leave_mark, 1, words)));
            EXPECT_TRUE(worked(stream.launch(add_one, third, data)));
            EXPECT_EQ(data.read_on_host().value()[0], 1);
            EXPECT_TRUE(refused_as(words.read_on_host(), Code::in_use));
            EXPECT_TRUE(refused_as(stream.launch(add_one, third, words), Code::in_use));
        }
        EXPECT_EQ(words.read_on_host().value()[0], 1);
    });
}

TEST(Parts, OneLaunchMayTakeSeveralOfThem) {  // keeps G9
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = pinned(device, count, 2);
        const BufferPart<std::int32_t> to = buffer.part(0, third).value();
        const BufferPart<std::int32_t> from = buffer.part(third, third).value();
        for (Stream* stream : {&device.stream(), &runtime().cpu().stream()}) {
            ASSERT_TRUE(worked(stream->launch(scale_into, third, to, from, 5)));
            ASSERT_TRUE(worked(stream->launch(scale_into, third, to, to, 2))) << "the same one twice";
            expect_thirds(buffer, 20, 2, 2);
            ASSERT_TRUE(worked(stream->launch(scale_into, third, to, buffer, 1))) << "and with all of it";
            ASSERT_TRUE(worked(stream->synchronize()));
            const auto last = buffer.part(2 * third, third).value().write_on_host();
            ASSERT_TRUE(worked(last));
            EXPECT_TRUE(worked(stream->launch(scale_into, third, to, from, 10)));
        }
    });
}

// Where memory migrates as a whole, a part is used as the whole; its content is still right.
TEST(Parts, StagedAndPhaseGuardedMemoryGoesAsAWholeAndSaysSo) {  // keeps G8, K6
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::device}) {
            SharedUse use;
            use.kind = kind;
            Result<Buffer<std::int32_t>> made = device.allocate_shared<std::int32_t>(count, use);
            if (!made) continue;
            const BufferPart<std::int32_t> first = made->part(0, third).value();
            const BufferPart<std::int32_t> middle = made->part(third, third).value();
            const bool whole = made->path() == LaunchPath::stage || made->path() == LaunchPath::attach;
            EXPECT_EQ(first.independent(), !whole);
            {
                auto all = made->write_on_host().value();
                for (std::int32_t& one : all) one = 1;
            }
            const auto view = first.read_write_on_host().value();
            const auto launched = device.stream().launch(add_one, third, middle);
            if (whole) {
                EXPECT_TRUE(refused_as(launched, Code::in_use));
            } else {
                EXPECT_TRUE(worked(launched));
            }
        }
    });
}

TEST(Parts, GraphsTakeAllOfABuffer) {  // keeps G9
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> buffer = pinned(device, count, 1);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, third, buffer.part(third, third).value()).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        EXPECT_TRUE(worked(stream.launch(instance)));
        expect_thirds(buffer, 1, 2, 1);
        {
            const auto elsewhere = buffer.part(0, third).value().write_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(instance), Code::in_use));
            for (std::int32_t& one : elsewhere) one = 4;
        }
        EXPECT_TRUE(worked(stream.launch(instance)));
        expect_thirds(buffer, 4, 3, 1);
    });
}

// The order checker would report a false conflict: streams that use disjoint parts need no order.
TEST(Parts, StreamsMayUseDisjointPartsWithoutOrder) {  // keeps S7, G8
    on_every_device([](Device& device, Stream one, Stream other) {
        Buffer<std::int32_t> buffer = pinned(device, count, 0);
        for (int round = 0; round < 4; ++round) {
            ASSERT_TRUE(worked(one.launch(add_one, third, buffer.part(0, third).value())));
            ASSERT_TRUE(worked(other.launch(add_one, third, buffer.part(2 * third, third).value())));
        }
        expect_thirds(buffer, 4, 0, 4);
    });
}

}  // namespace
}  // namespace conformance
