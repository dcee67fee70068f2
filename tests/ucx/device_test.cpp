// SPDX-License-Identifier: Apache-2.0
// Frames received into buffers of the program, of each kind of memory, with sender and receiver in one thread.
#include "patience.hpp"

#include <isthmus/copy.hpp>
#include <isthmus/read_back.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/seal.hpp>
#include <isthmus/ucx.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using Bytes = Buffer<std::uint8_t>;
using Path = ucx::ReceivePath;

// A ring on the CPU device, a sender of its frames, and a receiver for buffers.
struct Pair {
    Pair(std::size_t bytes, SlowReaderPolicy policy, const ucx::ConnectionOptions& options = patient())
        : frame_bytes(bytes) {
        SharedRingOptions shape;
        shape.policy = policy;
        shape.reader_deadline = 20s;
        ring.emplace(SharedFrameRing<std::uint8_t>::create(runtime.cpu(), bytes, shape).value());
        ucx::Listener listener = ucx::Listener::create({"127.0.0.1", 0}, options).value();
        // Has its connection, and needs listener and options no more, when the receiver is made.
        std::future<ucx::FrameSender> other = std::async(std::launch::async, [&] {
            return ucx::FrameSender::create(
                       ucx::Connection::greet(accepted_by(listener).value(), options).value(),
                       SharedFrameReader<std::uint8_t>::open(runtime.cpu(), ring->admit().value()).value(), {})
                .value();
        });
        receiver.emplace(
            ucx::FrameReceiver::create(ucx::Connection::connect({"127.0.0.1", listener.port()}, options).value())
                .value());
        made = std::move(other);
        steps.step();
    }
    ~Pair() { receiver.reset(); }  // for which a sender that is being made waits
    // Behind the receiver's begin().
    void join() {
        sender.emplace(made.get());
        steps.step();
    }
    std::vector<Bytes> buffers(std::size_t count, MemoryKind kind) {
        std::vector<Bytes> all;
        for (std::size_t at = 0; at < count; ++at) {
            all.push_back(device.allocate<std::uint8_t>(frame_bytes, kind).value());
        }
        return all;
    }
    void publish(int value) {
        auto frame = ring->begin_frame(Wait::at_most(20s)).value();
        {
            auto view = frame.buffer().write_on_host().value();
            std::fill(view.begin(), view.end(), static_cast<std::uint8_t>(value));
        }
        frame.publish().value();
    }
    Result<ucx::ReceivedFrame> next(std::chrono::nanoseconds at_most = 20s) {
        const auto end = std::chrono::steady_clock::now() + at_most;
        for (;;) {
            if (sent) sent = sender->step(0ns);
            Result<ucx::ReceivedFrame> frame = receiver->next_frame(0ns);
            steps.step();
            if (frame || frame.code() != Code::timed_out || std::chrono::steady_clock::now() > end) return frame;
        }
    }
    // The value of each byte; -1: they differ.
    int value_of(const Bytes& buffer) {
        const std::vector<std::uint8_t> content = read_back(buffer).value();
        const bool same = std::all_of(content.begin(), content.end(), [&](auto each) { return each == content[0]; });
        return same ? content[0] : -1;
    }
    // Expects the next frame, which another thread sends, to have this value; false: none came.
    bool next_is(int value) {
        const Result<ucx::ReceivedFrame> came = receiver->next_frame(20s);
        steps.step();
        EXPECT_TRUE(came) << came.error().text();
        if (!came) return false;
        EXPECT_EQ(value_of(came->buffer()), value);
        return true;
    }
    Steps steps{};  // of the thread of the test
    std::size_t frame_bytes;
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    Stream stream = device.create_stream().value();
    std::optional<SharedFrameRing<std::uint8_t>> ring{};
    std::optional<ucx::FrameReceiver> receiver{};
    std::optional<ucx::FrameSender> sender{};
    std::future<ucx::FrameSender> made{};  // its thread ends before what it uses
    Result<void> sent{};
};

