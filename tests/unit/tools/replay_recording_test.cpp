// SPDX-License-Identifier: Apache-2.0
// A trace as memory and calls, frames and turns, costs by a profile, and an outcome as text and JSON.
// keeps O4
#include "replay/costs.hpp"
#include "replay/outcome.hpp"
#include "replay/recording.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace {

using namespace isthmus::tools::replay;
using isthmus::ArgumentUse;
using isthmus::LaunchPath;
using isthmus::MemoryKind;
using isthmus::Use;
using Json = nlohmann::json;

const char* const often = "host=writes_often device=reads_and_writes";

// A trace, event by event, as ChromeTrace writes it.
class Trace {
public:
    Trace& event(const char* phase, const char* category, const std::string& name, Json arguments = Json::object(),
                 int thread = 1) {
        events_.push_back({{"ph", phase},
                           {"pid", 1},
                           {"tid", thread},
                           {"ts", static_cast<double>(events_.size()) + 0.5},
                           {"cat", category},
                           {"name", name},
                           {"args", std::move(arguments)}});
        return *this;
    }
    Trace& buffer(const char* address, int bytes, const char* how = "shared", const char* reason = often) {
        return event("i", "buffer", std::string("buffer: ") + how,
                     {{"address", address}, {"bytes", bytes}, {"memory", "pinned"}, {"reason", reason}});
    }
    Trace& use(const char* use, const char* address, int bytes, const char* reason = "checked", int thread = 1) {
        return event("i", "argument", std::string("argument: ") + use,
                     {{"address", address}, {"bytes", bytes}, {"memory", "pinned"}, {"reason", reason}}, thread);
    }
    Trace& launch(const char* address, int bytes, const char* reason = "checked", int thread = 1) {
        event("B", "launch", "brighten", {{"stream", 7}}, thread);
        use("read_write", address, bytes, reason, thread);
        return event("E", "launch", "brighten", {{"stream", 7}, {"position", 1}}, thread);
    }
    Trace& view(const char* how, const char* use_of_it, const char* address, int bytes) {
        const Json facts = {{"address", address}, {"bytes", bytes}, {"memory", "pinned"}};
        event("b", "host_view", std::string("a view for ") + how, facts);
        use(use_of_it, address, bytes, "");
        return event("e", "host_view", std::string("a view for ") + how, facts);
    }
    std::string text(int dropped = 0) const {
        return Json{{"otherData", {{"isthmus", "0.1.0"}, {"dropped", dropped}}}, {"traceEvents", events_}}.dump();
    }
    Recording read() const {
        ReadRecording read = read_recording(text());
        EXPECT_TRUE(read.recording) << read.problem;
        return read.recording.value_or(Recording());
    }

private:
    std::vector<Json> events_;
};

std::vector<Act> acts(const Recording& recording) {
    std::vector<Act> all;
    for (const Step& step : recording.steps) all.push_back(step.act);
    return all;
}
using Acts = std::vector<Act>;

Trace frames(int count) {
    Trace trace;
    trace.buffer("0x1000", 4096);
    for (int frame = 0; frame < count; ++frame) {
        trace.view("writing", "write", "0x1000", 4096).launch("0x1000", 4096).view("reading", "read", "0x1000", 4096);
    }
    return trace;
}

TEST(Recordings, AreWhatTheProgramAskedFor) {
    Trace trace = frames(1);
    trace.event("i", "buffer_end", "buffer_end: pinned", {{"address", "0x1000"}, {"bytes", 4096}});
    const Recording recording = trace.read();
    ASSERT_EQ(acts(recording), (Acts{Act::make, Act::open_view, Act::close_view, Act::launch, Act::open_view,
                                     Act::close_view, Act::end}));
    ASSERT_EQ(recording.memories.size(), 1u);
    EXPECT_EQ(recording.memories[0].made, Made::shared);
    EXPECT_EQ(recording.memories[0].bytes, 4096u);
    EXPECT_EQ(recording.memories[0].use.host, Use::writes_often);
    EXPECT_EQ(recording.steps[1].uses[0].use, ArgumentUse::write);
    EXPECT_EQ(recording.steps[2].other, 1u);
    EXPECT_EQ(recording.steps[3].name, "brighten");
    EXPECT_EQ(recording.steps[3].stream, 7u);
    EXPECT_EQ(recording.steps[3].mode, isthmus::LaunchMode::checked);
    EXPECT_EQ(recording.steps[4].uses[0].use, ArgumentUse::read);
    EXPECT_EQ(recording.unclear, 0u);
}

