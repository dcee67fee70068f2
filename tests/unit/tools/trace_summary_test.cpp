// SPDX-License-Identifier: Apache-2.0
// What a trace says: sums, causes, and what to change.
// keeps O2
#include "trace/trace_summary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace {

using isthmus::tools::trace::Read;
using isthmus::tools::trace::summarise;
using isthmus::tools::trace::Summary;
using Json = nlohmann::json;

Json event(const char* phase, double us, const char* category, const char* name, Json arguments = Json::object()) {
    return {{"ph", phase}, {"pid", 1}, {"tid", 1}, {"ts", us}, {"cat", category}, {"name", name}, {"args", arguments}};
}

std::string trace(const std::vector<Json>& events, int dropped = 0) {
    const Json document = {{"otherData", {{"isthmus", "0.1.0"}, {"recorded", events.size()}, {"dropped", dropped}}},
                           {"traceEvents", events}};
    return document.dump();
}

const char* const why = "the GPU has memory of its own, and repeats its reads";

std::vector<Json> two_frames() {
    const Json copied = {{"bytes", 100}, {"memory", "device"}, {"reason", why}};
    return {
        event("E", 10, "allocate", "allocate device memory", {{"memory", "device"}, {"reason", "new memory: none"}}),
        event("E", 100, "launch", "brighten", {{"stream", 1}, {"position", 1}}),
        event("i", 101, "upload", "upload: brighten", copied),
        event("B", 110, "wait", "wait for brighten", {{"inside", "a view for reading"}, {"waits_for", "brighten"}}),
        event("E", 150, "wait", "wait for brighten"),
        event("i", 160, "download", "download: the copy to the host's side", copied),
        event("E", 200, "launch", "brighten", {{"stream", 1}, {"position", 2}}),
        event("i", 201, "upload", "upload: brighten", copied),
        event("B", 210, "wait", "wait for brighten", {{"inside", "a view for reading"}, {"waits_for", "brighten"}}),
        event("E", 270, "wait", "wait for brighten"),
        event("i", 280, "refused", "refused: brighten", {{"code", "in_use"}, {"error", "C012"}}),
        event("E", 281, "launch", "brighten", {{"code", "in_use"}, {"error", "C012"}}),
        event("E", 285, "allocate", "allocate pinned memory",
              {{"memory", "pinned"}, {"bytes", 64}, {"reason", "new memory: none"}}),
        event("E", 290, "allocate", "allocate pinned memory",
              {{"memory", "pinned"}, {"bytes", 64}, {"reason", "kept memory: no call"}}),
        event("i", 300, "refused", "refused: a frame", {{"code", "not_ready"}, {"error", "N001"}}),
    };
}

Summary summary_of(const std::string& json, std::optional<double> warm = std::nullopt) {
    Read read = summarise(json, warm);
    EXPECT_TRUE(read.summary) << read.problem;
    return read.summary.value_or(Summary());
}

TEST(TraceSummaries, AddUpCopiesWithTheirReason) {
    const Summary all = summary_of(trace(two_frames()));
    EXPECT_EQ(all.copied_bytes(), 300u);
    ASSERT_EQ(all.copies.size(), 2u);
    EXPECT_TRUE(all.copies[0].up);  // the most bytes first
    EXPECT_EQ(all.copies[0].name, "brighten");
    EXPECT_EQ(all.copies[0].count, 2u);
    EXPECT_EQ(all.copies[0].bytes, 200u);
    EXPECT_EQ(all.copies[0].reason, why);
    EXPECT_FALSE(all.copies[1].up);
    EXPECT_EQ(all.copies[1].bytes, 100u);
    EXPECT_EQ(all.launches, 2u);  // one was refused
}

