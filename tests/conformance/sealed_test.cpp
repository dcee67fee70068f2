// SPDX-License-Identifier: Apache-2.0
// Sealed loops that meet failures: a turn ends with a typed error within its deadline, and nothing is made in its
// place. hot_calls_test.cpp has what a scope refuses; sealed_loops_test.cpp watches whole loops from outside.
#include "gate.hpp"
#include "scenario.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

namespace conformance {
namespace {

constexpr std::size_t items = 16;
constexpr std::chrono::seconds answer_within{20};

struct Turns {
    Stream& stream;
    Buffer<std::int32_t> data;
    Event event;

    Result<void> turn() {
        if (auto launched = stream.launch(add_one, items, data); !launched) return std::move(launched).error();
        if (auto recorded = stream.record(event); !recorded) return recorded;
        auto view = data.read_on_host(Wait::at_most(answer_within));
        if (!view) return std::move(view).error();
        return {};
    }
};

TEST(SealedTurns, WorkOrEndWithATypedError) {  // keeps T2, R6
    NEEDS(real_time);
    on_every_device([](Device& device, Stream stream) {
        Turns turns{stream, pinned(device, items, 0), device.create_event().value()};
        const Result<Rehearsal> steady = rehearse([&] { return turns.turn(); }, {4, 100});
        ASSERT_TRUE(worked(steady));
        const int before = static_cast<int>(steady->turns);
        {
            const Seal seal = runtime().seal().value();
            for (int i = 0; i < 8; ++i) ASSERT_TRUE(worked(turns.turn()));
            EXPECT_TRUE(unless_fault(seal.count() == 0));
        }
        expect_all(turns.data, before + 8);
        EXPECT_TRUE(worked(device.create_stream()));  // the scope has ended
    });
}

// The GPU does not answer: a sealed view ends at its deadline, and the next one finds the answer when it has come.
TEST(SealedTurns, EndAtTheirDeadlineWhereTheDeviceHangs) {  // keeps T2, R5
    NEEDS(real_time);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, items, 7);
        Preparation what;
        what.events = 8;
        ASSERT_TRUE(worked(prepare(device, what)));
        Gate gate(device);
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), data, 10)));
        if (!gate.holds()) return;
        Seal seal = runtime().seal().value();
        EXPECT_TRUE(refused_as(data.read_on_host(Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
        EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
        gate.raise();
        EXPECT_TRUE(worked(data.read_on_host(Wait::at_most(answer_within))));
        EXPECT_TRUE(unless_fault(seal.count() == 0));
        EXPECT_TRUE(refused_as(device.create_stream(), Code::not_permitted));
        ASSERT_TRUE(worked(seal.end()));
        expect_all(data, 17);
    });
}

}  // namespace
}  // namespace conformance
