// SPDX-License-Identifier: Apache-2.0
// Graphs after their capture: new kernel arguments, updated instances, child graphs.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 300;

// Memory that the host can view and a graph can use, on every device.
Buffer<std::int32_t> shared(Device& device) {
    SharedUse use;
    use.kind = device.is_cpu() ? MemoryKind::host : MemoryKind::pinned;
    return device.allocate_shared<std::int32_t>(count, use).value();
}

Buffer<std::int32_t> filled(Device& device, std::int32_t value) {
    Buffer<std::int32_t> buffer = shared(device);
    auto view = buffer.write_on_host().value();
    for (std::int32_t& one : view) one = value;
    return buffer;
}

using ScaleNode = KernelNode<void(Index, Out<std::int32_t>, View<const std::int32_t>, std::int32_t)>;

// out = in × factor, as a graph of one kernel.
struct Scaling {
    GraphInstance instance;
    ScaleNode node;
};
Scaling scaling(Stream& stream, Buffer<std::int32_t>& out, Buffer<std::int32_t>& in, std::int32_t factor) {
    Capture capture = stream.begin_capture().value();
    const ScaleNode node = capture.launch(scale_into, count, out, in, factor).value();
    return {capture.end().value().instantiate().value(), node};
}

// keeps S16, S15
TEST(GraphNodes, NewArgumentsAreForTheNextLaunchAndEarlierOnesKeepTheirs) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 7);
        Buffer<std::int32_t> first = filled(device, 0);
        Buffer<std::int32_t> second = filled(device, 0);
        Scaling graph = scaling(stream, first, in, 2);
        stream.launch(graph.instance).value();
        graph.instance.set_arguments(graph.node, count, second, in, 5).value();  // perhaps while the first launch runs
        stream.launch(graph.instance).value();
        expect_all(first, 14);
        expect_all(second, 35);
        graph.instance.set_arguments(graph.node, count / 2, first, second, -1).value();  // another extent, too
        stream.launch(graph.instance).value();
        {
            auto view = first.read_on_host().value();
            EXPECT_EQ(view[0], -35);
            EXPECT_EQ(view[count / 2], 14);
        }
        expect_all(second, 35);
    });
}

// keeps S16, S15
TEST(GraphNodes, ChangingKNodesAndLaunchingCostsKPlusOneDriverCalls) {
    (void)runtime();  // opens the driver that counts
    if (driver_calls() < 0) GTEST_SKIP() << "only the simulator counts";
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        for (const std::size_t changed : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> in = device.allocate<std::int32_t>(count).value();
            stream.fill(in, 1).value();
            stream.fill(out, 1).value();
            Capture capture = stream.begin_capture().value();
            std::vector<ScaleNode> nodes;
            for (int made = 0; made < 8; ++made) {
                nodes.push_back(capture.launch(scale_into, count, out, in, made).value());
            }
            GraphInstance instance = capture.end().value().instantiate().value();
            stream.launch(instance).value();
            instance.set_arguments(nodes[7], count, out, in, 7).value();  // the first call loads the kernel's code
            const long before = driver_calls();
            for (std::size_t at = 0; at < changed; ++at) {
                instance.set_arguments(nodes[at], count, in, out, 1).value();
            }
            stream.launch(instance).value();
            EXPECT_TRUE(unless_fault(driver_calls() - before == static_cast<long>(changed) + 1)) << changed;
            stream.synchronize().value();
        }
    });
}

// keeps S20, S16: also while the CPU device's launch keeps the instance to itself
TEST(GraphNodes, AHostFunctionOfTheInstanceIsRefusedToChangeIt) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 7);
        Buffer<std::int32_t> out = filled(device, 0);
        std::optional<Graph> graph;
        std::optional<ScaleNode> node;
        std::optional<Code> set, updated, launched;
        GraphInstance* called = nullptr;
        {
            Capture capture = stream.begin_capture().value();
            node = capture.launch(scale_into, count, out, in, 2).value();
            EXPECT_TRUE(worked(stream.call_on_host([&]() noexcept {
                set = called->set_arguments(*node, count, out, in, 3).code();
                updated = called->update(*graph).code();
                launched = stream.launch(*called).code();
            })));
            graph = capture.end().value();
        }
        GraphInstance instance = graph->instantiate().value();  // its destruction waits for the function
        called = &instance;
        EXPECT_TRUE(worked(stream.launch(instance)));
        EXPECT_TRUE(worked(stream.synchronize()));
        EXPECT_EQ(set, Code::not_permitted);
        EXPECT_EQ(updated, Code::not_permitted);
        EXPECT_EQ(launched, Code::not_permitted);
        instance.set_arguments(*node, count, out, in, 3).value();
        EXPECT_TRUE(worked(stream.launch(instance)));
        EXPECT_TRUE(worked(stream.synchronize()));
        expect_all(out, 21);
    });
}

