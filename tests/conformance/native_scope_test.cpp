// SPDX-License-Identifier: Apache-2.0
// Native scopes: buffers that other code works on across calls, whom they keep out meanwhile, and who waits afterwards.
#include "scenario.hpp"
#include "gate.hpp"
#include "native_calls.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;
constexpr std::size_t long_count = 1 << 18;  // staged where that pays

template <class T>
testing::AssertionResult kept_out(const Result<T>& result) {
    testing::AssertionResult refused = refused_as(result, Code::in_use);
    if (!refused) return refused;
    return unless_fault(result.error().text().find("inference") != std::string_view::npos) << result.error().text();
}

// keeps W3, W7
TEST(NativeScopes, WorkOnWhatTheHostWroteAndViewsSeeWhatTheyWrote) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = device.allocate_shared<std::int32_t>(long_count).value();
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(long_count).value();
        for (std::int32_t round = 1; round <= 2; ++round) {
            set_all(in, round);
            set_all(out, 0);
            auto scope = stream.open_native_scope("inference", reads(in), writes(out)).value();
            EXPECT_EQ(scope.stream() == nullptr, device.is_cpu());
            const std::int32_t* const from = scope.get<0>();
            std::int32_t* const to = scope.get<1>();
            gave(copy_in_context(device, scope.stream(), to, from, long_count / 2));
            gave(copy_in_context(device, scope.stream(), to + long_count / 2, from, long_count / 2));
            const std::uint64_t position = scope.close().value();
            EXPECT_EQ(scope.close().value(), position) << "closed again: the same answer";
            EXPECT_TRUE(!device.is_cpu() || stream.completed(position));
            expect_all(out, round);
            expect_all(in, round);
        }
    });
}

// keeps W3
TEST(NativeScopes, KeepEveryConflictingUseOutOnEveryThread) {
    on_every_device([](Device& device, Stream stream, Stream other) {
        std::vector<Buffer<std::int32_t>> all;
        all.push_back(device.allocate_shared<std::int32_t>(long_count).value());
        all.push_back(pinned(device, long_count, 0));
        all.push_back(device.allocate<std::int32_t>(long_count).value());
        for (Buffer<std::int32_t>& data : all) {
            const bool viewable = data.host_kind() != MemoryKind::unknown;
            Buffer<std::int32_t> besides = pinned(device, long_count, 5);
            EXPECT_TRUE(worked(stream.fill(data, 1)));
            (void)stream.launch(add_one, long_count, data).value();
            auto scope = std::make_optional(stream.open_native_scope("inference", updates(data)).value());
            const auto all_refused = [&] {
                if (viewable) {
                    EXPECT_TRUE(kept_out(data.read_on_host()));
                    EXPECT_TRUE(kept_out(data.write_on_host()));
                    EXPECT_TRUE(kept_out(data.part(1, 2).value().read_on_host()));
                }
                for (Stream* one : {&stream, &other}) {
                    EXPECT_TRUE(kept_out(one->launch(add_one, long_count, data)));
                    EXPECT_TRUE(kept_out(one->launch(scale_into, long_count, besides, data, 2)));
                    EXPECT_TRUE(kept_out(one->copy(data, besides)));
                    EXPECT_TRUE(kept_out(one->copy(besides, data)));
                    EXPECT_TRUE(kept_out(one->fill(data, 1)));
                    EXPECT_TRUE(kept_out(one->enqueue_native(
                        "another", [](void*, const std::int32_t*) {}, reads(data))));
                    EXPECT_TRUE(kept_out(one->open_native_scope("another", reads(data))));
                }
                EXPECT_TRUE(kept_out(data.release()));
                expect_all(besides, 5);
            };
            all_refused();
            Thread elsewhere(all_refused);
            elsewhere.join();
            gave(set_numbers(scope->stream(), scope->get<0>(), long_count, 7));
            EXPECT_TRUE(worked(scope->close()));
            scope.reset();
            (void)stream.launch(add_one, long_count, data).value();
            EXPECT_TRUE(worked(stream.copy(besides, data)));
            expect_all(besides, 8);
            if (viewable) expect_all(data, 8);
        }
    });
}