// A thread of the sender, until end().
class Sending {
public:
    explicit Sending(Pair& pair)
        : thread_([this, &pair] {
              while (!over_ && pair.sent) {
                  pair.sent = pair.sender->step(1ms);
                  steps_.step();
              }
          }) {}
    ~Sending() {
        if (thread_.joinable()) end();
    }
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;
    void end() {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_{false};
    Steps steps_{};
    std::thread thread_;
};

std::string machine() {
    const char* const named = std::getenv("ISTHMUS_SIM");
    return named == nullptr ? "" : named;
}
// Debian's UCX has no CUDA. tests/ucx/with_cuda.py plays these tests with one that has, and asks for it.
bool ucx_has_cuda() {
    return std::getenv("ISTHMUS_UCX_CUDA") != nullptr;
}
// None of these machines lets the CPU read memory of cuMemAlloc; only Thor's GPU uses the CPU's page tables.
Path path_of(MemoryKind kind, std::size_t bytes) {
    if (kind == MemoryKind::device) return ucx_has_cuda() && bytes > 16384 ? Path::ucx_cuda : Path::pinned_copy;
    return kind == MemoryKind::managed && machine() != "thor" ? Path::pinned_copy : Path::in_place;
}

// keeps N2
TEST(Buffers, OfEachKindGetEachFrameAndSayByWhichPath) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed, MemoryKind::host}) {
        for (const std::size_t bytes : {std::size_t{4096}, std::size_t{16384}, std::size_t{1} << 20}) {
            SCOPED_TRACE(std::string(name(kind)) + ", " + std::to_string(bytes));
            Pair pair(bytes, SlowReaderPolicy::wait);
            const bool gpu = !pair.device.is_cpu();
            ASSERT_EQ(gpu, !machine().empty());
            if (!gpu && kind != MemoryKind::host) continue;
            ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, kind)));
            pair.join();
            EXPECT_EQ(pair.receiver->path(), path_of(kind, bytes));
            std::optional<ucx::ReceivedFrame> held;
            for (int frame = 0; frame < 12; ++frame) {
                pair.publish(frame + 1);
                Result<ucx::ReceivedFrame> came = pair.next();
                ASSERT_TRUE(came) << came.error().text();
                EXPECT_EQ(came->number(), static_cast<std::uint64_t>(frame));
                EXPECT_EQ(came->missed(), 0u);
                EXPECT_EQ(came->buffer().kind(), kind);
                EXPECT_EQ(pair.value_of(came->buffer()), frame + 1);
                if (held) {
                    EXPECT_EQ(pair.value_of(held->buffer()), frame) << "a frame that is held stays";
                }
                held.emplace(std::move(came).value());
            }
            EXPECT_EQ(pair.receiver->counts().frames, 12u);
            pair.ring->close();
            const Result<ucx::ReceivedFrame> end = pair.next();
            EXPECT_EQ(end.code(), Code::ended);
            pair.receiver.reset();
            EXPECT_EQ(pair.value_of(held->buffer()), 12) << "a frame outlives the receiver";
        }
    }
}

// keeps N2: where attribute 89 is 0, the CPU may not touch managed memory while a kernel runs
TEST(Buffers, OfManagedMemoryGetFramesWhileTheDeviceWorks) {
    if (machine().empty()) GTEST_SKIP() << "the CPU device has no managed memory";
    const std::size_t bytes = 100000;
    Pair pair(bytes, SlowReaderPolicy::wait);
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, MemoryKind::managed)));
    pair.join();
    EXPECT_EQ(pair.receiver->path(), path_of(MemoryKind::managed, bytes));
    Bytes beside = pair.device.allocate<std::uint8_t>(bytes, MemoryKind::managed).value();
    Stream other = pair.device.create_stream().value();
    for (int frame = 0; frame < 8; ++frame) {
        ASSERT_TRUE(other.fill(beside, static_cast<std::uint8_t>(100 + frame)));
        pair.publish(frame + 1);
        Result<ucx::ReceivedFrame> came = pair.next();
        ASSERT_TRUE(came) << came.error().text();
        Bytes out = pair.device.allocate<std::uint8_t>(bytes, MemoryKind::device).value();
        ASSERT_TRUE(pair.stream.copy(out, came->buffer()));  // the device uses the frame
        EXPECT_EQ(pair.value_of(out), frame + 1);
        EXPECT_EQ(pair.value_of(beside), 100 + frame);
    }
}

