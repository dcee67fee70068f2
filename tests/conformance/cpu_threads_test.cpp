// SPDX-License-Identifier: Apache-2.0
// The CPU device with worker threads: the same results, faults and refusals as with one.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t large = 100003;

RuntimeOptions with_threads(std::uint32_t threads) {
    RuntimeOptions options;
    options.use_cuda = false;
    options.cpu_threads = threads;
    return options;
}
// The process's threads, by their numbers. Those of earlier scenarios may end at any time.
std::set<std::string> threads() {
    std::set<std::string> all;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        all.insert(task.path().filename().string());
    }
    return all;
}

// Those that have come since, when at most so many have: a thread that was joined may be listed for a moment.
std::set<std::string> threads_since(const std::set<std::string>& before, std::size_t most) {
    std::set<std::string> fresh;
    const auto until = std::chrono::steady_clock::now() + patience();
    do {
        fresh = threads();
        std::erase_if(fresh, [&](const std::string& thread) { return before.contains(thread); });
        if (fresh.size() <= most) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (std::chrono::steady_clock::now() < until);
    return fresh;
}

// Everything that large kernels of each kind write: plain items, blocks with barriers, atomic updates, a graph.
std::vector<std::int64_t> results(std::uint32_t threads) {
    Runtime own = Runtime::open(with_threads(threads)).value();
    Device& device = own.cpu();
    Stream stream = device.create_stream().value();
    std::vector<std::int64_t> all;
    const auto keep = [&all](const auto& buffer) {
        for (const auto& value : buffer.read_on_host().value()) all.push_back(static_cast<std::int64_t>(value));
    };
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(large).value();
    Buffer<std::int32_t> scaled = device.allocate_shared<std::int32_t>(large).value();
    std::int32_t next = 0;
    for (std::int32_t& value : data.write_on_host().value()) value = ++next;
    stream.launch(churn, large, data, 3).value();
    stream.launch(scale_into, large, scaled, data, 1).value();  // churn leaves any numbers
    keep(scaled);
    Buffer<std::uint64_t> places = device.allocate_shared<std::uint64_t>(300 * 200).value();
    stream.launch(coordinates, Extent2{300, 200}, places, 300).value();
    keep(places);
    Buffer<std::int64_t> sums = device.allocate_shared<std::int64_t>(1000).value();
    Buffer<std::int32_t> summed = device.allocate_shared<std::int32_t>(64000).value();
    for (std::int32_t& value : summed.write_on_host().value()) value = ++next % 1000;
    stream.launch(block_sums, Blocks{1000}, sums, summed).value();
    keep(sums);
    Buffer<std::uint32_t> words = device.allocate_shared<std::uint32_t>(3).value();
    for (std::uint32_t& word : words.write_on_host().value()) word = 0;
    stream.launch(update_words, large, UpdatedWords{words.write_on_host().value().data(), 3}).value();
    keep(words);
    Capture capture = stream.begin_capture().value();
    stream.launch(add_one, large, data).value();
    stream.launch(churn, large, data, 1).value();
    const GraphInstance instance = capture.end().value().instantiate().value();
    for (int n = 0; n < 3; ++n) stream.launch(instance).value();
    keep(data);
    return all;
}

// keeps L16
TEST(CpuThreads, GiveTheSameBitsForEveryNumber) {
    const std::vector<std::int64_t> alone = results(0);
    EXPECT_EQ(alone[large + 60000 + 1000], static_cast<std::int64_t>(large)) << "every atomic update counts";
    for (const std::uint32_t threads : {1u, 2u, 3u, 7u}) EXPECT_EQ(results(threads), alone) << threads << " threads";
}

// keeps L16, R10
TEST(CpuThreads, ExistWhereAskedForAndEndWithTheRuntime) {
    std::thread([] {}).join();  // ThreadSanitizer starts a thread of its own with the first one
    const std::set<std::string> before = threads();
    {
        Runtime none = Runtime::open(with_threads(0)).value();
        Buffer<std::int32_t> data = none.cpu().allocate_shared<std::int32_t>(large).value();
        none.cpu().stream().launch(add_one, large, data).value();
        EXPECT_TRUE(threads_since(before, 0).empty());
    }
    std::optional<Buffer<std::int32_t>> outlives;
    {
        Runtime own = Runtime::open(with_threads(3)).value();
        EXPECT_TRUE(threads_since(before, 0).empty()) << "none before a kernel runs";
        outlives = own.cpu().allocate_shared<std::int32_t>(large).value();
        own.cpu().stream().launch(add_one, large, *outlives).value();
        EXPECT_TRUE(unless_fault(threads_since(before, 2).size() == 2));
    }
    outlives.reset();  // the last that holds the device
    EXPECT_TRUE(threads_since(before, 0).empty()) << "idle workers end at once";
}

// keeps L16
TEST(CpuThreads, AnAbsurdNumberIsRefused) {
    EXPECT_TRUE(worked(Runtime::open(with_threads(1024))));
    for (const std::uint32_t absurd : {1025u, 0xFFFFFFFFu}) {
        const Result<Runtime> refused = Runtime::open(with_threads(absurd));
        ASSERT_TRUE(refused_as(refused, Code::invalid_argument));
        EXPECT_NE(refused.error().text().find(std::to_string(absurd)), std::string::npos) << refused.error().text();
        EXPECT_NE(refused.error().remedy().find("cpu_threads"), std::string_view::npos);
    }
}

// keeps R3, L16
TEST(CpuThreads, AForkedChildIsRefusedAndTouchesNoWorker) {
    std::optional<Runtime> own = Runtime::open(with_threads(3)).value();
    Buffer<std::int32_t> data = own->cpu().allocate_shared<std::int32_t>(large).value();
    own->cpu().stream().launch(add_one, large, data).value();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const bool refused = own->cpu().stream().launch(add_one, large, data).code() == Code::forked;
        { Buffer<std::int32_t> dies = std::move(data); }
        own.reset();
        bool works = true;
#if !defined(__SANITIZE_THREAD__)  // which takes no new thread after a fork
        Runtime another = Runtime::open(with_threads(2)).value();
        Buffer<std::int32_t> its = another.cpu().allocate_shared<std::int32_t>(large).value();
        works = another.cpu().stream().launch(add_one, large, its).ok();
#endif
        _exit(refused && works ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(worked(own->cpu().stream().launch(add_one, large, data))) << "the parent's workers go on";
}

// Launches of several threads take turns with the workers. keeps L16
TEST(CpuThreads, LaunchesOfSeveralThreadsAllFinish) {
    Runtime own = Runtime::open(with_threads(3)).value();
    std::deque<Thread> launching;
    for (int thread = 0; thread < 3; ++thread) {
        launching.emplace_back([&own] {
            Stream stream = own.cpu().create_stream().value();
            Buffer<std::int32_t> data = own.cpu().allocate_shared<std::int32_t>(large).value();
            for (std::int32_t& value : data.write_on_host().value()) value = 0;
            for (int n = 0; n < 20; ++n) stream.launch(add_one, large, data).value();
            for (const std::int32_t value : data.read_on_host().value()) ASSERT_EQ(value, 20);
        });
    }
    for (Thread& thread : launching) thread.join();
}

}  // namespace
}  // namespace conformance