// keeps S15, S16
TEST(GraphNodes, ABufferThatIsNoLongerUsedCanBeReleasedAndTheNewOneIsHeld) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> first = filled(device, 0);
        Buffer<std::int32_t> second = filled(device, 0);
        {
            Scaling graph = scaling(stream, first, in, 2);
            stream.launch(graph.instance).value();
            EXPECT_TRUE(refused_as(first.release(), Code::in_use));
            graph.instance.set_arguments(graph.node, count, second, in, 4).value();
            EXPECT_TRUE(worked(first.release()));  // after its own launch
            EXPECT_TRUE(refused_as(second.release(), Code::in_use));
            EXPECT_TRUE(refused_as(in.release(), Code::in_use));  // still an argument
            { Buffer<std::int32_t> gone = std::move(second); }    // the object, not the memory
            stream.launch(graph.instance).value();
            stream.synchronize().value();
        }
        EXPECT_TRUE(worked(in.release()));
    });
}

// keeps S15
TEST(GraphNodes, TheGraphItselfHoldsWhatWasRecorded) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> first = filled(device, 0);
        Buffer<std::int32_t> second = filled(device, 0);
        Capture capture = stream.begin_capture().value();
        const ScaleNode node = capture.launch(scale_into, count, first, in, 2).value();
        std::optional<Graph> graph = capture.end().value();
        GraphInstance changed = graph->instantiate().value();
        changed.set_arguments(node, count, second, in, 4).value();
        EXPECT_TRUE(refused_as(first.release(), Code::in_use));  // another instance may be made of it
        {
            const GraphInstance as_recorded = graph->instantiate().value();
            stream.launch(as_recorded).value();
            stream.launch(changed).value();
            expect_all(first, 6);
            expect_all(second, 12);
        }
        graph.reset();
        EXPECT_TRUE(worked(first.release()));
    });
}

// keeps S16, S18
TEST(GraphNodes, WhatANodeCannotTakeIsRefusedAndNothingHasChanged) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> elsewhere = filled(device, 0);
        Buffer<std::int32_t> empty;
        Scaling graph = scaling(stream, out, in, 2);
        const Scaling other = scaling(stream, elsewhere, in, 9);
        GraphInstance& instance = graph.instance;
        for (const bool taken_before : {false, true}) {
            if (taken_before) instance.set_arguments(graph.node, count, out, in, 2).value();
            const long before = driver_calls();
            EXPECT_TRUE(refused_as(instance.set_arguments(other.node, count, out, in, 5), Code::invalid_handle));
            EXPECT_TRUE(refused_as(instance.set_arguments(graph.node, count, empty, in, 5), Code::invalid_handle));
            EXPECT_TRUE(refused_as(instance.set_arguments(graph.node, 0, out, in, 5), Code::invalid_argument));
            const std::uint64_t all = ~std::uint64_t{0} / 2;
            EXPECT_TRUE(refused_as(instance.set_arguments(graph.node, all, out, in, 5), Code::invalid_argument));
            const std::int64_t too_large = std::int64_t{1} << 40;
            EXPECT_TRUE(
                refused_as(instance.set_arguments(graph.node, count, out, in, too_large), Code::invalid_argument));
            EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
            {
                Buffer<std::int32_t> gone = std::move(elsewhere);
                EXPECT_TRUE(
                    refused_as(instance.set_arguments(graph.node, count, elsewhere, in, 5), Code::invalid_handle));
            }
            stream.launch(instance).value();
            expect_all(out, 6);
        }
    });
}