TEST(Recordings, KnowPartsByTheirAddress) {
    Trace trace;
    trace.buffer("0x1000", 4096).launch("0x1100", 256);
    const MemoryUse use = trace.read().steps[1].uses[0];
    EXPECT_EQ(use.memory, 0u);
    EXPECT_EQ(use.first, 0x100u);
    EXPECT_EQ(use.bytes, 256u);
}

// An address is used again after the memory went back, also where the end found no room.
TEST(Recordings, TakeAnAddressThatRepeatsForNewMemory) {
    Trace trace;
    trace.buffer("0x1000", 64).launch("0x1000", 64);
    trace.event("i", "buffer_end", "buffer_end: pinned", {{"address", "0x1000"}});
    trace.buffer("0x1000", 128).launch("0x1000", 128).buffer("0x1000", 256).launch("0x1000", 256);
    const Recording recording = trace.read();
    ASSERT_EQ(acts(recording),
              (Acts{Act::make, Act::launch, Act::end, Act::make, Act::launch, Act::end, Act::make, Act::launch}));
    EXPECT_EQ(recording.steps[1].uses[0].memory, 0u);
    EXPECT_EQ(recording.steps[4].uses[0].memory, 1u);
    EXPECT_EQ(recording.steps[7].uses[0].memory, 2u);
}

TEST(Recordings, TakeUnknownMemoryForOneThatWasThereBefore) {
    Trace trace;
    trace.launch("0x9000", 64).launch("0x9000", 512);
    const Recording recording = trace.read();
    ASSERT_EQ(recording.memories.size(), 1u);
    EXPECT_EQ(recording.memories[0].made, Made::before);
    EXPECT_EQ(recording.memories[0].bytes, 512u);
    EXPECT_EQ(acts(recording), (Acts{Act::launch, Act::launch}));
}

TEST(Recordings, TakeMemoryWithoutAKindForAPlainPointer) {
    Trace trace;
    trace.buffer("0x1000", 4096).event("B", "launch", "brighten", {{"stream", 7}});
    trace.event("i", "argument", "argument: read", {{"address", "0x1000"}, {"bytes", 16}, {"reason", "checked"}});
    trace.event("E", "launch", "brighten", {{"code", "not_accessible"}, {"error", "L003"}});
    const Recording recording = trace.read();
    ASSERT_EQ(recording.memories.size(), 2u);
    EXPECT_EQ(recording.memories[1].made, Made::raw);
    EXPECT_TRUE(recording.steps[1].refused);
    EXPECT_EQ(recording.steps[1].uses[0].memory, 1u);
}

// What a capture records runs at its graph's launches, which tell the uses again.
TEST(Recordings, LeaveOutWhatACaptureRecorded) {
    Trace trace;
    trace.buffer("0x1000", 4096).launch("0x1000", 4096, "captured");
    trace.event("B", "graph_launch", "a graph", {{"stream", 7}}).use("read_write", "0x1000", 4096, "");
    trace.event("E", "graph_launch", "a graph", {{"stream", 7}});
    const Recording recording = trace.read();
    EXPECT_EQ(acts(recording), (Acts{Act::make, Act::launch}));
    EXPECT_EQ(recording.steps[1].name, "a graph");
    EXPECT_EQ(recording.captured, 1u);
}