// keeps N2
TEST(Buffers, OfAnotherGpuAreCopiedToWhereItHasAccessAndElseRefused) {
    const std::size_t bytes = 100000;
    Pair pair(bytes, SlowReaderPolicy::wait);
    if (pair.runtime.device_count() < 3) GTEST_SKIP() << "one GPU";  // the CPU is the last device
    Device& peer = *pair.runtime.device(1).value();
    const auto buffers = [&] {
        std::vector<Bytes> all = pair.buffers(1, MemoryKind::device);
        all.push_back(peer.allocate<std::uint8_t>(bytes, MemoryKind::device).value());
        return all;
    };
    {
        const std::vector<Bytes> both = buffers();
        EXPECT_TRUE(pair.device.owns(both[0]));
        EXPECT_FALSE(pair.device.owns(both[1]));
        EXPECT_TRUE(peer.owns(both[1]));
        EXPECT_FALSE(peer.owns(Bytes()));
    }
    EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, buffers()).code(), Code::invalid_argument);
    ASSERT_TRUE(pair.device.enable_peer_access(peer));
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, buffers()));
    EXPECT_EQ(pair.receiver->path(), Path::pinned_copy) << "also with a UCX that has CUDA";
    pair.join();
    int on_peer = 0;
    for (int frame = 0; frame < 6; ++frame) {
        pair.publish(frame + 1);
        Result<ucx::ReceivedFrame> came = pair.next();
        ASSERT_TRUE(came) << came.error().text();
        EXPECT_EQ(pair.value_of(came->buffer()), frame + 1);
        on_peer += peer.owns(came->buffer()) ? 1 : 0;
    }
    EXPECT_GT(on_peer, 0);
}

std::ptrdiff_t open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// keeps N2: UCX registers memory for a worker.
TEST(Buffers, ThatCouldNotBeTakenAreInNoWorkerOfUcx) {
    if (machine().empty() || ucx_has_cuda()) GTEST_SKIP() << "no frame goes through pinned memory";
    {
        Pair first(100000, SlowReaderPolicy::wait);  // UCX opens what it keeps for the process
        ASSERT_TRUE(first.receiver->begin(first.device, first.stream, first.buffers(3, MemoryKind::device)));
        first.join();
    }
    Pair pair(100000, SlowReaderPolicy::wait);
    std::vector<Bytes> buffers = pair.buffers(3, MemoryKind::device);
    const std::ptrdiff_t before = open_files();
    {
        const Result<Seal> seal = pair.runtime.seal();  // refuses the pinned memory
        if (!seal) GTEST_SKIP() << seal.error().text();
        const Result<void> refused = pair.receiver->begin(pair.device, pair.stream, std::move(buffers));
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message().find("making a buffer"), std::string::npos) << refused.error().text();
    }
    EXPECT_EQ(open_files(), before);
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, MemoryKind::device)));
    pair.join();
    pair.publish(7);
    EXPECT_EQ(pair.value_of(pair.next().value().buffer()), 7);
}

// keeps N2
TEST(Buffers, ThatAreAllHeldMakeTheSenderWaitAndNoFrameIsLost) {
    Pair pair(100000, SlowReaderPolicy::wait);
    const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)));
    pair.join();
    for (int frame = 0; frame < 4; ++frame) pair.publish(frame + 1);
    std::vector<ucx::ReceivedFrame> held;
    for (int frame = 0; frame < 2; ++frame) held.push_back(pair.next().value());
    EXPECT_EQ(pair.next(100ms).code(), Code::timed_out);
    // Work of the device on a frame that is given back comes before the next frame in its buffer.
    Bytes kept = pair.device.allocate<std::uint8_t>(100000, kind).value();
    ASSERT_TRUE(pair.stream.copy(kept, held[0].buffer()));
    held.erase(held.begin());
    held.push_back(pair.next().value());
    EXPECT_EQ(pair.value_of(kept), 1);
    EXPECT_EQ(pair.value_of(held[0].buffer()), 2);
    EXPECT_EQ(pair.value_of(held[1].buffer()), 3);
    held.clear();
    EXPECT_EQ(pair.value_of(pair.next().value().buffer()), 4);
}