// keeps K6, S16
TEST(GraphNodes, ManagedMemoryMayTakeThePlaceOfOtherMemory) {
    on_every_device([](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::managed)) return;
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> managed = shared_numbers(device, count, MemoryKind::managed);
        Scaling graph = scaling(stream, out, in, 2);
        ASSERT_TRUE(worked(graph.instance.set_arguments(graph.node, count, managed, in, 5)));
        for (std::int32_t round = 1; round < 3; ++round) {
            set_all(in, round);
            stream.launch(graph.instance).value();
            expect_all(managed, 5 * round);
        }
        graph.instance.set_arguments(graph.node, count, out, in, 2).value();
        stream.launch(graph.instance).value();
        expect_all(out, 4);
        expect_all(managed, 10);
        graph.instance.set_arguments(graph.node, count, managed, out, 3).value();  // alike: nothing is judged again
        stream.launch(graph.instance).value();
        expect_all(managed, 12);
        graph.instance.set_arguments(graph.node, count, out, in, 2).value();
        EXPECT_TRUE(worked(managed.release()));
    });
}

// keeps A5, L3
TEST(GraphNodes, MemoryThatTheDeviceCannotReachIsRefusedAsALaunchRefusesIt) {
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> pageable = runtime().cpu().allocate<std::int32_t>(count).value();
        Scaling graph = scaling(stream, out, in, 2);
        const auto launched = stream.launch(scale_into, count, pageable, in, 5);
        const auto set = graph.instance.set_arguments(graph.node, count, pageable, in, 5);
        if (launched) {
            EXPECT_TRUE(worked(set));
        } else {
            EXPECT_TRUE(refused_while_it_lasts(set, launched.error().code()));
        }
        stream.synchronize().value();
    });
}

// keeps G8, G9, S16
TEST(GraphNodes, LaunchesClaimWhatTheInstanceUsesNow) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> first = filled(device, 0);
        Buffer<std::int32_t> second = filled(device, 0);
        Scaling graph = scaling(stream, first, in, 2);
        graph.instance.set_arguments(graph.node, count, second, in, 2).value();
        {
            auto no_longer = first.write_on_host().value();
            auto read_only = in.read_on_host().value();
            EXPECT_TRUE(worked(stream.launch(graph.instance)));
        }
        {
            auto now = second.read_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(graph.instance), Code::in_use));
        }
        expect_all(second, 6);
    });
}

// keeps G12, S16
TEST(GraphNodes, WhatTheHostWritesBetweenLaunchesIsSeenThroughNewArguments) {
    on_every_device([](Device& device, Stream stream) {
        std::array<Buffer<std::int32_t>, 2> in = {filled(device, 0), filled(device, 0)};
        Buffer<std::int32_t> out = filled(device, 0);
        Scaling graph = scaling(stream, out, in[0], 2);
        for (std::int32_t round = 1; round < 5; ++round) {
            Buffer<std::int32_t>& from = in[static_cast<std::size_t>(round % 2)];
            {
                auto view = from.write_on_host().value();
                for (std::int32_t& one : view) one = round;
            }
            graph.instance.set_arguments(graph.node, count, out, from, round).value();
            stream.launch(graph.instance).value();
            expect_all(out, round * round);
        }
    });
}

// keeps S16
TEST(GraphNodes, ChangesAndLaunchesOfSeveralThreadsComeOneAfterTheOther) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 1);
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> other = filled(device, 0);
        Scaling graph = scaling(stream, out, in, 1);
        const int rounds = conformance::rounds(40);
        Thread changing([&] {
            for (int round = 1; round <= rounds; ++round) {
                graph.instance.set_arguments(graph.node, count, round % 2 == 0 ? out : other, in, round).value();
            }
        });
        Thread launching([&] {
            Stream second = device.create_stream().value();
            for (int round = 0; round < rounds; ++round) second.launch(graph.instance).value();
            second.synchronize().value();
        });
        for (int round = 0; round < rounds; ++round) stream.launch(graph.instance).value();
        stream.synchronize().value();
        changing.join();
        launching.join();
        stream.launch(graph.instance).value();
        expect_all(rounds % 2 == 0 ? out : other, rounds);
    });
}

