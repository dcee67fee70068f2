// SPDX-License-Identifier: Apache-2.0
// Concurrent views: CPU and device use one buffer at the same time; other uses are excluded meanwhile.
#include "scenario.hpp"
#include "gate.hpp"

#include <isthmus/graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 64;

std::int32_t load(const ConcurrentView<std::int32_t>& view, std::size_t at = 0) {
    return __atomic_load_n(view.data() + at, __ATOMIC_ACQUIRE);
}

bool names(const Error& error, const char* words) {
    return error.message().find(words) != std::string_view::npos;
}

bool expected(const Device& device, MemoryKind kind) {
    if (device.is_cpu()) return true;
    switch (kind) {
        case MemoryKind::pinned:
        case MemoryKind::registered: return true;
        case MemoryKind::host: return device.capabilities().has(Feature::pageable_access);
        case MemoryKind::managed:
            return device.capabilities().managed == ManagedModel::concurrent ||
                   device.capabilities().managed == ManagedModel::direct;
        default: return false;
    }
}

TEST(ConcurrentViews, OpenExactlyWhereBothSidesMayTouchTheMemoryAtOnce) {  // keeps G8, K6
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::registered, MemoryKind::host, MemoryKind::managed,
                                      MemoryKind::write_combined, MemoryKind::device}) {
            SCOPED_TRACE(isthmus::name(kind));
            Result<Buffer<std::int32_t>> buffer = device.allocate<std::int32_t>(count, kind);
            if (!buffer) continue;  // this machine has no such memory
            const auto view = buffer->concurrent_on_host();
            if (expected(device, kind)) {
                ASSERT_TRUE(worked(view));
                EXPECT_EQ(view->size(), count);
                EXPECT_NE(view->data(), nullptr);
            } else {
                ASSERT_TRUE(refused_as(view, Code::not_accessible));
                EXPECT_FALSE(view.error().remedy().empty());
                if (buffer->kind() != MemoryKind::device) {
                    EXPECT_TRUE(worked(buffer->write_on_host())) << "the plain view is there, and no scope was left";
                }
            }
        }
    });
}

TEST(ConcurrentViews, AStagedBufferHasNoneBecauseEachSideHasItsOwn) {  // keeps G8
    on_every_device([](Device& device) {
        SharedUse use;
        use.kind = MemoryKind::device;
        Result<Buffer<std::int32_t>> buffer = device.allocate_shared<std::int32_t>(count, use);
        // A GPU with separate memory stages; elsewhere the kind may be refused.
        if (device.capabilities().memory == MemoryModel::separate) {
            ASSERT_TRUE(worked(buffer));
            EXPECT_EQ(buffer->path(), LaunchPath::stage);
        }
        if (!buffer || buffer->path() != LaunchPath::stage) return;
        const auto view = buffer->concurrent_on_host();
        ASSERT_TRUE(refused_as(view, Code::not_accessible));
        EXPECT_TRUE(names(view.error(), "staged"));
        EXPECT_NE(view.error().remedy().find("pinned"), std::string_view::npos);
    });
}

TEST(ConcurrentViews, KeepEverythingPlainOutAndLetEachOtherIn) {  // keeps G9, G14
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> words = pinned(device, count, 0);
        Buffer<std::int32_t> other = pinned(device, count, 5);
        {
            const auto view = words.concurrent_on_host().value();
            const auto second = words.concurrent_on_host();
            EXPECT_TRUE(worked(second));
            const auto plain = words.read_on_host();
            ASSERT_TRUE(refused_as(plain, Code::in_use));
            EXPECT_TRUE(names(plain.error(), "concurrent use") && names(plain.error(), "reading"));
            EXPECT_TRUE(refused_as(words.write_on_host(), Code::in_use));
            EXPECT_TRUE(refused_as(words.read_write_on_host(), Code::in_use));
            const auto launched = stream.launch(add_one, count, words);
            ASSERT_TRUE(refused_as(launched, Code::in_use));
            EXPECT_TRUE(names(launched.error(), "'add_one', argument 'data'") &&
                        names(launched.error(), "concurrent use"))
                << launched.error().text();
            EXPECT_FALSE(launched.error().remedy().empty());
            EXPECT_TRUE(refused_as(stream.launch(scale_into, count, other, words, 2), Code::in_use));
            EXPECT_TRUE(refused_as(stream.copy(words, other), Code::in_use));
            EXPECT_TRUE(refused_as(stream.copy(other, words), Code::in_use));
            EXPECT_TRUE(refused_as(stream.fill(words, 3), Code::in_use));
            EXPECT_TRUE(refused_as(words.release(), Code::in_use));
            EXPECT_TRUE(worked(stream.launch(leave_mark, 1, words)));
            EXPECT_TRUE(worked(stream.synchronize()));
            EXPECT_EQ(load(view), 1);
            for (std::size_t at = 1; at < count; ++at) ASSERT_EQ(load(view, at), 0) << "what was refused wrote nothing";
        }
        EXPECT_TRUE(worked(stream.launch(add_one, count, words)));
        EXPECT_EQ(words.read_on_host().value()[0], 2);
        EXPECT_TRUE(worked(words.release()));
    });
}

