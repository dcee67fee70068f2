// SPDX-License-Identifier: Apache-2.0
// The trace as programs use it: its callbacks, its file, its errors.
// keeps O2
#include <isthmus/chrome_trace.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using Json = nlohmann::json;

class TraceFile : public testing::Test {
protected:
    const std::filesystem::path folder_ = testing::TempDir() + "isthmus-trace-" + std::to_string(::getpid());
    const std::string file_ = folder_ / "trace.json";

    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    Json written() const { return Json::parse(std::ifstream(file_)); }
};

void launch(const ObserverCallbacks& to) {
    ObservedFacts facts;
    facts.stream = 3;
    to.begin(to.context, Span::launch, "k", facts);
    facts.position = 1;
    to.end(to.context, Span::launch, "k", facts);
}

TEST_F(TraceFile, HasWhatManyThreadsDid) {
    Result<ChromeTrace> trace = ChromeTrace::open(file_);
    ASSERT_TRUE(trace);
    const ObserverCallbacks& callbacks = *trace->callbacks();
    std::vector<std::thread> threads;
    for (int at = 0; at < 8; ++at) {
        threads.emplace_back([&] {
            for (int times = 0; times < 100; ++times) launch(callbacks);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(trace->counts().recorded, 1600u);
    EXPECT_EQ(trace->counts().dropped, 0u);
    ASSERT_TRUE(trace->close());
    EXPECT_TRUE(trace->close());  // once
    launch(callbacks);            // a runtime that ends later
    const Json json = written();
    EXPECT_EQ(json["otherData"]["recorded"], 1600);
    int begins = 0, ends = 0;
    for (const Json& event : json["traceEvents"]) {
        begins += event["ph"] == "B" ? 1 : 0;
        ends += event["ph"] == "E" ? 1 : 0;
    }
    EXPECT_EQ(begins, 800);
    EXPECT_EQ(ends, 800);
}

TEST_F(TraceFile, SaysHowManyEventsWereDropped) {
    Result<ChromeTrace> trace = ChromeTrace::open(file_, {.events_per_thread = 3, .threads = 1});
    ASSERT_TRUE(trace);
    launch(*trace->callbacks());
    launch(*trace->callbacks());
    EXPECT_EQ(trace->counts().dropped, 1u);
    ASSERT_TRUE(trace->close());
    EXPECT_EQ(written()["otherData"]["dropped"], 1);
}

TEST_F(TraceFile, IsWrittenByTheDestructor) {
    {
        ChromeTrace trace = ChromeTrace::open(file_).value();
        launch(*trace.callbacks());
        ChromeTrace moved = std::move(trace);
        EXPECT_EQ(trace.callbacks(), nullptr);  // NOLINT(bugprone-use-after-move): what a moved-from trace says
        EXPECT_FALSE(std::filesystem::exists(file_));
    }
    EXPECT_EQ(written()["otherData"]["recorded"], 2);
}

// keeps R3
TEST_F(TraceFile, IsLeftAloneByAChildOfFork) {
    const auto in_child = [](auto work) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(work());
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    };
    {
        auto trace = std::make_unique<ChromeTrace>(ChromeTrace::open(file_).value());
        launch(*trace->callbacks());
        const auto closes = [&] {
            launch(*trace->callbacks());
            const Result<void> closed = trace->close();
            trace.reset();  // as the end of a static object
            return !closed && closed.code() == Code::forked ? 0 : 1;
        };
        EXPECT_EQ(in_child(closes), 0);
        EXPECT_FALSE(std::filesystem::exists(file_));
        launch(*trace->callbacks());
        ASSERT_TRUE(trace->close());
        EXPECT_EQ(written()["otherData"]["recorded"], 4);
        EXPECT_EQ(in_child(closes), 0);  // behind the parent's close()
    }
    EXPECT_EQ(written()["otherData"]["recorded"], 4);
    EXPECT_EQ(in_child([&] {
                  ChromeTrace own = ChromeTrace::open(folder_ / "child.json").value();
                  launch(*own.callbacks());
                  return own.close() ? 0 : 1;
              }),
              0);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "child.json"));
}

TEST_F(TraceFile, OfTheEnvironment) {
    ::unsetenv("ISTHMUS_TRACE");
    EXPECT_FALSE(ChromeTrace::from_environment().value());
    ::setenv("ISTHMUS_TRACE", "", 1);
    EXPECT_FALSE(ChromeTrace::from_environment().value());
    ::setenv("ISTHMUS_TRACE", file_.c_str(), 1);
    Result<ChromeTrace> trace = ChromeTrace::from_environment();
    ::unsetenv("ISTHMUS_TRACE");
    ASSERT_TRUE(trace);
    ASSERT_TRUE(*trace);
    launch(*trace->callbacks());
    ASSERT_TRUE(trace->close());
    EXPECT_EQ(written()["otherData"]["recorded"], 2);
}

TEST_F(TraceFile, IsRefusedWithoutANameOrRoom) {
    EXPECT_EQ(ChromeTrace::open("").code(), Code::invalid_argument);
    EXPECT_EQ(ChromeTrace::open(file_, {.events_per_thread = 0, .threads = 1}).code(), Code::invalid_argument);
    EXPECT_EQ(ChromeTrace::open(file_, {.events_per_thread = 1, .threads = 0}).code(), Code::invalid_argument);
    Result<ChromeTrace> nowhere = ChromeTrace::open(folder_ / "missing" / "trace.json");
    ASSERT_TRUE(nowhere);
    launch(*nowhere->callbacks());
    const Result<void> closed = nowhere->close();
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.code(), Code::system_error);
    EXPECT_EQ(closed.error().call(), "open");
    EXPECT_NE(closed.error().message().find("missing"), std::string::npos);
    Result<ChromeTrace> full = ChromeTrace::open("/dev/full");
    ASSERT_TRUE(full);
    launch(*full->callbacks());
    const Result<void> cut = full->close();
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().call(), "write");
}

// The observer behind it is told the same.
TEST_F(TraceFile, TellsTheNextObserver) {
    int told = 0;
    ObserverCallbacks next;
    next.context = &told;
    next.begin = [](void* to, Span, std::string_view, const ObservedFacts&) noexcept { ++*static_cast<int*>(to); };
    next.end = next.begin;
    next.mark = [](void* to, Mark, std::string_view, const ObservedFacts&) noexcept { *static_cast<int*>(to) += 10; };
    ChromeTrace empty;
    EXPECT_EQ(empty.callbacks(&next), &next);
    ChromeTrace trace = ChromeTrace::open(file_).value();
    const ObserverCallbacks& callbacks = *trace.callbacks(&next);
    launch(callbacks);
    callbacks.mark(callbacks.context, Mark::fence, "f", {});
    EXPECT_EQ(told, 12);
    EXPECT_EQ(trace.counts().recorded, 3u);
    ASSERT_TRUE(trace.close());
}

}  // namespace