// keeps N1
TEST(Buffers, AFrameThatIsHereIsGivenOutWhileOthersHaveNoRoom) {
    Pair pair(100000, SlowReaderPolicy::wait);
    const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)));
    pair.join();
    std::atomic<bool> over{false};
    std::thread sends([&] {
        while (!over && pair.sender->step(1ms)) {
        }
    });
    for (int frame = 0; frame < 3; ++frame) pair.publish(frame + 1);
    const auto begin = std::chrono::steady_clock::now();
    for (int frame = 0; frame < 3; ++frame) {
        if (frame == 1) std::this_thread::sleep_for(50ms);  // the others arrive
        Result<ucx::ReceivedFrame> came = pair.receiver->next_frame(60s);
        ASSERT_TRUE(came) << came.error().text();
        EXPECT_EQ(pair.value_of(came->buffer()), frame + 1);
        for (int round = 0; round < 200; ++round) EXPECT_TRUE(pair.receiver->step(0ns));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    over = true;
    sends.join();
}

// keeps N3
TEST(Buffers, GetNoFrameThatWasOverwrittenWhileItWasSent) {
    Pair pair(std::size_t{1} << 20, SlowReaderPolicy::overwrite);
    const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, kind)));
    pair.join();
    pair.publish(1);
    for (int round = 0; round < 50; ++round) EXPECT_TRUE(pair.sender->step(0ns));
    for (int value = 2; value <= 9; ++value) pair.publish(value);  // over the slot, twice
    Result<ucx::ReceivedFrame> frame = pair.next();
    ASSERT_TRUE(frame);
    EXPECT_GT(pair.value_of(frame->buffer()), 1);
    EXPECT_EQ(pair.receiver->counts().discarded, 1u);
    EXPECT_EQ(frame->number(), 0u);
    EXPECT_GE(frame->missed(), 1u);
}

// keeps N3
TEST(Buffers, ThatAreHeldLongerThanSilenceKeepTheConnection) {
    ucx::ConnectionOptions options = patient();
    options.silence = 800ms;
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{100000}}) {
        SCOPED_TRACE(bytes);
        play_undisturbed(options.silence, [&] {
            Pair pair(bytes, SlowReaderPolicy::wait, options);
            const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
            ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)));
            pair.join();
            for (int frame = 0; frame < 4; ++frame) {
                pair.publish(frame + 1);
                EXPECT_TRUE(pair.sender->step(0ns));
            }
            std::vector<ucx::ReceivedFrame> held;
            for (int frame = 0; frame < 2; ++frame) held.push_back(pair.next().value());
            EXPECT_EQ(pair.next(2400ms).code(), Code::timed_out);
            EXPECT_TRUE(pair.sent) << pair.sent.error().text();
            EXPECT_EQ(pair.value_of(held[0].buffer()), 1);
            held.clear();
            for (int frame = 2; frame < 4; ++frame) {
                Result<ucx::ReceivedFrame> came = pair.next();
                ASSERT_TRUE(came) << came.error().text();
                EXPECT_EQ(pair.value_of(came->buffer()), frame + 1);
                EXPECT_EQ(came->missed(), 0u);
            }
        });
    }
}

// keeps N3
TEST(Buffers, OfASlowProgramKeepTheConnection) {
    ucx::ConnectionOptions options = patient();
    options.silence = 900ms;
    play_undisturbed(options.silence, [&] {
        Pair pair(4096, SlowReaderPolicy::wait, options);
        const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
        ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, kind)));
        pair.join();
        pair.publish(100);
        EXPECT_EQ(pair.value_of(pair.next().value().buffer()), 100);
        Sending sending(pair);
        // All leave at once. Each call of next_frame() finds one, so that none of them waits.
        for (int frame = 0; frame < 7; ++frame) pair.publish(frame + 1);
        for (int frame = 0; frame < 7; ++frame) {
            std::this_thread::sleep_for(150ms);
            if (!pair.next_is(frame + 1)) break;
        }
        sending.end();
        EXPECT_TRUE(pair.sent) << pair.sent.error().text();
    });
}