// keeps S16, S14
TEST(GraphNodes, OnlyStreamsOfAnOpenCaptureTakeNodes) {
    on_every_device([](Device& device, Stream stream, const Stream& beside) {
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> in = filled(device, 3);
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(capture.launch(beside, scale_into, count, out, in, 2), Code::capture_error));
        EXPECT_TRUE(refused_as(capture.launch(scale_into, 0, out, in, 2), Code::invalid_argument));
        EXPECT_TRUE(worked(capture.launch(stream, scale_into, count, out, in, 2)));
        const Graph graph = capture.end().value();
        EXPECT_EQ(graph.size(), 1u);
        EXPECT_TRUE(refused_as(capture.launch(scale_into, count, out, in, 2), Code::invalid_handle));
        EXPECT_TRUE(refused_as(capture.launch(stream, scale_into, count, out, in, 2), Code::invalid_handle));
        const GraphInstance instance = graph.instantiate().value();
        stream.launch(instance).value();
        expect_all(out, 6);
    });
}

// keeps S14, S16: a node belongs to the device of its own stream, which judges what it is given
TEST(GraphNodes, KernelsOfStreamsThatJoinedTakeNewArgumentsToo) {
    on_every_device([](Device& device) {
        for (Device& beside : all_devices()) {
            if (beside.is_cpu() != device.is_cpu()) continue;
            Stream stream = device.create_stream().value();
            Stream joined = beside.create_stream().value();
            Buffer<std::int32_t> before = filled(device, 1);
            Buffer<std::int32_t> in = filled(beside, 3);
            Buffer<std::int32_t> first = filled(beside, 0);
            Buffer<std::int32_t> second = filled(beside, 0);
            Capture capture = stream.begin_capture().value();
            const auto origin = capture.launch(add_one, count, before).value();
            joined.wait_stream(stream).value();
            const ScaleNode node = capture.launch(joined, scale_into, count, first, in, 2).value();
            stream.wait_stream(joined).value();
            GraphInstance instance = capture.end().value().instantiate().value();
            stream.launch(instance).value();
            instance.set_arguments(node, count, second, in, 5).value();
            instance.set_arguments(origin, count, in).value();
            stream.launch(instance).value();
            expect_all(first, 6);
            expect_all(second, 20);  // after the other kernel, whose writes are visible here
            expect_all(before, 2);
            EXPECT_TRUE(worked(first.release()));
            Buffer<std::int32_t> private_memory = device.allocate<std::int32_t>(count).value();
            const auto launched = joined.launch(scale_into, count, private_memory, in, 7);
            const auto set = instance.set_arguments(node, count, private_memory, in, 7);
            if (launched) {
                EXPECT_TRUE(worked(set));
            } else {
                // Refused in the same way as a launch.
                EXPECT_TRUE(unless_fault(!set && set.code() == launched.error().code()));
            }
            joined.synchronize().value();
        }
    });
}

// keeps S15, S16
TEST(GraphUpdates, AGraphOfTheSameShapeIsTakenInPlace) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> first = filled(device, 0);
        Buffer<std::int32_t> second = filled(device, 0);
        Scaling graph = scaling(stream, first, in, 2);
        std::optional<ScaleNode> node;
        {
            Capture capture = stream.begin_capture().value();
            node = capture.launch(scale_into, count, second, in, 5).value();
            const Graph next = capture.end().value();
            stream.launch(graph.instance).value();
            const GraphUpdate update = graph.instance.update(next).value();
            EXPECT_TRUE(unless_fault(update.in_place)) << update.reason;
            EXPECT_TRUE(unless_fault(update.reason.empty())) << update.reason;
        }
        stream.launch(graph.instance).value();
        expect_all(first, 6);  // of the earlier launch
        expect_all(second, 15);
        EXPECT_TRUE(worked(first.release()));
        EXPECT_TRUE(refused_as(second.release(), Code::in_use));
        // Nodes belong to the new graph.
        EXPECT_TRUE(refused_as(graph.instance.set_arguments(graph.node, count, second, in, 6), Code::invalid_handle));
        graph.instance.set_arguments(*node, count, second, in, 7).value();
        stream.launch(graph.instance).value();
        expect_all(second, 21);
    });
}

