// SPDX-License-Identifier: Apache-2.0
// A sender made by hand sends active messages without the receiver's token, as anybody who reaches UCX's port can, or
// leaves some out.
#include "greeting.hpp"
#include "patience.hpp"
#include "worker.hpp"

#include <isthmus/runtime.hpp>
#include <isthmus/ucx.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using namespace ucx_wire;
using Clock = std::chrono::steady_clock;
using Ring = SharedFrameRing<std::uint8_t>;
using Reader = SharedFrameReader<std::uint8_t>;

template <class Bytes>
void send_all(int line, const Bytes& bytes) {
    ASSERT_EQ(::send(line, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}
template <class Bytes>
void receive_all(int line, Bytes& bytes) {
    ASSERT_EQ(::recv(line, bytes.data(), bytes.size(), MSG_WAITALL), static_cast<ssize_t>(bytes.size()));
}

class HandmadeSender {
public:
    explicit HandmadeSender(std::size_t bytes) : data_(bytes) {
        worker_->on(Am::receipt, &count, &receipts);  // UCX 1.13 crashes where there is no handler at all
    }
    std::uint16_t port() const { return listener_.port(); }
    // Greets, offers frames, and connects to the receiver's worker.
    void meet() {
        line_ = accepted_by(listener_).value();
        ASSERT_EQ(::fcntl(line_.get(), F_SETFL, 0), 0);
        HelloBytes hello{};
        receive_all(line_.get(), hello);
        const HelloBytes welcome = make_hello(false, Nonce{});
        send_all(line_.get(), welcome);
        send_all(line_.get(), make_proof(Secret{}, Side::sender, hello, welcome));
        Proof proof{};
        receive_all(line_.get(), proof);
        std::vector<std::byte> offer;
        for (const std::uint64_t number : {data_.size(), std::size_t{4}, std::size_t{0}}) put(offer, number);
        put(offer, drawn_token());
        put(offer, 0);  // no note
        const std::vector<std::byte> own = worker_->address().value();
        offer.insert(offer.end(), own.begin(), own.end());
        Sealer sealer(session_key(Secret{}, Side::sender, hello, welcome));
        send_all(line_.get(), sealer.seal(Kind::offer, offer));
        Opener opener(session_key(Secret{}, Side::receiver, hello, welcome));
        std::optional<Message> answer;
        while (!answer) {
            std::array<std::byte, 1> byte{};
            receive_all(line_.get(), byte);
            std::span<const std::byte> rest(byte);
            answer = opener.take(rest).value();
            if (answer && answer->kind == Kind::alive) answer.reset();
        }
        std::span<const std::byte> body(answer->body);
        token = take_token(body).value();
        ASSERT_TRUE(worker_->connect(body));
    }
    // Sends a frame, and waits until it has left. Not `whole`: a verdict is to follow.
    void send(const Token& with, std::uint8_t value, bool whole = true) {
        const bool eager = data_.size() <= most_eager_bytes;
        std::fill(data_.begin(), data_.end(), value);
        const FrameHeader header{with, 0, 0, whole ? 1u : 0u};
        void* const request = worker_->send(Am::frame, &header, sizeof header, data_, eager).value();
        bool left = false;
        for (const auto end = Clock::now() + 10s; !left && Clock::now() < end;) {
            worker_->progress();
            left = worker_->complete(request).value();
        }
        EXPECT_TRUE(left);
    }
    void judge(const Token& with) {
        ASSERT_TRUE(worker_->tell(Am::verdict, VerdictHeader{with, 0, 0}));
        for (int round = 0; round < 100; ++round) worker_->progress();
    }
    void progress() { worker_->progress(); }
    Token token{};
    int receipts = 0;  // that no frame is done yet

private:
    static ucs_status_t count(void* receipts, const void* bytes, std::size_t size, void*, std::size_t,
                              const ucp_am_recv_param_t*) {
        ReceiptHeader header{};
        if (size == sizeof header) std::memcpy(&header, bytes, size);
        *static_cast<int*>(receipts) += header.sequence == no_frame ? 1 : 0;
        return UCS_OK;
    }
    ucx::Listener listener_ = ucx::Listener::create({"127.0.0.1", 0}, {}).value();
    FileDescriptor line_{};
    std::unique_ptr<Worker> worker_ = Worker::create(true).value();
    std::vector<std::uint8_t> data_;
};

TEST(Forged, MessagesWithoutTheTokenAreDropped) {  // keeps N3
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    Device& device = runtime.default_device();
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 20}) {
        HandmadeSender sender(bytes);
        Result<void> stepped{};
        std::uint64_t frames = 0;
        int value = -1;
        std::atomic<bool> over{false}, looked{false};
        std::thread receives([&] {
            auto receiver =
                ucx::FrameReceiver::create(ucx::Connection::connect({"127.0.0.1", sender.port()}, patient()).value())
                    .value();
            Ring ring = Ring::create(device, bytes, {}).value();
            Reader reader = Reader::open(device, ring.admit().value()).value();
            ASSERT_TRUE(receiver.begin(ring));
            for (const auto end = Clock::now() + 20s; stepped && frames == 0 && Clock::now() < end;) {
                stepped = receiver.step(1ms);
                frames = receiver.counts().frames;
            }
            if (frames != 0) {
                const auto frame = reader.next_frame(Wait::at_most(20s)).value();
                value = frame.buffer().read_on_host().value()[bytes - 1];
            }
            looked = true;
            while (!over && stepped) stepped = receiver.step(1ms);
        });
        sender.meet();
        Token wrong = sender.token;
        wrong[15] ^= std::byte{1};
        sender.send(Token{}, 0x66);
        sender.send(wrong, 0x67);
        sender.judge(wrong);
        sender.send(sender.token, 0x11);
        for (const auto end = Clock::now() + 30s; !looked && Clock::now() < end;) sender.progress();
        over = true;
        receives.join();
        EXPECT_TRUE(stepped) << stepped.error().text();
        EXPECT_EQ(frames, 1u) << bytes;
        EXPECT_EQ(value, 0x11) << bytes;
    }
}

// keeps N3: to a slow device a frame may be on its way for longer than the sender has patience
TEST(Forged, AFrameThatTakesItsTimeIsNoSilenceOfTheReceiver) {
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    Device& device = runtime.default_device();
    const std::size_t bytes = std::size_t{1} << 20;
    HandmadeSender sender(bytes);
    ucx::ConnectionOptions options = patient();
    options.silence = 12s;
    std::atomic<bool> over{false};
    Result<void> stepped{};
    std::uint64_t frames = 1;
    std::thread receives([&] {
        auto receiver =
            ucx::FrameReceiver::create(ucx::Connection::connect({"127.0.0.1", sender.port()}, options).value()).value();
        Ring ring = Ring::create(device, bytes, {}).value();
        ASSERT_TRUE(receiver.begin(ring));
        while (!over && stepped) stepped = receiver.step(1ms);
        frames = receiver.counts().frames;
    });
    sender.meet();
    sender.send(sender.token, 0x11, false);
    for (const auto end = Clock::now() + 40s; sender.receipts < 2 && Clock::now() < end;) sender.progress();
    over = true;
    receives.join();
    EXPECT_TRUE(stepped) << stepped.error().text();
    EXPECT_EQ(frames, 0u) << "without a verdict";
    EXPECT_GE(sender.receipts, 2) << "at once, and after a quarter of `silence`";
}

}  // namespace
}  // namespace isthmus