TEST(ConcurrentViews, AreKeptOutByPlainViews) {  // keeps G9, G14
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> words = pinned(device, count, 0);
        for (const bool writes : {false, true}) {
            std::optional<HostView<const std::int32_t>> reader;
            std::optional<HostView<std::int32_t>> writer;
            if (writes) {
                writer.emplace(words.read_write_on_host().value());
            } else {
                reader.emplace(words.read_on_host().value());
            }
            const auto view = words.concurrent_on_host();
            ASSERT_TRUE(refused_as(view, Code::in_use));
            EXPECT_TRUE(names(view.error(), writes ? "open on the host for writing" : "open on the host for reading"));
            const auto launched = stream.launch(leave_mark, 1, words);
            ASSERT_TRUE(refused_as(launched, Code::in_use));
            EXPECT_TRUE(names(launched.error(), "'leave_mark', argument 'words',") &&
                        names(launched.error(), "concurrent"))
                << launched.error().text();
        }
        EXPECT_TRUE(worked(stream.launch(leave_mark, 1, words)));
        EXPECT_EQ(words.read_on_host().value()[0], 1);
    });
}

TEST(ConcurrentViews, LetTheHostSpeakToAKernelThatRuns) {  // keeps G8
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> data = pinned(device, count, 7);
        Gate gate(device);
        const bool held = gate.holds();
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), data, 10)));
        if (held) {
            EXPECT_FALSE(gate.passed());
            EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
            gate.raise();
        }
        EXPECT_TRUE(worked(stream.synchronize()));  // the view stays open
        EXPECT_TRUE(gate.passed());
        EXPECT_EQ(data.read_on_host().value()[count - 1], 17);
    });
}

TEST(ConcurrentViews, OpenBesideConcurrentWorkForWhichPlainViewsWait) {  // keeps G8
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> data = pinned(device, count, 0);
        Buffer<std::int32_t> words = pinned(device, count, 0);
        Gate gate(device);
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), data, 1)));
        ASSERT_TRUE(worked(stream.launch(leave_mark, 1, words)));  // after the gate's kernel
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(words.read_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(words.write_on_host(Wait::never()), Code::not_ready));
            {
                const auto view = words.concurrent_on_host(Wait::never());
                ASSERT_TRUE(worked(view));
                EXPECT_EQ(load(*view), 0);
            }
            gate.raise();
        }
        EXPECT_EQ(words.read_on_host().value()[0], 1);
    });
}

TEST(ConcurrentViews, WaitForPlainWorkThatReadsOrWrites) {  // keeps G8
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        Buffer<std::int32_t> data = pinned(device, count, 4);
        Buffer<std::int32_t> scaled = pinned(device, count, 0);
        Gate gate(device);
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), scaled, 0)));
        ASSERT_TRUE(worked(stream.launch(scale_into, count, scaled, data, 3)));
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(data.concurrent_on_host(Wait::never()), Code::not_ready)) << "it is being read";
            EXPECT_TRUE(refused_as(scaled.concurrent_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(worked(data.read_on_host(Wait::never()))) << "a wait that was refused left no scope";
            gate.raise();
        }
        const auto view = scaled.concurrent_on_host().value();
        EXPECT_EQ(load(view, count - 1), 12);
        EXPECT_TRUE(worked(data.concurrent_on_host()));
    });
}