// keeps N3: UCX with CUDA copies a frame to the device in fragments, and waits for each of them
TEST(Buffers, OfASlowDeviceKeepTheConnection) {
    ucx::ConnectionOptions options = patient();
    options.silence = 1s;
    play_undisturbed(options.silence, [&] {
        Pair pair(std::size_t{8} << 20, SlowReaderPolicy::wait, options);
        const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
        ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(3, kind)));
        pair.join();
        Sending sending(pair);
        for (int frame = 0; frame < 3; ++frame) pair.publish(frame + 1);
        std::this_thread::sleep_for(100ms);  // as much as the connection holds is there at once
        for (int frame = 0; frame < 3; ++frame) {
            if (!pair.next_is(frame + 1)) break;
        }
        sending.end();
        EXPECT_TRUE(pair.sent) << pair.sent.error().text();
    });
}

TEST(Buffers, AreWaitedForAsLongAsTimeGoes) {
    Pair pair(4096, SlowReaderPolicy::wait);
    const MemoryKind kind = !pair.device.is_cpu() ? MemoryKind::device : MemoryKind::host;
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)));
    pair.join();
    std::atomic<bool> over{false};
    std::thread sends([&] {
        std::this_thread::sleep_for(100ms);
        pair.publish(7);
        while (!over && pair.sent) pair.sent = pair.sender->step(1ms);
    });
    Result<ucx::ReceivedFrame> came = pair.receiver->next_frame(std::chrono::nanoseconds::max());
    over = true;
    sends.join();
    ASSERT_TRUE(came) << came.error().text();
    EXPECT_EQ(pair.value_of(came->buffer()), 7);
    EXPECT_EQ(pair.receiver->next_frame(std::chrono::nanoseconds::min()).code(), Code::timed_out);
}

// A copy that a capture records would not be made when the frame is shown.
TEST(Buffers, OfAStreamThatIsCapturedGetNoFrame) {
    if (machine().empty()) GTEST_SKIP() << "the CPU device needs no copy";
    Pair pair(4096, SlowReaderPolicy::wait);
    ASSERT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, MemoryKind::device)));
    pair.join();
    auto capture = pair.stream.begin_capture();
    ASSERT_TRUE(capture) << capture.error().text();
    pair.publish(1);
    EXPECT_EQ(pair.next().code(), Code::capture_error);
    EXPECT_EQ(pair.receiver->step(0ns).code(), Code::capture_error);  // for good
}

TEST(Buffers, OfOtherSizesOrKindsAreRefused) {
    Pair pair(4096, SlowReaderPolicy::overwrite);
    const bool gpu = !pair.device.is_cpu();
    const MemoryKind kind = gpu ? MemoryKind::device : MemoryKind::host;
    EXPECT_EQ(pair.receiver->next_frame(0ns).code(), Code::invalid_argument);
    EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, {}).code(), Code::invalid_argument);
    std::vector<Bytes> wrong = pair.buffers(1, kind);
    wrong.push_back(pair.device.allocate<std::uint8_t>(4097, kind).value());
    EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, std::move(wrong)).code(), Code::invalid_argument);
    if (gpu) {
        std::vector<Bytes> mixed = pair.buffers(1, kind);
        mixed.push_back(pair.device.allocate<std::uint8_t>(4096, MemoryKind::pinned).value());
        EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, std::move(mixed)).code(), Code::invalid_argument);
    }
    if (gpu) {
        Device& cpu = pair.runtime.cpu();
        Stream other = cpu.create_stream().value();
        EXPECT_EQ(pair.receiver->begin(cpu, other, pair.buffers(2, kind)).code(), Code::invalid_argument)
            << "memory of another device";
    }
    std::vector<Bytes> twice = pair.buffers(2, kind);
    twice.emplace_back(twice.front().state());
    EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, std::move(twice)).code(), Code::invalid_argument);
    EXPECT_EQ(pair.receiver->path(), Path::in_place);
    EXPECT_EQ(pair.receiver->next_frame(0ns).code(), Code::invalid_argument) << "none of them has begun";
    EXPECT_TRUE(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)));
    EXPECT_EQ(pair.receiver->begin(pair.device, pair.stream, pair.buffers(2, kind)).code(),
              Code::invalid_argument);  // again
    pair.join();
    pair.publish(3);
    EXPECT_EQ(pair.value_of(pair.next().value().buffer()), 3);
}

}  // namespace
}  // namespace isthmus