// keeps W3
TEST(NativeScopes, KeepGraphsOut) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream, Stream other) {
        for (const bool inside : {false, true}) {
            Buffer<std::int32_t> data =
                inside ? device.allocate<std::int32_t>(count).value() : pinned(device, count, 0);
            Buffer<std::int32_t> seen = pinned(device, count, 0);
            EXPECT_TRUE(worked(other.fill(data, 1)));
            Capture capture = other.begin_capture().value();
            (void)other.launch(add_one, count, data).value();
            GraphInstance instance = capture.end().value().instantiate().value();
            EXPECT_TRUE(worked(other.launch(instance)));
            EXPECT_TRUE(worked(stream.wait_stream(other)));
            auto scope = stream.open_native_scope("inference", updates(data)).value();
            EXPECT_TRUE(kept_out(other.launch(instance)));
            EXPECT_TRUE(worked(scope.close()));
            EXPECT_TRUE(worked(other.wait_stream(stream)));
            EXPECT_TRUE(worked(other.launch(instance)));
            EXPECT_TRUE(worked(other.copy(seen, data)));
            expect_all(seen, 3);
        }
    });
}

// keeps W3
TEST(NativeScopes, OfPartsKeepOnlyThoseOut) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        const auto lower = data.part(0, count / 2).value();
        const auto upper = data.part(count / 2, count / 2).value();
        if (!lower.independent()) return;
        auto scope = stream.open_native_scope("inference", updates(lower)).value();
        EXPECT_TRUE(kept_out(data.read_on_host()));
        EXPECT_TRUE(kept_out(lower.read_on_host()));
        EXPECT_TRUE(kept_out(stream.launch(add_one, count, data)));
        {
            auto view = upper.write_on_host().value();
            for (std::int32_t& one : view) one = 3;
        }
        (void)stream.launch(add_one, count / 2, upper).value();
        EXPECT_EQ(upper.read_on_host().value()[0], 4);
        gave(set_numbers(scope.stream(), scope.get<0>(), count / 2, 9));
        EXPECT_TRUE(worked(scope.close()));
        EXPECT_EQ(lower.read_on_host().value()[0], 9);
        EXPECT_EQ(data.read_on_host().value()[count - 1], 4);
    });
}

// keeps W3
TEST(NativeScopes, ThatReadGoBesideReadersWhereBothUseTheMemoryInPlace) {
    on_every_device([](Device& device, Stream stream, Stream other) {
        for (const bool in_place : {true, false}) {
            Buffer<std::int32_t> data =
                in_place ? pinned(device, count, 4) : device.allocate_shared<std::int32_t>(long_count).value();
            Buffer<std::int32_t> out = pinned(device, count, 0);
            set_all(data, 4);
            auto scope = stream.open_native_scope("inference", reads(data)).value();
            EXPECT_TRUE(kept_out(stream.launch(add_one, count, data)));
            EXPECT_TRUE(kept_out(data.write_on_host()));
            const bool by_turns = data.path() == LaunchPath::stage || data.path() == LaunchPath::attach;
            if (by_turns && !device.is_cpu()) {
                EXPECT_TRUE(kept_out(data.read_on_host()));
                EXPECT_TRUE(kept_out(other.open_native_scope("another", reads(data))));
            } else {
                expect_all(data, 4);
                (void)other.launch(scale_into, count, out, data, 2).value();
                auto beside = other.open_native_scope("another", reads(data)).value();
                EXPECT_TRUE(worked(scope.close()));
                EXPECT_TRUE(refused_as(data.write_on_host(), Code::in_use)) << "the other one is still open";
                EXPECT_TRUE(worked(beside.close()));
                expect_all(out, 8);
            }
            EXPECT_TRUE(worked(scope.close()));
            set_all(data, 1);
        }
    });
}

// keeps W3
TEST(NativeScopes, AreWaitedForAndNothingBehindThemIs) {
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> ahead = pinned(device, count, 1);
        Buffer<std::int32_t> later = pinned(device, count, 1);
        {
            Gate gate(device);
            auto scope = stream.open_native_scope("inference", updates(data)).value();
            (void)stream.launch(when_raised, 1, gate.words(), ahead, 1).value();  // another buffer: not kept out
            gave(set_numbers(scope.stream(), scope.get<0>(), count, 7));
            EXPECT_TRUE(worked(scope.close()));
            if (gate.holds()) {
                EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
                EXPECT_TRUE(refused_as(data.release(Wait::never()), Code::not_ready));
            }
            gate.raise();
            expect_all(data, 7);
        }
        Gate gate(device);
        auto scope = stream.open_native_scope("inference", updates(data)).value();
        gave(set_numbers(scope.stream(), scope.get<0>(), count, 8));
        EXPECT_TRUE(worked(scope.close()));
        (void)stream.launch(when_raised, 1, gate.words(), later, 1).value();
        expect_all(data, 8);
        gate.raise();
    });
}

