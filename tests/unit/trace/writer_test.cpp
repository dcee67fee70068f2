// SPDX-License-Identifier: Apache-2.0
// The document that is written: sorted, paired, with arrows and counters.
// keeps O2
#include "trace_writer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::trace;
using Json = nlohmann::json;

RecordedEvent made(std::uint64_t ns, Phase phase, std::uint32_t what, std::string_view name,
                   const ObservedFacts& facts = {}) {
    RecordedEvent event{};
    event.ns = ns;
    event.keep(phase, what, name, facts);
    return event;
}
RecordedEvent begin(std::uint64_t ns, Span span, std::string_view name, const ObservedFacts& facts = {}) {
    return made(ns, Phase::begin, static_cast<std::uint32_t>(span), name, facts);
}
RecordedEvent end(std::uint64_t ns, Span span, std::string_view name, const ObservedFacts& facts = {}) {
    return made(ns, Phase::end, static_cast<std::uint32_t>(span), name, facts);
}
RecordedEvent mark(std::uint64_t ns, Mark what, std::string_view name, const ObservedFacts& facts = {}) {
    return made(ns, Phase::mark, static_cast<std::uint32_t>(what), name, facts);
}
ObservedFacts on_stream(std::uint64_t stream, std::uint64_t position = 0, std::uint64_t bytes = 0) {
    ObservedFacts facts;
    facts.stream = stream;
    facts.position = position;
    facts.bytes = bytes;
    return facts;
}

Json document(const std::vector<RecordedEvent>& one, const std::vector<RecordedEvent>& other = {},
              std::uint64_t dropped = 0) {
    return Json::parse(trace_json({{1, one.data(), one.size()}, {2, other.data(), other.size()}}, dropped));
}
std::vector<Json> of_phase(const Json& document, const std::string& phase) {
    std::vector<Json> found;
    for (const Json& event : document["traceEvents"]) {
        if (event["ph"] == phase) found.push_back(event);
    }
    return found;
}

TEST(TraceDocument, IsEmptyButWholeWithoutEvents) {
    const Json empty = document({}, {}, 7);
    EXPECT_EQ(empty["otherData"]["recorded"], 0);
    EXPECT_EQ(empty["otherData"]["dropped"], 7);
    for (const Json& event : empty["traceEvents"]) EXPECT_EQ(event["ph"], "M");
}

TEST(TraceDocument, IsSortedByTimeAcrossThreads) {
    const Json json = document({begin(1000, Span::launch, "a"), end(4000, Span::launch, "a")},
                               {begin(2500, Span::copy, "b"), end(3000, Span::copy, "b")});
    double last = -1;
    std::vector<std::string> order;
    for (const Json& event : json["traceEvents"]) {
        if (event["ph"] == "M") continue;
        EXPECT_GE(event["ts"].get<double>(), last);
        last = event["ts"].get<double>();
        order.push_back(event["ph"].get<std::string>() + event["name"].get<std::string>());
    }
    EXPECT_EQ(order, (std::vector<std::string>{"Ba", "Bb", "Eb", "Ea"}));
    EXPECT_DOUBLE_EQ(last, 3);  // microseconds since the first event
    EXPECT_EQ(of_phase(json, "B")[1]["tid"], 2);
}

// An arrow leads from what a stream was given to the wait for it.
TEST(TraceDocument, SaysWhatAWaitWaitsFor) {
    const Json json =
        document({begin(1, Span::launch, "brighten", on_stream(5)), end(2, Span::launch, "brighten", on_stream(5, 1)),
                  begin(3, Span::launch, "later", on_stream(5)), end(4, Span::launch, "later", on_stream(5, 2)),
                  begin(5, Span::wait, "brighten", on_stream(5, 1)), end(6, Span::wait, "brighten", on_stream(5, 1))});
    const std::vector<Json> from = of_phase(json, "s");
    const std::vector<Json> to = of_phase(json, "f");
    ASSERT_EQ(from.size(), 2u);
    ASSERT_EQ(to.size(), 1u);
    EXPECT_EQ(from[0]["id"], to[0]["id"]);
    EXPECT_NE(from[1]["id"], to[0]["id"]);
    EXPECT_EQ(from[0]["pid"], 2);
    EXPECT_EQ(from[0]["tid"], 5);
    const std::vector<Json> begun = of_phase(json, "B");
    EXPECT_EQ(begun.back()["name"], "wait for brighten");
    EXPECT_EQ(begun.back()["args"]["waits_for"], "brighten");
    EXPECT_EQ(of_phase(json, "X").size(), 2u);
}