// keeps S16: the driver's nodes keep the names of the first graph, however often it is updated
TEST(GraphUpdates, TheGraphOfAnInstanceTakesBackWhatWasSet) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Capture capture = stream.begin_capture().value();
        const ScaleNode node = capture.launch(scale_into, count, out, in, 2).value();
        const Graph graph = capture.end().value();
        GraphInstance instance = graph.instantiate().value();
        for (std::int32_t round = 4; round < 7; ++round) {
            instance.set_arguments(node, count, out, in, round).value();
            stream.launch(instance).value();
            expect_all(out, 3 * round);
            instance.update(graph).value();
            stream.launch(instance).value();
            expect_all(out, 6);
        }
    });
}

// keeps S15, S16
TEST(GraphUpdates, AGraphOfAnotherShapeGetsANewInstanceAndTheOldOneEndsWithItsLaunches) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Buffer<std::int32_t> busy = filled(device, 0);
        Scaling graph = scaling(stream, out, in, 2);
        {
            Capture long_one = stream.begin_capture().value();
            stream.launch(churn, count, busy, 200).value();
            graph.instance.update(long_one.end().value()).value();
            stream.launch(graph.instance).value();
            Capture capture = stream.begin_capture().value();
            stream.launch(add_one, count, out).value();
            const ScaleNode node = capture.launch(scale_into, count, out, in, 4).value();
            stream.launch(add_one, count, out).value();
            // The long kernel may still run.
            const GraphUpdate update = graph.instance.update(capture.end().value()).value();
            EXPECT_FALSE(update.in_place);
            EXPECT_NE(update.reason.find("operations"), std::string::npos) << update.reason;
            stream.launch(graph.instance).value();
            expect_all(out, 13);
            graph.instance.set_arguments(node, count, out, in, 5).value();
        }
        stream.launch(graph.instance).value();
        expect_all(out, 16);
        EXPECT_TRUE(refused_as(graph.instance.set_arguments(graph.node, count, out, in, 5), Code::invalid_handle));
        stream.synchronize().value();
        stream.launch(graph.instance).value();  // frees at the latest here what was replaced and has ended
        EXPECT_TRUE(worked(busy.release()));
    });
}

// keeps S15
TEST(GraphUpdates, GraphsOfAnotherDeviceOrWithMemoryOfTheirOwnAreNotTakenInPlace) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Scaling graph = scaling(stream, out, in, 2);
        Device& other = device.is_cpu() ? runtime().default_device() : runtime().cpu();
        if (&other != &device) {
            Stream there = other.create_stream().value();
            Buffer<std::int32_t> its = filled(other, 0);
            if (Result<Capture> capture = there.begin_capture()) {
                there.launch(add_one, count, its).value();
                EXPECT_TRUE(refused_as(graph.instance.update(capture->end().value()), Code::wrong_device));
            }
        }
        if (!device.is_cpu() && device.capabilities().has(Feature::pools)) {
            Capture capture = stream.begin_capture().value();
            Buffer<std::int32_t> scratch = stream.allocate<std::int32_t>(count).value();
            stream.fill_bytes(scratch, 1).value();
            stream.launch(scale_into, count, out, scratch, 2).value();
            const Graph allocating = capture.end().value();
            {
                const GraphInstance the_one = allocating.instantiate().value();
                EXPECT_TRUE(refused_as(graph.instance.update(allocating), Code::in_use));
            }
            const GraphUpdate update = graph.instance.update(allocating).value();
            EXPECT_FALSE(update.in_place);
            EXPECT_NE(update.reason.find("memory"), std::string::npos) << update.reason;
            stream.launch(graph.instance).value();
            expect_all(out, 2 * 0x01010101);
            stream.synchronize().value();
            return;
        }
        stream.launch(graph.instance).value();
        expect_all(out, 6);
    });
}