// The CPU device opens a launch's arguments as views; copies and read-backs do so, too.
TEST(Recordings, LeaveOutViewsWithinACall) {
    Trace trace;
    const Json facts = {{"address", "0x1000"}, {"bytes", 4096}, {"memory", "host"}};
    trace.buffer("0x1000", 4096).event("B", "launch", "brighten", {{"stream", 7}}).use("read", "0x1000", 4096);
    trace.event("b", "host_view", "a view for reading", facts).use("read", "0x1000", 4096);
    trace.event("e", "host_view", "a view for reading", facts).event("E", "launch", "brighten");
    const Recording recording = trace.read();
    EXPECT_EQ(acts(recording), (Acts{Act::make, Act::launch}));
    EXPECT_EQ(recording.steps[1].uses.size(), 1u);
}

// Only a wait that no view makes is the program's own.
TEST(Recordings, KnowTheWaitsOfViews) {
    Trace trace;
    const Json facts = {{"address", "0x1000"}, {"bytes", 4096}, {"memory", "pinned"}};
    trace.buffer("0x1000", 4096).event("b", "host_view", "a view for reading", facts).use("read", "0x1000", 4096, "");
    trace.event("B", "wait", "wait for brighten", {{"stream", 7}}).event("E", "wait", "wait for brighten");
    trace.event("e", "host_view", "a view for reading", facts);
    trace.event("B", "wait", "wait for brighten", {{"stream", 7}}).event("E", "wait", "wait for brighten");
    EXPECT_EQ(acts(trace.read()), (Acts{Act::make, Act::open_view, Act::close_view, Act::wait}));
}

TEST(Recordings, OrderCallsOfSeveralThreadsByTheirBegin) {
    Trace trace;
    trace.buffer("0x1000", 64).buffer("0x2000", 64);
    trace.event("B", "launch", "first", {{"stream", 1}}, 1).event("B", "launch", "second", {{"stream", 2}}, 2);
    trace.use("read", "0x2000", 64, "checked", 2).use("read", "0x1000", 64, "checked", 1);
    trace.event("E", "launch", "second", {}, 2).event("E", "launch", "first", {}, 1);
    const Recording recording = trace.read();
    ASSERT_EQ(recording.steps.size(), 4u);
    EXPECT_EQ(recording.steps[2].name, "first");
    EXPECT_EQ(recording.steps[2].uses[0].memory, 0u);
    EXPECT_EQ(recording.steps[3].uses[0].memory, 1u);
    EXPECT_EQ(recording.threads, 2u);
}

TEST(Recordings, CountTurnsAsFrames) {
    EXPECT_EQ(frames(3).read().frames(), 3u);
    EXPECT_EQ(turns(frames(3).read()), (std::vector<std::uint64_t>{3}));
    // Two launches in one turn.
    EXPECT_EQ(Trace().buffer("0x1000", 64).launch("0x1000", 64).launch("0x1000", 64).read().frames(), 1u);
    Trace with_ring = frames(3);
    for (int frame = 0; frame < 5; ++frame) {
        with_ring.event("B", "ring_publish", "a frame").event("E", "ring_publish", "a frame");
    }
    EXPECT_EQ(with_ring.read().frames(), 5u);
}

TEST(Recordings, SayWhatIsNoRecording) {
    for (const char* const text :
         {"", "{", "[]", "{}", "{\"traceEvents\":[]}", "null", "{\"otherData\":{\"isthmus\":\"0\"},\"traceEvents\":{}}",
          "{\"otherData\":{\"isthmus\":\"0\"},\"traceEvents\":[]}", "{\"otherData\":[],\"traceEvents\":[]}"}) {
        const ReadRecording read = read_recording(text);
        EXPECT_FALSE(read.recording) << text;
        EXPECT_FALSE(read.problem.empty()) << text;
    }
    const std::string whole = frames(2).text();
    for (std::size_t length = 0; length < whole.size(); length += 7) {
        EXPECT_FALSE(read_recording(whole.substr(0, length)).recording) << length;
    }
}