TEST(TraceSummaries, SayInWhatAndForWhatTheHostWaited) {
    const Summary all = summary_of(trace(two_frames()));
    ASSERT_EQ(all.waits.size(), 1u);
    EXPECT_EQ(all.waits[0].inside, "a view for reading");
    EXPECT_EQ(all.waits[0].waits_for, "brighten");
    EXPECT_EQ(all.waits[0].count, 2u);
    EXPECT_DOUBLE_EQ(all.waits[0].total_us, 100);
    EXPECT_DOUBLE_EQ(all.waits[0].longest_us, 60);
    EXPECT_DOUBLE_EQ(all.waited_us(), 100);
}

TEST(TraceSummaries, CountAllocationsOnceTheProgramIsWarm) {
    const Summary all = summary_of(trace(two_frames()));
    EXPECT_DOUBLE_EQ(all.warm_after_us, 100);
    ASSERT_EQ(all.allocations.size(), 1u);
    EXPECT_EQ(all.allocations[0].memory, "pinned");
    EXPECT_EQ(all.allocations[0].count, 2u);
    EXPECT_EQ(all.allocations[0].made_new, 1u);
    EXPECT_EQ(all.allocations[0].bytes, 128u);
    EXPECT_EQ(summary_of(trace(two_frames()), 0).allocations.size(), 2u);
    EXPECT_TRUE(summary_of(trace(two_frames()), 1).allocations.empty());
}

TEST(TraceSummaries, SayWhatToChange) {
    const Summary all = summary_of(trace(two_frames(), 9));
    const auto says = [&](const std::string& words) {
        for (const std::string& one : all.changes) {
            if (one.find(words) != std::string::npos) return true;
        }
        return false;
    };
    EXPECT_TRUE(says(why));
    EXPECT_TRUE(says("a view for reading waited for brighten in 33 %"));
    EXPECT_TRUE(says("1 allocations of pinned memory"));
    EXPECT_TRUE(says("C012"));
    EXPECT_TRUE(says("9 events found no room"));
    EXPECT_FALSE(says("N001"));  // an answer, and no mistake
    EXPECT_EQ(all.refusals.size(), 2u);
    EXPECT_TRUE(summary_of(trace({event("E", 1, "launch", "k")})).changes.empty());
}

TEST(TraceSummaries, AreTextAndJson) {
    const Summary all = summary_of(trace(two_frames()));
    const std::string text = isthmus::tools::trace::as_text(all, 100, false);
    for (const char* const words : {"300 bytes copied", "brighten", "C012", "what to change"}) {
        EXPECT_NE(text.find(words), std::string::npos) << text;
    }
    const Json json = Json::parse(isthmus::tools::trace::as_json(all));
    EXPECT_EQ(json["copied_bytes"], 300);
    EXPECT_EQ(json["copies"].size(), 2u);
    EXPECT_EQ(json["waits"][0]["count"], 2);
    EXPECT_EQ(json["allocations"][0]["new"], 1);
    EXPECT_EQ(json["refusals"].size(), 2u);
    EXPECT_EQ(json["changes"].size(), all.changes.size());
}

// What is no trace is refused with a reason, and what a trace has too much or in other types does no harm.
TEST(TraceSummaries, ReadOnlyTraces) {
    for (const char* const damaged : {"", "{", "[]", "{}", R"({"traceEvents":3})", R"({"traceEvents":[]})",
                                      R"({"traceEvents":[],"otherData":[]})", R"({"traceEvents":[],"otherData":{}})"}) {
        const Read read = summarise(damaged, std::nullopt);
        EXPECT_FALSE(read.summary) << damaged;
        EXPECT_FALSE(read.problem.empty());
    }
    const Summary odd = summary_of(
        R"({"otherData":{"isthmus":1,"dropped":-1},"traceEvents":[1,null,{},{"ph":3},{"ph":"B","ts":"x"},
            {"ph":"i","cat":"upload","ts":1,"args":[1]},{"ph":"E","cat":"wait","ts":2,"args":null}]})");
    EXPECT_EQ(odd.copied_bytes(), 0u);
    EXPECT_EQ(odd.dropped, 0u);
    EXPECT_TRUE(odd.waits.empty());
}

}  // namespace
