// SPDX-License-Identifier: Apache-2.0
// Loops and branches in graphs (conditional nodes): a word of device memory decides how often a body runs.
#include "scenario.hpp"

#include <isthmus/graph.hpp>
#include <isthmus/mapping/growable_buffer.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace conformance {
namespace {

constexpr int first_driver = 12030;  // CUDA 12.3

// Memory that the host can view and a graph can use, on every device.
Buffer<std::int32_t> holding(Device& device, std::int32_t value, std::size_t count = 1) {
    SharedUse use;
    use.kind = device.is_cpu() ? MemoryKind::host : MemoryKind::pinned;
    auto buffer = device.allocate_shared<std::int32_t>(count, use).value();
    for (std::int32_t& one : buffer.write_on_host().value()) one = value;
    return buffer;
}

void set(Buffer<std::int32_t>& buffer, std::int32_t value) {
    buffer.write_on_host().value()[0] = value;
}
std::int32_t read(Buffer<std::int32_t>& buffer) {
    return buffer.read_on_host().value()[0];
}

// Either the driver has conditional nodes, or the call is refused and the capture continues.
template <class Body>
void where_graphs_decide(Body body) {
    on_every_device([&](Device& device) {
        if (device.is_cpu() || runtime().machine().driver_version >= first_driver) return body(device);
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> word = holding(device, 0);
        Capture inner = stream.begin_capture().value();
        stream.launch(add_one, 1, word).value();
        const Graph turn = inner.end().value();
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(capture.loop_while(word, turn), Code::unsupported));
        EXPECT_TRUE(refused_as(capture.loop_while(word, [](Capture&) {}), Code::unsupported));
        EXPECT_TRUE(worked(capture.end()));
    });
}

struct Loop {
    explicit Loop(Device& owner)
        : device(owner), stream(owner.create_stream().value()), word(holding(owner, 0)), turns(holding(owner, 0)) {}
    Graph body() {
        Capture capture = stream.begin_capture().value();
        stream.launch(take_turn, 1, word, turns).value();
        return capture.end().value();
    }
    // One kernel before the loop, and one after it.
    GraphInstance looping(Buffer<std::int32_t>& around) {
        const Graph inside = body();
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, 1, around).value();
        capture.loop_while(word, inside).value();
        stream.launch(add_one, 1, around).value();
        return capture.end().value().instantiate().value();
    }

    Device& device;
    Stream stream;
    Buffer<std::int32_t> word, turns;
};

TEST(Conditional, ALoopRunsWhileItsWordIsNotZeroAndLooksBeforeEachTurn) {  // keeps S14
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        Buffer<std::int32_t> around = holding(device, 0);
        const GraphInstance instance = scene.looping(around);
        std::int32_t all = 0;
        for (const std::int32_t wanted : {5, 0, 1, 100}) {
            set(scene.word, wanted);
            scene.stream.launch(instance).value();
            EXPECT_EQ(read(scene.word), 0);
            EXPECT_EQ(read(scene.turns), all += wanted);
        }
        EXPECT_EQ(read(around), 8);
    });
}

TEST(Conditional, ABranchRunsOnceOrNotAtAll) {  // keeps S14
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        const Graph inside = scene.body();
        Capture capture = scene.stream.begin_capture().value();
        capture.run_if(scene.word, inside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (const std::int32_t word : {7, 0, -1}) {
            set(scene.word, word);
            set(scene.turns, 0);
            scene.stream.launch(instance).value();
            ASSERT_EQ(read(scene.turns), word != 0 ? 1 : 0) << word;
            EXPECT_EQ(read(scene.word), word != 0 ? word - 1 : 0);
        }
    });
}

