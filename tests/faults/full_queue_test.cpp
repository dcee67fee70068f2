// SPDX-License-Identifier: Apache-2.0
// A thread blocks in the driver because a stream's queue is full; other threads' calls with a deadline, queries and
// releases still return. Real queues fill at about a thousand launches, and no count is promised, so the simulator
// holds the call.
#include "scenario.hpp"
#include "simulator_control.hpp"

#include <isthmus/completion_queue.hpp>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 64;
constexpr std::chrono::milliseconds timeout(100);  // of the runtime
const Wait shortly = Wait::at_most(std::chrono::milliseconds(5));
const Wait long_enough = Wait::at_most(std::chrono::seconds(60));

class FullQueue : public testing::Test {
protected:
    explicit FullQueue(std::optional<std::uint64_t> cache_bytes = {}) : cache_bytes_(cache_bytes) {}
    void SetUp() override {
        RuntimeOptions options;
        options.cache_bytes = cache_bytes_;
        options.wait_timeout = timeout;
        options.log = [this](Severity, std::string_view line) {
            const std::lock_guard lock(log_mutex_);
            log_ += std::string(line) + "\n";
        };
        runtime_.emplace(Runtime::open(options).value());
        if (device().is_cpu() || plan() == nullptr) GTEST_SKIP() << "only the simulator holds a call up";
    }
    void TearDown() override {
        if (plan() != nullptr) release();
        runtime_.reset();
    }
    static isthmus_sim_fault_plan_fn plan() { return control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan"); }
    // From now on this driver function does not return, on any thread.
    static void fill_queue(const std::string& function) {
        ASSERT_EQ(plan()(("call=" + function + ":stands").c_str()), 0);
    }
    static void release() { ASSERT_EQ(plan()(nullptr), 0); }
    static void until_somebody_stands() {
        const auto live = control<isthmus_sim_live_fn>("isthmus_sim_live");
        while (live("standing_calls") == 0) std::this_thread::yield();
    }
    Device& device() { return runtime_->default_device(); }
    std::string logged() {
        const std::lock_guard lock(log_mutex_);
        return log_;
    }
    Buffer<std::int32_t> shared(MemoryKind kind = MemoryKind::pinned) {
        SharedUse use;
        use.kind = kind;
        auto buffer = device().allocate_shared<std::int32_t>(count, use).value();
        for (std::int32_t& one : buffer.write_on_host().value()) one = 1;
        return buffer;
    }

private:
    const std::optional<std::uint64_t> cache_bytes_;
    std::mutex log_mutex_;
    std::string log_;
    std::optional<Runtime> runtime_;
};

class FullQueueWithoutCache : public FullQueue {
protected:
    FullQueueWithoutCache() : FullQueue(0) {}
};

template <class T>
void expect_standing(const Result<T>& answer, std::string_view who) {
    ASSERT_EQ(answer.code(), Code::timed_out);
    EXPECT_NE(answer.error().message().find("is blocked in the driver"), std::string_view::npos)
        << answer.error().text();
    EXPECT_NE(answer.error().message().find(who), std::string_view::npos) << answer.error().text();
}

TEST_F(FullQueue, WaitsAndQuestionsComeBackWhileALaunchStandsInTheDriver) {  // keeps R5, S9
    Stream stream = device().create_stream().value();
    Buffer<std::int32_t> before = shared(), held = shared();
    const std::uint64_t first = stream.launch(add_one, count, before).value().position;
    const std::uint64_t second = stream.launch(add_one, count, held).value().position;  // a fence after the first
    CompletionQueue completions;
    completions.add(stream, first, 7);
    fill_queue("cuLaunchKernel");
    Thread stands([&] { (void)stream.launch(add_one, count, held).value(); });
    until_somebody_stands();

    EXPECT_EQ(before.read_on_host(long_enough).value()[0], 2) << "its fence is there";
    EXPECT_GE(stream.poll().value(), first);
    EXPECT_LE(stream.poll().value(), second);
    std::vector<std::uint64_t> finished;
    EXPECT_EQ(completions.collect(finished).value(), 1u);
    expect_standing(held.read_on_host(shortly), "add_one");
    EXPECT_EQ(held.read_on_host(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(held.release(shortly).code(), Code::timed_out) << "still ours";
    expect_standing(stream.synchronize(shortly), "add_one");
    EXPECT_EQ(device().synchronize(shortly).code(), Code::timed_out);
    EXPECT_FALSE(stream.finished().value());
    expect_standing(stream.mark(), "add_one");
    expect_standing(stream.priority(), "add_one");
    expect_standing(stream.native_handle(), "add_one");
    EXPECT_EQ(stream.explain(add_one, count, before).refusal->code(), Code::timed_out);

    release();
    stands.join();
    EXPECT_EQ(held.read_on_host(long_enough).value()[0], 3);
    EXPECT_TRUE(stream.mark().ok());
}

TEST_F(FullQueueWithoutCache, ABufferEndsWhileAnotherThreadStandsWithItsStream) {  // keeps R5
    Stream stream = device().create_stream().value();
    Buffer<std::int32_t> other = shared();
    Buffer<std::int32_t> fenced = shared();
    std::optional<Buffer<std::int32_t>> unfenced(shared());
    (void)stream.launch(add_one, count, fenced).value();
    (void)stream.launch(add_one, count, *unfenced).value();
    fill_queue("cuEventRecord");
    // The launch stops using `unfenced`, and blocks in the fence that the stream owes for it.
    Thread stands([&] { (void)stream.launch(add_one, count, other).value(); });
    until_somebody_stands();

    EXPECT_TRUE(fenced.release(long_enough).ok()) << "known to have ended";
    unfenced.reset();
    EXPECT_NE(logged().find("memory was given up"), std::string::npos) << logged();
    EXPECT_NE(logged().find("is blocked in the driver"), std::string::npos) << logged();

    release();
    stands.join();
    EXPECT_EQ(other.read_on_host(long_enough).value()[0], 2);
}

TEST_F(FullQueue, ABufferThatIsDroppedMeanwhileEndsWhenItsWorkHasEnded) {  // keeps R5, M3
    Stream stream = device().create_stream().value();
    Buffer<std::int32_t> other = shared();
    std::optional<Buffer<std::int32_t>> unfenced(shared());
    (void)stream.launch(add_one, count, *unfenced).value();
    fill_queue("cuEventRecord");
    Thread stands([&] { (void)stream.launch(add_one, count, other).value(); });
    until_somebody_stands();
    unfenced.reset();
    EXPECT_EQ(logged(), "") << "nothing was waited for";
    EXPECT_EQ(device().cache_usage().kept_pieces, 0u);
    release();
    stands.join();
    device().synchronize(long_enough).value();
    EXPECT_EQ(device().cache_usage().kept_pieces, 1u);
    EXPECT_EQ(other.read_on_host(long_enough).value()[0], 2);
}

TEST_F(FullQueue, PoolMemoryIsGivenUpWhereItsStreamTakesNoRelease) {  // keeps R5
    if (!device().capabilities().has(Feature::pools)) GTEST_SKIP() << "no pools";
    Stream stream = device().create_stream().value();
    Buffer<std::int32_t> other = shared();
    std::optional<Buffer<std::int32_t>> pooled(device().allocate<std::int32_t>(count, MemoryKind::pool).value());
    stream.fill(*pooled, 1).value();
    fill_queue("cuLaunchKernel");
    Thread stands([&] { (void)stream.launch(add_one, count, other).value(); });
    until_somebody_stands();
    EXPECT_EQ(pooled->release(shortly).code(), Code::timed_out) << "still ours";
    pooled.reset();
    EXPECT_NE(logged().find("memory was given up"), std::string::npos) << logged();
    release();
    stands.join();
}

TEST_F(FullQueue, AnEventThatIsBeingRecordedHasNotEndedAndItsWaitsHaveDeadlines) {  // keeps R5, S9
    Stream stream = device().create_stream().value();
    Event event = stream.record().value();
    event.synchronize(long_enough).value();
    fill_queue("cuEventRecord");
    Thread stands([&] { stream.record(event).value(); });
    until_somebody_stands();
    Event again = event;  // as another thread would hold it
    const Result<bool> finished = again.finished();
    EXPECT_TRUE(finished.ok());
    const Result<void> waited = again.synchronize(shortly);
    EXPECT_TRUE(waited.ok() || waited.code() == Code::timed_out) << "the last record, or the one that stands";
    EXPECT_EQ(stream.synchronize(shortly).code(), Code::timed_out);
    release();
    stands.join();
    event.synchronize(long_enough).value();
    EXPECT_TRUE(event.finished().value());
}

TEST_F(FullQueue, AViewOfAStagedBufferComesBackWhileItsUploadStands) {  // keeps R5, G8
    Buffer<std::int32_t> staged =
        device().allocate_shared<std::int32_t>(count, {.host = Use::reads_once, .device = Use::writes_often}).value();
    for (std::int32_t& one : staged.write_on_host().value()) one = 1;
    if (staged.path() != LaunchPath::stage) GTEST_SKIP() << "nothing is staged on this machine";
    Stream stream = device().create_stream().value();
    fill_queue("cuMemcpyHtoDAsync");
    Thread stands([&] { (void)stream.launch(add_one, count, staged).value(); });
    until_somebody_stands();
    expect_standing(staged.read_on_host(shortly), "the copy to the device's side");
    EXPECT_EQ(staged.write_on_host(Wait::never()).code(), Code::not_ready);
    release();
    stands.join();
    EXPECT_EQ(staged.read_on_host(long_enough).value()[0], 2);
}

TEST_F(FullQueue, AViewOfAttachedMemoryComesBackWhileItsAttachmentStands) {  // keeps R5, G8
    if (!device().capabilities().has(Feature::managed)) GTEST_SKIP() << "no managed memory";
    Buffer<std::int32_t> managed = shared(MemoryKind::managed);
    if (managed.path() != LaunchPath::attach) GTEST_SKIP() << "nothing is attached on this machine";
    Stream stream = device().create_stream().value();
    fill_queue("cuStreamAttachMemAsync");
    Thread stands([&] { (void)stream.launch(add_one, count, managed).value(); });
    until_somebody_stands();
    expect_standing(managed.read_on_host(shortly), "the attachment of managed memory");
    release();
    stands.join();
    EXPECT_EQ(managed.read_on_host(long_enough).value()[0], 2);
}

}  // namespace
}  // namespace conformance
