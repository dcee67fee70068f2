// SPDX-License-Identifier: Apache-2.0
// A sender and a receiver of frames over UCX in one thread, so that each step happens when the test says so.
#include "patience.hpp"

#include <isthmus/runtime.hpp>
#include <isthmus/ucx.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using Ring = SharedFrameRing<std::uint8_t>;
using Reader = SharedFrameReader<std::uint8_t>;

std::pair<ucx::Connection, ucx::Connection> connected(const ucx::ConnectionOptions& options) {
    ucx::Listener listener = ucx::Listener::create({"127.0.0.1", 0}, options).value();
    std::future<ucx::Connection> sends = std::async(
        std::launch::async, [&] { return ucx::Connection::greet(accepted_by(listener).value(), options).value(); });
    ucx::Connection receives = ucx::Connection::connect({"127.0.0.1", listener.port()}, options).value();
    return {sends.get(), std::move(receives)};
}

// A ring here, a sender of its frames, a receiver, and its ring.
struct Pair {
    Pair(std::size_t bytes, SlowReaderPolicy policy, const ucx::ConnectionOptions& options = patient()) {
        SharedRingOptions shape;
        shape.policy = policy;
        shape.reader_deadline = 20s;
        ring.emplace(Ring::create(device, bytes, shape).value());
        auto [sends, receives] = connected(options);
        std::future<ucx::FrameSender> made = std::async(std::launch::async, [&, taken = std::move(sends)]() mutable {
            return ucx::FrameSender::create(std::move(taken), Reader::open(device, ring->admit().value()).value(),
                                            {std::byte{7}})
                .value();
        });
        receiver.emplace(ucx::FrameReceiver::create(std::move(receives)).value());
        copy.emplace(Ring::create(device, receiver->offer().frame_bytes, shape).value());
        reader.emplace(Reader::open(device, copy->admit().value()).value());
        EXPECT_TRUE(receiver->begin(*copy));
        sender.emplace(made.get());
        steps.step();
    }
    void publish(int value) {
        auto frame = ring->begin_frame().value();
        {
            auto view = frame.buffer().write_on_host().value();
            std::fill(view.begin(), view.end(), static_cast<std::uint8_t>(value));
        }
        frame.publish().value();
    }
    // Steps both ends until `done`.
    template <class Done>
    void until(Done done) {
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (!done() && std::chrono::steady_clock::now() < end) {
            sent = sender->step(0ns);
            received = receiver->step(0ns);
            steps.step();
        }
        EXPECT_TRUE(done());
    }
    // The value of each byte of the next frame; -1: they differ.
    int next() {
        auto frame = reader->next_frame(Wait::at_most(20s)).value();
        auto view = std::make_optional(frame.buffer().read_on_host().value());
        const bool same =
            std::all_of(view->begin(), view->end(), [&](std::uint8_t each) { return each == (*view)[0]; });
        const int value = same ? (*view)[0] : -1;
        view.reset();
        EXPECT_TRUE(frame.finish());
        return value;
    }
    Steps steps{};  // of the thread of the test
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    Device& device = runtime.default_device();
    std::optional<Ring> ring, copy;
    std::optional<ucx::FrameReceiver> receiver;
    std::optional<Reader> reader;
    std::optional<ucx::FrameSender> sender;
    Result<void> sent{}, received{};
};

TEST(Transport, GivesEachFrameOfAWaitingRingInOrder) {  // keeps N1
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{16384}, std::size_t{16385}, std::size_t{3} << 20}) {
        Pair pair(bytes, SlowReaderPolicy::wait);
        EXPECT_EQ(pair.receiver->offer().note, std::vector<std::byte>{std::byte{7}});
        EXPECT_EQ(pair.receiver->offer().policy, SlowReaderPolicy::wait);
        for (int frame = 0; frame < 20; ++frame) {
            pair.publish(frame);
            pair.until([&] { return pair.receiver->counts().frames == static_cast<std::uint64_t>(frame) + 1; });
            EXPECT_EQ(pair.next(), frame) << bytes;
        }
        pair.ring->close();
        pair.until([&] { return !pair.sent && !pair.received; });
        EXPECT_EQ(pair.sent.code(), Code::ended);
        EXPECT_EQ(pair.received.code(), Code::ended);
        EXPECT_FALSE(pair.receiver->producer_is_gone());
        EXPECT_EQ(pair.sender->counts().frames, 20u);
    }
}

TEST(Transport, DiscardsAFrameThatWasOverwrittenWhileItWasSent) {  // keeps N1, N2, N3
    Pair pair(std::size_t{1} << 20, SlowReaderPolicy::overwrite);
    pair.publish(1);
    // The sender announces the frame, which stays in its slot: nothing of it is copied.
    for (int round = 0; round < 50; ++round) EXPECT_TRUE(pair.sender->step(0ns));
    for (int value = 2; value <= 9; ++value) pair.publish(value);  // over the slot, twice
    pair.until([&] { return pair.receiver->counts().frames >= 1; });
    EXPECT_EQ(pair.receiver->counts().discarded, 1u);
    EXPECT_EQ(pair.sender->counts().overtaken, 1u);
    EXPECT_GT(pair.next(), 1);
    EXPECT_GT(pair.receiver->counts().missed, 0u);
}

