// SPDX-License-Identifier: Apache-2.0
// The trace as programs use it: its callbacks, its file, its errors.
// keeps O2
#include <isthmus/chrome_trace.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
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
}

// What the file system forbids is said before anything is recorded, and makes no file.
TEST_F(TraceFile, ThatMayNotBeWrittenIsRefusedWhenItIsOpened) {
    const auto why_not = [](const std::string& file) {
        const Result<ChromeTrace> refused = ChromeTrace::open(file);
        EXPECT_EQ(refused.code(), Code::system_error) << file;
        if (refused) return 0;
        EXPECT_NE(refused.error().message().find(file + ": " + std::strerror(refused.error().driver_code())),
                  std::string_view::npos)
            << refused.error().text();
        return refused.error().driver_code();
    };
    EXPECT_EQ(why_not(folder_ / "missing" / "trace.json"), ENOENT);
    EXPECT_EQ(why_not(folder_ / "missing" / ""), ENOENT);
    EXPECT_EQ(why_not("missing/trace.json"), ENOENT);
    EXPECT_EQ(why_not(folder_), EISDIR);
    EXPECT_EQ(why_not(folder_ / std::string(300, 'a')), ENAMETOOLONG);
    std::ofstream(file_) << "earlier";
    EXPECT_EQ(why_not(file_ + "/trace.json"), ENOTDIR);
    if (::geteuid() != 0) {  // root may write everywhere
        std::filesystem::permissions(file_, std::filesystem::perms::owner_read);
        EXPECT_EQ(why_not(file_), EACCES);
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
        EXPECT_EQ(why_not(folder_ / "new.json"), EACCES);
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TraceFile, IsNotTouchedBeforeItIsWritten) {
    const auto opens_and_writes = [&](const std::string& file) {
        const auto bytes = [&] { return std::filesystem::exists(file_) ? std::filesystem::file_size(file_) : 0; };
        const std::uintmax_t before = bytes();
        Result<ChromeTrace> trace = ChromeTrace::open(file);
        if (!trace) return testing::AssertionFailure() << trace.error().text();
        if (bytes() != before) return testing::AssertionFailure() << "it was touched";
        return trace->close() ? testing::AssertionSuccess() : testing::AssertionFailure();
    };
    EXPECT_TRUE(opens_and_writes(file_));
    std::filesystem::remove(file_);
    std::filesystem::create_symlink("trace.json", folder_ / "link.json");
    EXPECT_TRUE(opens_and_writes(folder_ / "link.json")) << "the link names no file yet";
    std::ofstream(file_) << "earlier";
    EXPECT_TRUE(opens_and_writes(file_));
    EXPECT_EQ(written()["otherData"]["recorded"], 0);
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
    EXPECT_TRUE(opens_and_writes("here.json"));
    std::filesystem::current_path(before);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "here.json"));
}

TEST_F(TraceFile, ThatIsFullOrGoneIsAnErrorWhenItIsWritten) {
    std::filesystem::create_directory(folder_ / "gone");
    Result<ChromeTrace> nowhere = ChromeTrace::open(folder_ / "gone" / "trace.json");
    ASSERT_TRUE(nowhere);
    std::filesystem::remove(folder_ / "gone");
    launch(*nowhere->callbacks());
    const Result<void> closed = nowhere->close();
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.code(), Code::system_error);
    EXPECT_EQ(closed.error().call(), "open");
    EXPECT_NE(closed.error().message().find("gone"), std::string::npos);
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