TEST(Conditional, WhatABodyWouldWriteStaysWhereItDoesNotRun) {  // keeps S14
    where_graphs_decide([](Device& device) {
        SharedUse use;
        use.kind = MemoryKind::device;  // staged, with the newer content on the host here
        Result<Buffer<std::int32_t>> staged = device.allocate_shared<std::int32_t>(1, use);
        if (!staged) return;
        Loop scene(device);
        Buffer<std::int32_t> in = holding(device, 3);
        set(*staged, 7);
        Capture inner = scene.stream.begin_capture().value();
        scene.stream.launch(scale_into, 1, *staged, in, 2).value();
        const Graph inside = inner.end().value();
        Capture capture = scene.stream.begin_capture().value();
        capture.run_if(scene.word, inside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        scene.stream.launch(instance).value();
        EXPECT_EQ(read(*staged), 7);
        set(scene.word, 1);
        scene.stream.launch(instance).value();
        EXPECT_EQ(read(*staged), 6);
    });
}

TEST(Conditional, ABodyTakesCopiesAndFillsInTheirOrder) {  // keeps S14
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        constexpr std::size_t count = 64;
        auto here = device.allocate<std::int32_t>(count).value();
        auto there = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> out = holding(device, 0, count);
        auto mapped = GrowableBuffer<std::int32_t>::create(device, count, {.where = MemoryPlace::Where::host});
        if (mapped) mapped->resize(count).value();
        Capture inner = scene.stream.begin_capture().value();
        scene.stream.launch(add_one, count, here).value();
        if (mapped) scene.stream.fill(*mapped, 6).value();
        scene.stream.copy(there, here).value();
        scene.stream.launch(take_turn, 1, scene.word, scene.turns).value();
        const Graph inside = inner.end().value();
        Capture capture = scene.stream.begin_capture().value();
        scene.stream.fill(here, 10).value();
        capture.loop_while(scene.word, inside).value();
        scene.stream.copy(out, there).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        set(scene.word, 3);
        scene.stream.launch(instance).value();
        auto view = out.read_on_host().value();
        for (const std::int32_t one : view) ASSERT_EQ(one, 13);
        if (!mapped) return;
        auto filled = mapped->read_on_host().value();
        for (const std::int32_t one : filled) ASSERT_EQ(one, 6);
    });
}

TEST(Conditional, TheGraphHoldsWhatItsBodyUses) {  // keeps S15
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        Buffer<std::int32_t> around = holding(device, 0);
        {
            const GraphInstance instance = scene.looping(around);
            EXPECT_TRUE(refused_as(scene.turns.release(), Code::in_use));
            EXPECT_TRUE(refused_as(scene.word.release(), Code::in_use));
            set(scene.word, 2);
            scene.stream.launch(instance).value();
            EXPECT_EQ(read(scene.turns), 2) << "a view waits for the loop";
        }
        EXPECT_TRUE(worked(scene.turns.release()));
        EXPECT_TRUE(worked(scene.word.release()));
    });
}

// Records with `record` on the stream and passes that as a body: the call is refused with that error, and the capture
// continues.
template <class Record>
void refuse_body(Loop& scene, std::string_view id, Record record) {
    Capture inner = scene.stream.begin_capture().value();
    record(inner);
    const Graph inside = inner.end().value();
    Capture capture = scene.stream.begin_capture().value();
    for (const bool loops : {true, false}) {
        const auto refused = loops ? capture.loop_while(scene.word, inside) : capture.run_if(scene.word, inside);
        ASSERT_TRUE(refused_as(refused, Code::unsupported));
        EXPECT_TRUE(unless_fault(refused.error().id() == id)) << refused.error().id();
    }
    scene.stream.launch(add_one, 1, scene.turns).value();
    EXPECT_EQ(capture.end().value().size(), 1u);
}

TEST(Conditional, WhatNoBodyMayHoldIsRefusedBeforeItIsRecorded) {  // keeps S14
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        refuse_body(scene, "G010", [&](Capture&) { scene.stream.call_on_host([]() noexcept {}).value(); });
        const Graph turn = scene.body();
        refuse_body(scene, "G009", [&](Capture& capture) { capture.loop_while(scene.word, turn).value(); });
        if (!device.is_cpu() && device.capabilities().has(Feature::pools)) {
            refuse_body(scene, "G008", [&](Capture&) { (void)scene.stream.allocate<std::int32_t>(4).value(); });
        }
    });
}

TEST(Conditional, ABodyIsOfOneDevice) {  // keeps S14
    where_graphs_decide([](Device& device) {
        for (Device& beside : all_devices()) {
            if (device.is_cpu() || beside.is_cpu() || &beside == &device) continue;
            Loop scene(device);
            Stream joined = beside.create_stream().value();
            Buffer<std::int32_t> there = holding(beside, 0);
            refuse_body(scene, "G011", [&](Capture& capture) {
                joined.wait_stream(scene.stream).value();
                (void)capture.launch(joined, add_one, 1, there).value();
                scene.stream.wait_stream(joined).value();
            });
        }
    });
}