// keeps S16, S20: an instance that is updated for ever does not keep all that it ever did
TEST(GraphUpdates, HostFunctionsOfBeforeAreLetGoOfOnceTheirLaunchesHaveEnded) {
    on_every_device([](Device&, Stream stream) {
        const auto calling = [&](const std::shared_ptr<std::atomic<int>>& calls) {
            Capture capture = stream.begin_capture().value();
            stream.call_on_host([calls]() noexcept { ++*calls; }).value();
            return capture.end().value();
        };
        std::array<std::shared_ptr<std::atomic<int>>, 4> calls;
        for (auto& one : calls) one = std::make_shared<std::atomic<int>>(0);
        GraphInstance instance = calling(calls[0]).instantiate().value();
        for (std::size_t at = 1; at < calls.size(); ++at) {
            stream.launch(instance).value();
            stream.synchronize().value();
            EXPECT_EQ(calls[at - 1]->load(), 1);
            EXPECT_TRUE(unless_fault(instance.update(calling(calls[at])).value().in_place));
        }
        EXPECT_TRUE(unless_fault(calls[1].use_count() == 1 && calls[2].use_count() == 1));
        EXPECT_GT(calls[3].use_count(), 1);
    });
}

// keeps S15
TEST(GraphsInGraphs, AnAppendedGraphIsAPartOfTheNewOneWhichHoldsItsBuffers) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = filled(device, 0);
        Buffer<std::int32_t> in = filled(device, 4);
        auto instance = [&] {
            Capture inner = stream.begin_capture().value();
            stream.launch(scale_into, count, data, in, 10).value();
            stream.launch(add_one, count, data).value();
            const Graph part = inner.end().value();
            Capture outer = stream.begin_capture().value();
            stream.launch(add_one, count, in).value();
            outer.append(part).value();
            EXPECT_TRUE(refused_as(outer.append(device.create_stream().value(), part), Code::capture_error));
            stream.launch(add_one, count, data).value();
            return outer.end().value().instantiate().value();
        }();  // the part is gone, and its copy is not
        EXPECT_TRUE(refused_as(data.release(), Code::in_use));
        stream.launch(instance).value();
        expect_all(data, 52);
        stream.launch(instance).value();
        expect_all(data, 62);
        instance = GraphInstance(nullptr);
        EXPECT_TRUE(worked(data.release()));
    });
}

// keeps S14, S19, S15
TEST(GraphsInGraphs, AnInstanceOnACapturedStreamAndAGraphWithMemoryAreRefusedAndTheCaptureGoesOn) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        const Scaling graph = scaling(stream, out, in, 2);
        std::optional<Graph> allocating;
        if (!device.is_cpu() && device.capabilities().has(Feature::pools)) {
            Capture capture = stream.begin_capture().value();
            Buffer<std::int32_t> scratch = stream.allocate<std::int32_t>(count).value();
            stream.fill_bytes(scratch, 1).value();
            allocating = capture.end().value();
        }
        Capture capture = stream.begin_capture().value();
        const long before = driver_calls();
        EXPECT_TRUE(refused_as(stream.launch(graph.instance), Code::capture_error));
        if (allocating) {
            EXPECT_TRUE(refused_as(capture.append(*allocating), Code::unsupported));
        }
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
        stream.launch(scale_into, count, out, in, 3).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        if (allocating) {
            EXPECT_TRUE(refused_as(capture.append(*allocating), Code::invalid_handle));
        }
        stream.launch(instance).value();
        expect_all(out, 9);
    });
}

// keeps S15: what was recorded can be looked at
TEST(GraphDots, NameKernelsArgumentsStreamsAndOrder) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = filled(device, 3);
        Buffer<std::int32_t> out = filled(device, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(scale_into, count, out, in, 2).value();
        stream.copy(in, out).value();
        const Graph graph = capture.end().value();
        const long before = driver_calls();
        const std::string drawn = graph.dot();
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
        EXPECT_EQ(drawn.rfind("digraph \"graph ", 0), 0u) << drawn;
        const std::string place = "stream " + std::to_string(stream.id()) + ", ";
        for (const std::string& part : {std::string("scale_into"), std::string("out: writes 1200 bytes"),
                                        std::string("in: reads 1200 bytes"), std::string("n0 -> n1;"), place}) {
            EXPECT_NE(drawn.find(part), std::string::npos) << part << " in\n" << drawn;
        }
        EXPECT_EQ(graph.dot(), drawn);
    });
}

}  // namespace
}  // namespace conformance