TEST(Transport, SaysThatTheProducerIsGone) {  // keeps N3
    // A reader whose producer closed no ring cannot be made in this process: the end of the sender stands for it.
    Pair pair(4096, SlowReaderPolicy::overwrite);
    pair.publish(5);
    pair.until([&] { return pair.receiver->counts().frames == 1; });
    pair.sender.reset();
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (pair.received && std::chrono::steady_clock::now() < end) pair.received = pair.receiver->step(10ms);
    EXPECT_EQ(pair.received.code(), Code::peer_lost);
    EXPECT_FALSE(pair.receiver->producer_is_gone());  // so another connection may find it
    EXPECT_EQ(pair.next(), 5);                        // what was whole stays
}

TEST(Transport, TheSenderNoticesThatTheReceiverIsGone) {  // keeps N3
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 20}) {
        Pair pair(bytes, SlowReaderPolicy::overwrite);
        pair.publish(5);
        pair.until([&] { return pair.receiver->counts().frames == 1; });
        pair.receiver.reset();
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (pair.sent && std::chrono::steady_clock::now() < end) {
            pair.publish(6);
            pair.sent = pair.sender->step(1ms);
        }
        EXPECT_EQ(pair.sent.code(), Code::peer_lost);
        EXPECT_EQ(pair.sender->step(0ns).code(), Code::peer_lost);  // for good
    }
}

TEST(Transport, SilenceEndsAnEndThatDoesNotStep) {  // keeps N3
    ucx::ConnectionOptions options = patient();
    options.silence = 800ms;
    play_undisturbed(options.silence, [&] {
        Pair pair(4096, SlowReaderPolicy::overwrite, options);
        const auto begin = std::chrono::steady_clock::now();
        // Signs of life keep an idle connection.
        while (std::chrono::steady_clock::now() - begin < 900ms) {
            ASSERT_TRUE(pair.sender->step(10ms));
            ASSERT_TRUE(pair.receiver->step(10ms));
            pair.steps.step();
        }
        while (pair.sent && std::chrono::steady_clock::now() - begin < 20s) pair.sent = pair.sender->step(10ms);
        EXPECT_EQ(pair.sent.code(), Code::peer_lost);
    });
}

// A frame that comes while the sender waits for it, after more than `silence` without one.
TEST(Transport, AFrameBehindALongPauseArrives) {  // keeps N3
    ucx::ConnectionOptions options = patient();
    options.silence = 800ms;
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 20}) {
        play_undisturbed(options.silence, [&] {
            Pair pair(bytes, SlowReaderPolicy::wait, options);
            std::atomic<bool> over{false};
            Steps of_receiver;
            std::future<void> receives = std::async(std::launch::async, [&] {
                while (!over && pair.received) {
                    pair.received = pair.receiver->step(10ms);
                    of_receiver.step();
                }
            });
            std::future<void> publishes = std::async(std::launch::async, [&] {
                pair.publish(1);
                std::this_thread::sleep_for(1s);
                pair.publish(2);
            });
            const auto end = std::chrono::steady_clock::now() + 20s;
            while (pair.sent && pair.sender->counts().frames < 2 && std::chrono::steady_clock::now() < end) {
                pair.sent = pair.sender->step(100ms);
                pair.steps.step();
            }
            EXPECT_TRUE(pair.sent) << bytes << ": " << pair.sent.error().text();
            publishes.get();
            for (int value = 1; pair.sent && value <= 2; ++value) EXPECT_EQ(pair.next(), value) << bytes;
            over = true;
            receives.get();
            EXPECT_TRUE(pair.received) << bytes;
        });
    }
}

TEST(Transport, StepsOfNegativeAndOfTheLongestDurationsEnd) {
    Pair pair(4096, SlowReaderPolicy::wait);
    EXPECT_TRUE(pair.sender->step(std::chrono::nanoseconds::min()));
    EXPECT_TRUE(pair.receiver->step(std::chrono::nanoseconds::min()));
    EXPECT_TRUE(pair.sender->step(std::chrono::nanoseconds::max()));  // sleeps for a moment at a time
    EXPECT_TRUE(pair.receiver->step(std::chrono::nanoseconds::max()));
    ucx::ConnectionOptions endless;
    endless.step_timeout = endless.setup_timeout = endless.silence = std::chrono::nanoseconds::max();
    Pair other(4096, SlowReaderPolicy::wait, endless);
    other.publish(1);
    other.until([&] { return other.receiver->counts().frames == 1; });
    EXPECT_EQ(other.next(), 1);
}

TEST(Transport, RefusesARingOfOtherFramesAndALongNote) {
    Pair pair(4096, SlowReaderPolicy::overwrite);
    EXPECT_EQ(pair.receiver->begin(*pair.copy).code(), Code::invalid_argument);  // again
    auto [sends, receives] = connected(patient());
    Result<ucx::FrameSender> sender =
        ucx::FrameSender::create(std::move(sends), Reader::open(pair.device, pair.ring->admit().value()).value(),
                                 std::vector<std::byte>(ucx::Offer::max_note_bytes + 1));
    EXPECT_EQ(sender.code(), Code::invalid_argument);
    EXPECT_EQ(ucx::FrameReceiver::create(std::move(receives)).code(), Code::peer_lost);
}

}  // namespace
}  // namespace isthmus