TEST(ConcurrentViews, OutliveTheirBuffer) {  // keeps G8
    on_every_device([](Device& device) {
        std::optional<ConcurrentView<std::int32_t>> view;
        {
            Buffer<std::int32_t> words = pinned(device, count, 9);
            view.emplace(words.concurrent_on_host().value());
        }
        EXPECT_EQ(load(*view, 3), 9);
        ConcurrentView<std::int32_t> moved = *std::move(view);
        EXPECT_EQ(load(moved, 3), 9);
        EXPECT_EQ(view->size(), 0u);  // NOLINT(bugprone-use-after-move): it is empty
        EXPECT_EQ(view->data(), nullptr);
    });
}

TEST(ConcurrentViews, GraphsGoBesideThemWhereAllTheirUsesAreConcurrent) {  // keeps G9, G14
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> words = pinned(device, count, 0);
        const auto recorded = [&](bool plain) {
            Capture capture = stream.begin_capture().value();
            stream.launch(leave_mark, 1, words).value();
            stream.launch(leave_mark, 1, words).value();
            if (plain) stream.launch(add_one, count, words).value();
            return capture.end().value().instantiate().value();
        };
        const GraphInstance concurrent = recorded(false);
        const GraphInstance mixed = recorded(true);
        {
            const auto view = words.concurrent_on_host().value();
            EXPECT_TRUE(worked(stream.launch(concurrent)));
            EXPECT_TRUE(refused_as(stream.launch(mixed), Code::in_use));
            EXPECT_TRUE(worked(stream.synchronize()));
            EXPECT_EQ(load(view), 1);
        }
        {
            const auto reading = words.read_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(concurrent), Code::in_use));
        }
        EXPECT_TRUE(worked(stream.launch(mixed)));
        EXPECT_EQ(words.read_on_host().value()[0], 2);
    });
}

TEST(ConcurrentViews, TheCpuDeviceGoesBesideThem) {  // keeps G9, G14
    on_every_device([](Device& device) {
        Stream& cpu = runtime().cpu().stream();
        Buffer<std::int32_t> words = pinned(device, count, 0);
        {
            const auto view = words.concurrent_on_host().value();
            EXPECT_TRUE(worked(cpu.launch(leave_mark, 1, words)));
            EXPECT_EQ(load(view), 1);
            EXPECT_TRUE(refused_as(cpu.launch(add_one, count, words), Code::in_use));
        }
        EXPECT_TRUE(worked(cpu.launch(add_one, count, words)));
        EXPECT_EQ(words.read_on_host().value()[0], 2);
    });
}

// An AtomicView does not require that host and device run at once: where memory is exclusive, the kernel has it alone.
TEST(ConcurrentViews, AKernelMayTakeWhatNobodyCanShare) {  // keeps G8, K6
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::managed}) {
            SharedUse use;
            use.kind = kind;
            Result<Buffer<std::int32_t>> buffer = device.allocate_shared<std::int32_t>(count, use);
            if (!buffer) continue;
            {
                auto view = buffer->write_on_host().value();
                for (std::int32_t& one : view) one = 6;
            }
            for (Stream* stream : {&device.stream(), &runtime().cpu().stream()}) {
                ASSERT_TRUE(worked(stream->launch(leave_mark, 1, *buffer)));
                auto view = buffer->read_write_on_host().value();
                EXPECT_EQ(view[0], 1);
                EXPECT_EQ(view[1], 6);
                view[0] = 0;
                EXPECT_TRUE(refused_as(stream->launch(leave_mark, 1, *buffer), Code::in_use));
            }
        }
        Buffer<std::int32_t> own = device.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(worked(device.stream().launch(leave_mark, 1, own)));
        EXPECT_TRUE(worked(device.stream().launch(leave_mark, 1, own))) << "the short way, too";
        EXPECT_EQ(isthmus::read_back(own).value()[0], 1);
    });
}

}  // namespace
}  // namespace conformance