// Every member of every event, replaced by something else: the recording is read without what it needs, or refused.
TEST(Recordings, SurviveEventsThatMeanNothing) {
    const Json whole = Json::parse(frames(1).launch("0x1100", 16).text());
    const Json others[] = {nullptr, -1, "0xFFFFFFFFFFFFFFFF", Json::array(), std::uint64_t{0} - 1};
    for (std::size_t at = 0; at < whole["traceEvents"].size(); ++at) {
        for (const Json& other : others) {
            for (const auto& [key, value] : whole["traceEvents"][at].items()) {
                Json changed = whole;
                changed["traceEvents"][at][key] = other;
                (void)read_recording(changed.dump());
            }
            for (const auto& [key, value] : whole["traceEvents"][at]["args"].items()) {
                Json changed = whole;
                changed["traceEvents"][at]["args"][key] = other;
                const ReadRecording read = read_recording(changed.dump());
                if (!read.recording) continue;
                for (const Step& step : read.recording->steps) {
                    for (const MemoryUse& use : step.uses) {
                        ASSERT_LT(use.memory, read.recording->memories.size());
                        const Memory& memory = read.recording->memories[use.memory];
                        ASSERT_LE(use.first, memory.bytes);
                        ASSERT_LE(use.bytes, memory.bytes - use.first);
                    }
                    if (step.act == Act::close_view || step.act == Act::close_scope) {
                        ASSERT_LT(step.other, read.recording->steps.size());
                    }
                }
            }
            Json without = whole;
            without["traceEvents"][at] = other;
            (void)read_recording(without.dump());
        }
        Json less = whole;
        less["traceEvents"].erase(at);
        (void)read_recording(less.dump());
    }
}

TEST(RecordedUses, AreReadAsTheyAreTold) {
    const auto use = use_of(
        "host=writes_often device=reads_once prefer=latency passes=3 kind=pinned updates=1 "
        "alignment=4096 pages=huge");
    ASSERT_TRUE(use);
    EXPECT_EQ(use->host, Use::writes_often);
    EXPECT_EQ(use->device, Use::reads_once);
    EXPECT_EQ(use->prefer, isthmus::Prefer::latency);
    EXPECT_EQ(use->device_passes, 3);
    EXPECT_EQ(use->kind, MemoryKind::pinned);
    EXPECT_EQ(use->updates, isthmus::AtomicSet::add);
    EXPECT_EQ(use->alignment_bytes, 4096u);
    EXPECT_EQ(use->placement.page_size, isthmus::PageSize::huge);
    for (const char* const no : {"", "host", "host=", "host=sometimes", "passes=-1", "kind=fast", "colour=red"}) {
        EXPECT_FALSE(use_of(no)) << no;
    }
}

isthmus::tools::tune::Measurements measured(MemoryKind kind, double seconds) {
    isthmus::tools::tune::Measurements all;
    all.ways = {{kind}};
    for (const int passes : {1, 16}) {
        for (const std::size_t bytes : {std::size_t{4096}, std::size_t{8192}}) {
            const double median = seconds * static_cast<double>(bytes) / 4096;
            all.turns.push_back({{kind}, isthmus::Role::reads_and_writes, bytes, passes, {median, median, median, 9}});
            all.turns.push_back({{kind}, isthmus::Role::reads, bytes, passes, {median, median, median, 9}});
        }
    }
    for (const isthmus::Role role : {isthmus::Role::reads, isthmus::Role::writes}) {
        all.hosts.push_back({{kind}, role, 4096, {seconds / 8, seconds / 8, seconds / 8, 9}});
        all.hosts.push_back({{kind}, role, 8192, {seconds / 4, seconds / 4, seconds / 4, 9}});
    }
    return all;
}