// A prefetch that the stream was given is on its track, and an arrow leads to the wait for it. One that was not needed
// is not, and neither is advice.
TEST(TraceDocument, GivesAHintToItsStreamWhereSomethingWasGiven) {
    const Json json = document(
        {begin(1, Span::hint, "a prefetch", on_stream(5)), end(2, Span::hint, "a prefetch", on_stream(5, 3, 64)),
         begin(3, Span::hint, "a prefetch", on_stream(5)), end(4, Span::hint, "a prefetch", on_stream(5)),
         begin(5, Span::hint, "advice"), end(6, Span::hint, "advice"),
         begin(7, Span::wait, "a prefetch", on_stream(5, 3)), end(8, Span::wait, "a prefetch", on_stream(5, 3))});
    const std::vector<Json> given = of_phase(json, "X");
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0]["name"], "a prefetch");
    EXPECT_EQ(given[0]["args"]["position"], 3);
    EXPECT_EQ(given[0]["args"]["bytes"], 64);
    const std::vector<Json> to = of_phase(json, "f");
    ASSERT_EQ(to.size(), 1u);
    EXPECT_EQ(to[0]["id"], of_phase(json, "s").at(0)["id"]);
    EXPECT_EQ(of_phase(json, "B").size(), 4u);
}

// What was refused was not given to the stream.
TEST(TraceDocument, GivesARefusedLaunchToNoStream) {
    ObservedFacts refused = on_stream(5);
    refused.code = Code::in_use;
    refused.error = "C012";
    const Json json = document({begin(1, Span::launch, "k", on_stream(5)), mark(2, Mark::refused, "k", refused),
                                end(3, Span::launch, "k", refused)});
    EXPECT_TRUE(of_phase(json, "X").empty());
    EXPECT_TRUE(of_phase(json, "s").empty());
    const std::vector<Json> marks = of_phase(json, "i");
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_EQ(marks[0]["cat"], "refused");
    EXPECT_EQ(marks[0]["args"]["code"], "in_use");
    EXPECT_EQ(marks[0]["args"]["error"], "C012");
}

TEST(TraceDocument, CountsBytes) {
    ObservedFacts memory = on_stream(0, 0, 100);
    memory.kind = MemoryKind::pinned;
    const Json json =
        document({begin(1, Span::allocate, "pinned", memory), end(2, Span::allocate, "pinned", memory),
                  mark(3, Mark::upload, "k", on_stream(1, 1, 30)), mark(4, Mark::upload, "k", on_stream(1, 2, 12)),
                  mark(5, Mark::download, "k", on_stream(1, 3, 5)), begin(6, Span::release, "pinned", memory),
                  end(7, Span::release, "pinned", memory)});
    std::vector<std::string> counted;
    for (const Json& event : of_phase(json, "C")) {
        counted.push_back(event["name"].get<std::string>() + " " + event["args"]["bytes"].dump());
    }
    EXPECT_EQ(counted, (std::vector<std::string>{"pinned memory in use 100", "copied up 30", "copied up 42",
                                                 "copied down 5", "pinned memory in use 0"}));
}

// Views overlap, and close on other threads: they are found by the buffer's address.
TEST(TraceDocument, PutsViewsOnTracksOfTheirOwn) {
    ObservedFacts one = on_stream(0, 0, 16), other = on_stream(0, 0, 16);
    one.address = 0x1000;
    other.address = 0x2000;
    const Json json =
        document({begin(1, Span::host_view, "a view for reading", one),
                  begin(2, Span::host_view, "a view for writing", other), end(3, Span::host_view, "a view", one)},
                 {end(4, Span::host_view, "a view", other)});
    const std::vector<Json> opened = of_phase(json, "b"), closed = of_phase(json, "e");
    ASSERT_EQ(opened.size(), 2u);
    ASSERT_EQ(closed.size(), 2u);
    EXPECT_EQ(opened[0]["id"], closed[0]["id"]);
    EXPECT_EQ(opened[1]["id"], closed[1]["id"]);
    EXPECT_NE(opened[0]["id"], opened[1]["id"]);
    EXPECT_TRUE(of_phase(json, "B").empty());
}

TEST(TraceDocument, EscapesWhatJsonDoesNotTake) {
    const Json json = document({begin(1, Span::launch, "a \"b\"\\\n\x01 é"), end(2, Span::launch, "x")});
    EXPECT_EQ(of_phase(json, "B")[0]["name"], "a \"b\"\\\n\x01 é");
}

// A text is cut where it does not fit, but not within a character.
TEST(RecordedTexts, AreCutBetweenCharacters) {
    KeptText<5> kept{};
    kept.keep("abcdef");
    EXPECT_EQ(kept.view(), "abcde");
    kept.keep("abcdé");  // é has two bytes
    EXPECT_EQ(kept.view(), "abcd");
    kept.keep("abcé");
    EXPECT_EQ(kept.view(), "abcé");
    kept.keep("");
    EXPECT_EQ(kept.view(), "");
}

}  // namespace