// keeps S22: a loop in a branch in a loop. Each turn of the outer loop adds 1 to `count` if `inner` was set, as often
// as the innermost loop runs.
TEST(Conditional, LoopsAndBranchesNest) {
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        Buffer<std::int32_t> inner = holding(device, 0), inner_turns = holding(device, 0);
        Buffer<std::int32_t> wanted = holding(device, 0), chosen = holding(device, 0), outside = holding(device, 0);
        Capture capture = scene.stream.begin_capture().value();
        scene.stream.launch(add_one, 1, outside).value();
        const auto outer_turn = [&](Capture& turn) -> Result<void> {
            ISTHMUS_TRY(turn.launch(take_turn, 1, scene.word, scene.turns));
            ISTHMUS_TRY(turn.run_if(chosen, [&](Capture& branch) {
                Stream stream = branch.stream().value();
                stream.copy(inner, wanted).value();
                branch
                    .loop_while(inner,
                                [&](Capture& innermost) { innermost.launch(take_turn, 1, inner, inner_turns).value(); })
                    .value();
            }));
            return {};
        };
        ASSERT_TRUE(worked(capture.loop_while(scene.word, outer_turn)));
        scene.stream.launch(add_one, 1, outside).value();
        const Graph graph = capture.end().value();
        EXPECT_EQ(graph.size(), 3u) << "a loop is one operation, with all that is in it";
        const GraphInstance instance = graph.instantiate().value();
        std::int32_t turns = 0, inner_all = 0, launches = 0;
        for (const std::int32_t outer_count : {0, 1, 4}) {
            for (const std::int32_t branch : {0, 1}) {
                for (const std::int32_t inner_count : {0, 3}) {
                    set(scene.word, outer_count);
                    set(chosen, branch);
                    set(wanted, inner_count);
                    scene.stream.launch(instance).value();
                    EXPECT_EQ(read(scene.turns), turns += outer_count);
                    EXPECT_EQ(read(inner_turns), inner_all += outer_count * branch * inner_count);
                    EXPECT_EQ(read(outside), 2 * ++launches);
                }
            }
        }
        EXPECT_TRUE(refused_as(inner_turns.release(), Code::in_use)) << "the graph holds what inner bodies use";
    });
}

// keeps S22
TEST(Conditional, ABodyThatIsRecordedInPlaceTakesWhatABodyMayHold) {
    where_graphs_decide([](Device& device) {
        constexpr std::size_t many = 64;
        Loop scene(device);
        const Graph turn = scene.body();
        auto here = device.allocate<std::int32_t>(many).value();
        auto there = device.allocate<std::int32_t>(many).value();
        Buffer<std::int32_t> out = holding(device, 0, many);
        Stream side = device.create_stream().value();
        Capture capture = scene.stream.begin_capture().value();
        scene.stream.fill(here, 10).value();
        const auto body = [&](Capture& inside) {
            Stream main = inside.stream().value();
            inside.append(turn).value();
            side.wait_stream(main).value();  // joins, and comes back
            (void)inside.launch(side, add_one, many, here).value();
            main.wait_stream(side).value();
            main.copy(there, here).value();
        };
        ASSERT_TRUE(worked(capture.loop_while(scene.word, body)));
        scene.stream.copy(out, there).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (const std::int32_t turns : {3, 1}) {
            set(scene.word, turns);
            scene.stream.launch(instance).value();
            auto view = out.read_on_host().value();
            for (const std::int32_t one : view) ASSERT_EQ(one, 10 + turns);
        }
    });
}

// keeps S22
TEST(Conditional, WhatCudaAllowsInNoBodyIsRefusedThereAndTheBodyGoesOn) {
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        Stream other = device.create_stream().value();
        const Graph turn = scene.body();
        Capture calls_host = scene.stream.begin_capture().value();
        scene.stream.call_on_host([]() noexcept {}).value();
        const Graph of_the_host = calls_host.end().value();
        Capture capture = scene.stream.begin_capture().value();
        Event outside = scene.stream.record().value();
        const auto body = [&](Capture& inside) {
            Stream stream = inside.stream().value();
            EXPECT_TRUE(refused_as(stream.call_on_host([]() noexcept {}), Code::unsupported));
            EXPECT_TRUE(refused_as(inside.append(of_the_host), Code::unsupported));
            if (!device.is_cpu() && device.capabilities().has(Feature::pools)) {
                EXPECT_TRUE(refused_as(stream.allocate<std::int32_t>(4), Code::unsupported));
            }
            for (Device& beside : all_devices()) {
                if (device.is_cpu() || beside.is_cpu() || &beside == &device) continue;
                Stream joined = beside.create_stream().value();
                EXPECT_TRUE(refused_as(joined.wait_stream(stream), Code::unsupported));
            }
            EXPECT_TRUE(refused_as(stream.wait(outside), Code::capture_error)) << "of the capture around";
            EXPECT_TRUE(refused_as(stream.synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(inside.end(), Code::capture_error));
            // What is meant for the body and given to the stream around it would run once, behind the loop.
            EXPECT_TRUE(refused_as(scene.stream.launch(add_one, 1, scene.turns), Code::capture_error));
            EXPECT_TRUE(refused_as(capture.run_if(scene.word, turn), Code::capture_error));
            EXPECT_TRUE(refused_as(capture.run_if(scene.word, [](Capture&) {}), Code::capture_error));
            EXPECT_TRUE(refused_as(other.wait_stream(scene.stream), Code::capture_error));
            EXPECT_TRUE(refused_as(capture.end(), Code::capture_error));
            inside.append(turn).value();
        };
        ASSERT_TRUE(worked(capture.loop_while(scene.word, body)));
        const GraphInstance instance = capture.end().value().instantiate().value();
        set(scene.word, 2);
        scene.stream.launch(instance).value();
        EXPECT_EQ(read(scene.turns), 2);
    });
}