// keeps W3
TEST(NativeScopes, MoveAndEndAnywhere) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> other = pinned(device, count, 1);
        auto first = stream.open_native_scope("inference", updates(data)).value();
        auto second = std::move(first);
        // NOLINTNEXTLINE(bugprone-use-after-move): it is empty
        EXPECT_TRUE(refused_as(first.close(), Code::invalid_handle));
        EXPECT_EQ(first.stream(), nullptr);
        EXPECT_TRUE(kept_out(data.read_on_host()));
        gave(set_numbers(second.stream(), second.get<0>(), count, 2));
        second = stream.open_native_scope("inference", updates(other)).value();  // closes the one it held
        expect_all(data, 2);
        EXPECT_TRUE(kept_out(other.read_on_host()));
        gave(set_numbers(second.stream(), second.get<0>(), count, 3));
        Thread elsewhere(
            [scope = std::make_shared<std::optional<decltype(second)>>(std::move(second))] { scope->reset(); });
        elsewhere.join();
        expect_all(other, 3);

        // The scope holds a buffer that goes.
        auto dropped = std::make_unique<Buffer<std::int32_t>>(pinned(device, count, 1));
        auto holds = stream.open_native_scope("inference", updates(*dropped), updates(data)).value();
        dropped.reset();
        gave(set_numbers(holds.stream(), holds.get<0>(), count, 5));
        gave(copy_in_context(device, holds.stream(), holds.get<1>(), holds.get<0>(), count));
        EXPECT_TRUE(worked(holds.close()));
        expect_all(data, 5);
    });
}

// keeps W4
TEST(NativeScopes, AndCapturesExcludeEachOther) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        {
            Capture capture = stream.begin_capture().value();
            EXPECT_TRUE(refused_as(stream.open_native_scope("inference", updates(data)), Code::capture_error));
            (void)stream.launch(add_one, count, data).value();
            EXPECT_EQ(capture.end().value().size(), 1u);
        }
        auto scope = stream.open_native_scope("inference", updates(data)).value();
        EXPECT_TRUE(refused_as(stream.begin_capture(), Code::in_use));
        EXPECT_TRUE(worked(scope.close()));
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(add_one, count, data).value();
        EXPECT_EQ(capture.end().value().size(), 1u);
    });
}

// keeps W3, W4: nothing is marked, and nothing stays marked
TEST(NativeScopes, ThatAreRefusedLeaveNothingOpen) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> first = pinned(device, count, 1);
        Buffer<std::int32_t> second = pinned(device, count, 1);
        Buffer<std::int32_t> empty;
        {
            const auto view = second.read_on_host().value();
            EXPECT_TRUE(
                refused_as(stream.open_native_scope("inference", updates(first), updates(second)), Code::in_use));
            EXPECT_TRUE(worked(stream.open_native_scope("inference", updates(first), reads(second))));
        }
        EXPECT_TRUE(
            refused_as(stream.open_native_scope("inference", updates(first), updates(empty)), Code::invalid_handle));
        set_all(first, 2);
        set_all(second, 2);
        (void)stream.launch(scale_into, count, first, second, 3).value();
        expect_all(first, 6);
    });
}

// keeps W5
TEST(NativeScopes, AreNotClosedByWorkOfOtherCode) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> second = pinned(device, count, 1);
        std::optional scope(stream.open_native_scope("inference", updates(data)).value());
        Code closed = Code::ok;
        (void)stream
            .enqueue_native(
                "closes",
                [&](void*, std::int32_t*) {
                    closed = scope->close().code();
                    scope.reset();  // later, with the next wait
                },
                updates(second))
            .value();
        EXPECT_EQ(closed, Code::not_permitted);
        EXPECT_TRUE(worked(stream.synchronize()));
        (void)device.allocate<std::int32_t>(count).value();
        set_all(data, 3);
        expect_all(data, 3);
    });
}

}  // namespace
}  // namespace conformance