TEST(Costs, AreThoseOfEachTurn) {
    Trace trace;
    trace.buffer("0x1000", 4096, "shared", "host=reads_and_writes device=reads_and_writes");
    for (int frame = 0; frame < 3; ++frame) {
        trace.view("writing", "write", "0x1000", 4096).launch("0x1000", 4096).launch("0x1000", 4096);
    }
    const Recording recording = trace.read();
    const isthmus::tools::tune::CostModel costs(measured(MemoryKind::pinned, 1e-3));
    const std::vector<std::optional<Became>> pinned{Became{MemoryKind::pinned, LaunchPath::pass}};
    const std::vector<std::optional<Became>> copied{Became{MemoryKind::device, LaunchPath::stage}};
    const std::optional<double> seconds = hand_over_seconds(recording, pinned, costs);
    ASSERT_TRUE(seconds);
    EXPECT_GT(*seconds, 2e-3);
    EXPECT_LT(*seconds, 4e-3);
    EXPECT_FALSE(hand_over_seconds(recording, copied, costs)) << "copies were not measured";
    EXPECT_FALSE(hand_over_seconds(recording, {std::nullopt}, costs)) << "it was refused";
}

Outcome an_outcome() {
    Outcome outcome;
    outcome.machine = "orin";
    outcome.device = "Orin";
    outcome.frames = 4;
    outcome.launches = 8;
    outcome.groups = {{"shared", "pinned", "pinned", "pass", "it is", 1, 10},
                      {"shared", "device", "pinned", "stage", "it is", 2, 30}};
    outcome.refusals = {{"launch brighten", "in_use", "K005", "a view is open", "close it", 1, 0},
                        {"allocate", "unsupported", "W005", "no", "yes", 2, 2}};
    outcome.copies = {{true, "brighten", "device", 4, 400}, {false, "the copy", "device", 5, 500}};
    outcome.waits = {{"a view for reading", "brighten", 6}};
    sort(outcome);
    return outcome;
}

TEST(Outcomes, AreOneLine) {
    EXPECT_EQ(one_line(an_outcome()),
              "orin: device (copied), pinned; 3 refusals; 2.2 copies a frame (225 bytes); 1.5 waits a frame");
    Outcome quiet;
    quiet.machine = "thor";
    quiet.groups = {{"shared", "host", "host", "pass", "", 1, 1}};
    EXPECT_EQ(one_line(quiet), "thor: host; 0 refusals; 0 copies a frame; 0 waits a frame");
    EXPECT_EQ(per_frame(1, 1), "1");
    EXPECT_EQ(per_frame(1, 1000), "< 0.1");
    EXPECT_EQ(per_frame(6, 4), "1.5");
}

TEST(Outcomes, ComeBackFromTheirJson) {
    Outcome outcome = an_outcome();
    outcome.hand_over_seconds = 0.25;
    outcome.notes = {"one \xFF note"};
    const std::string json = as_json(outcome);
    const std::optional<Outcome> read = read_outcome(json);
    ASSERT_TRUE(read);
    EXPECT_EQ(as_json(*read), json);
    EXPECT_EQ(one_line(*read), one_line(outcome));
    for (const char* const no : {"", "[]", "{\"frames\":\"many\"}", "{\"memory\":[1]}", "{\"notes\":[1]}"}) {
        EXPECT_FALSE(read_outcome(no)) << no;
    }
}

TEST(Outcomes, AreTextWithReasonsAndRemedies) {
    const std::string text = as_text(an_outcome(), {100, false});
    for (const char* const words :
         {"replay on orin", "K005 in_use", "close it", "2, as recorded", "host side pinned"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
    Outcome failed;
    failed.machine = "igx";
    failed.problem = "it ended with signal 9";
    const std::string table = as_table({an_outcome(), failed}, {120, false});
    EXPECT_NE(table.find("igx"), std::string::npos);
    EXPECT_NE(table.find("signal 9"), std::string::npos);
    EXPECT_NE(table.find("4 frames"), std::string::npos);
}

}  // namespace