// keeps S22, S14
TEST(Conditional, ABodyThatIsNotRecordedToItsEndMakesNoGraph) {
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        Stream away = device.create_stream().value();
        const auto expect_none = [&](auto record, Code why) {
            {
                Capture capture = scene.stream.begin_capture().value();
                bool begun = false;
                const auto record_at_all = [&](Capture& inside) {
                    begun = true;
                    return record(inside);
                };
                EXPECT_TRUE(refused_as(capture.loop_while(scene.word, record_at_all), why));
                EXPECT_TRUE(unless_fault(begun)) << "refused as a whole: the capture goes on without the loop";
                EXPECT_TRUE(refused_as(capture.end(), Code::capture_error));
            }
            // Everything is as before: the streams work, and what the body used can be released.
            scene.stream.launch(add_one, 1, scene.turns).value();
            away.wait_stream(scene.stream).value();
            away.launch(add_one, 1, scene.turns).value();
            scene.stream.wait_stream(away).value();
        };
        expect_none(
            [&](Capture& inside) -> Result<void> {
                inside.launch(take_turn, 1, scene.word, scene.turns).value();
                return Error(Code::ended, "the program thought better of it", "record again");
            },
            Code::ended);
        expect_none(
            [&](Capture& inside) -> Result<void> {
                return inside.run_if(scene.word, [&](Capture&) -> Result<void> {
                    return Error(Code::ended, "the program thought better of it", "record again");
                });
            },
            Code::ended);
        expect_none(
            [&](Capture& inside) {
                Stream main = inside.stream().value();
                away.wait_stream(main).value();
                (void)inside.launch(away, add_one, 1, scene.turns).value();
            },
            Code::capture_error);
        expect_none([&](Capture& inside) { const Capture gone = std::move(inside); }, Code::invalid_handle);
        EXPECT_EQ(read(scene.turns), 8);
        EXPECT_TRUE(worked(scene.turns.release()));
    });
}

TEST(Conditional, TheWordBelongsToTheDeviceAndIsThere) {  // keeps S14
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        const Graph inside = scene.body();
        Capture capture = scene.stream.begin_capture().value();
        EXPECT_TRUE(refused_as(capture.loop_while(Buffer<std::int32_t>(), inside), Code::invalid_handle));
        EXPECT_TRUE(refused_as(capture.run_if(Buffer<std::int32_t>(), [](Capture&) {}), Code::invalid_handle));
        EXPECT_TRUE(worked(capture.end()));
        if (device.is_cpu()) return;
        Device& cpu = *runtime().device(runtime().device_count() - 1).value();
        Buffer<std::int32_t> elsewhere = holding(cpu, 0);
        Buffer<std::int32_t> on_host = device.allocate<std::int32_t>(1, MemoryKind::host).value();
        Capture again = scene.stream.begin_capture().value();
        EXPECT_TRUE(refused_as(again.run_if(elsewhere, inside), Code::wrong_device));
        if (!device.capabilities().has(Feature::pageable_access)) {
            EXPECT_TRUE(refused_as(again.run_if(on_host, inside), Code::not_accessible));
        }
        EXPECT_TRUE(worked(again.end()));
    });
}

TEST(Conditional, AGraphThatDecidesHasOneInstanceAndIsNoPartOfAnother) {  // keeps S16
    where_graphs_decide([](Device& device) {
        Loop scene(device);
        const Graph inside = scene.body();
        const auto record = [&] {
            Capture capture = scene.stream.begin_capture().value();
            capture.loop_while(scene.word, inside).value();
            return capture.end().value();
        };
        const Graph looping = record();
        GraphInstance instance = looping.instantiate().value();
        EXPECT_TRUE(refused_as(looping.instantiate(), Code::in_use));
        {
            Capture capture = scene.stream.begin_capture().value();
            EXPECT_TRUE(refused_as(capture.append(looping), Code::unsupported));
            EXPECT_TRUE(worked(capture.end()));
        }
        const GraphUpdate update = instance.update(record()).value();
        EXPECT_FALSE(update.in_place);
        EXPECT_NE(update.reason.find("loops or branches"), std::string::npos);
        set(scene.word, 4);
        scene.stream.launch(instance).value();
        EXPECT_EQ(read(scene.turns), 4);
    });
}

}  // namespace
}  // namespace conformance
