// SPDX-License-Identifier: Apache-2.0
// Who may connect, by the bytes alone; key files and addresses.
#include "greeting.hpp"
#include "patience.hpp"

#include <isthmus/ucx.hpp>

#include <gtest/gtest.h>
#include <sodium.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>

namespace isthmus {
namespace {

using namespace ucx_wire;

Secret secret(int value) {
    Secret made{};
    made.fill(static_cast<std::byte>(value));
    return made;
}
Nonce nonce(int value) {
    return secret(value);
}
const HelloBytes hello = make_hello(true, nonce(1));
const HelloBytes welcome = make_hello(true, nonce(2));

TEST(Greeting, FitsAnEndOfTheSameVersionAndSecrecyOnly) {  // keeps N4
    EXPECT_TRUE(judge_hello(make_hello(true, nonce(1)), true));
    EXPECT_TRUE(judge_hello(make_hello(false, nonce(1)), false));
    EXPECT_EQ(judge_hello(make_hello(true, nonce(1)), false).code(), Code::not_permitted);
    EXPECT_EQ(judge_hello(make_hello(false, nonce(1)), true).code(), Code::not_permitted);
    const Result<void> old = judge_hello(make_hello(true, nonce(1), version - 1), true);
    EXPECT_EQ(old.code(), Code::unsupported);
    EXPECT_NE(old.error().message().find("version 2"), std::string_view::npos);
    for (std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{13}}) {
        HelloBytes changed = hello;
        changed[at] ^= std::byte{0x40};
        EXPECT_EQ(judge_hello(changed, true).code(), Code::peer_broke_rules) << at;
    }
    EXPECT_EQ(judge_hello(std::span(hello).first(47), true).code(), Code::peer_broke_rules);
}

TEST(Greeting, ProofsHoldForOneKeySideAndPairOfNoncesOnly) {  // keeps N4
    const Proof proof = make_proof(secret(7), Side::receiver, hello, welcome);
    EXPECT_TRUE(proves(secret(7), Side::receiver, hello, welcome, proof));
    EXPECT_FALSE(proves(secret(8), Side::receiver, hello, welcome, proof));
    EXPECT_FALSE(proves(secret(7), Side::sender, hello, welcome, proof));  // a reflected proof
    EXPECT_FALSE(proves(secret(7), Side::receiver, make_hello(true, nonce(3)), welcome, proof));
    EXPECT_FALSE(proves(secret(7), Side::receiver, hello, make_hello(true, nonce(3)), proof));  // an earlier greeting's
    EXPECT_FALSE(proves(secret(7), Side::receiver, hello, welcome, std::span(proof).first(31)));
    for (std::size_t at = 0; at < proof.size(); ++at) {
        Proof changed = proof;
        changed[at] ^= std::byte{1};
        EXPECT_FALSE(proves(secret(7), Side::receiver, hello, welcome, changed)) << at;
    }
    EXPECT_NE(session_key(secret(7), Side::sender, hello, welcome),
              session_key(secret(7), Side::receiver, hello, welcome));
    EXPECT_NE(session_key(secret(7), Side::sender, hello, welcome), proof);
}

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto all = std::as_bytes(std::span(text));
    return {all.begin(), all.end()};
}

TEST(Messages, ArriveWholeAndInOrderHoweverTheyAreCut) {
    Sealer sealer(secret(3));
    std::vector<std::byte> line;
    for (const char* text : {"one", "", "three"}) {
        const std::vector<std::byte> sealed = sealer.seal(Kind::offer, bytes_of(text));
        line.insert(line.end(), sealed.begin(), sealed.end());
    }
    for (std::size_t piece = 1; piece <= line.size(); ++piece) {
        Opener opener(secret(3));
        std::vector<std::string> got;
        for (std::size_t at = 0; at < line.size(); at += piece) {
            std::span<const std::byte> rest = std::span(line).subspan(at).first(std::min(piece, line.size() - at));
            while (!rest.empty()) {
                Result<std::optional<Message>> message = opener.take(rest);
                ASSERT_TRUE(message) << message.error().text();
                if (!*message) continue;
                got.emplace_back(reinterpret_cast<const char*>((*message)->body.data()), (*message)->body.size());
            }
        }
        EXPECT_EQ(got, (std::vector<std::string>{"one", "", "three"})) << piece;
    }
}

// What an opener with key 3 says about these bytes.
Code answer(std::span<const std::byte> bytes) {
    Opener opener(secret(3));
    while (!bytes.empty()) {
        Result<std::optional<Message>> message = opener.take(bytes);
        if (!message) {
            std::span<const std::byte> more = bytes;
            EXPECT_EQ(opener.take(more).code(), Code::peer_broke_rules);  // for good
            return message.code();
        }
    }
    return Code::ok;
}

TEST(Messages, ChangedRepeatedSwappedOrForeignOnesEndTheLine) {  // keeps N3
    Sealer sealer(secret(3));
    const std::vector<std::byte> first = sealer.seal(Kind::offer, bytes_of("first"));
    const std::vector<std::byte> second = sealer.seal(Kind::offer, bytes_of("second"));
    const auto joined = [](std::vector<std::byte> one, const std::vector<std::byte>& two) {
        one.insert(one.end(), two.begin(), two.end());
        return one;
    };
    EXPECT_EQ(answer(joined(first, second)), Code::ok);
    EXPECT_EQ(answer(joined(first, first)), Code::peer_broke_rules);
    EXPECT_EQ(answer(joined(second, first)), Code::peer_broke_rules);
    EXPECT_EQ(answer(Sealer(secret(4)).seal(Kind::offer, bytes_of("first"))), Code::peer_broke_rules);
    for (std::size_t at = 0; at < first.size(); ++at) {
        std::vector<std::byte> changed = first;
        changed[at] ^= std::byte{1};
        const Code code = answer(changed);
        // A length that has grown waits for more bytes, which then fail.
        EXPECT_TRUE(code == Code::peer_broke_rules || (at >= 4 && at < 8)) << at;
    }
    std::vector<std::byte> long_one(8, std::byte{0});
    long_one[0] = std::byte{1};
    long_one[6] = std::byte{1};  // 65536 bytes
    EXPECT_EQ(answer(long_one), Code::peer_broke_rules);
}

TEST(Tokens, AreDrawnAndComparedAsAWhole) {  // keeps N3
    const Token drawn = drawn_token();
    EXPECT_FALSE(same(drawn, drawn_token()));
    EXPECT_TRUE(same(drawn, Token(drawn)));
    for (std::size_t at = 0; at < drawn.size(); ++at) {
        Token changed = drawn;
        changed[at] ^= std::byte{1};
        EXPECT_FALSE(same(drawn, changed)) << at;
    }
    std::vector<std::byte> body;
    put(body, drawn);
    std::span<const std::byte> rest(body), few = std::span(body).first(15);
    const std::optional<Token> taken = take_token(rest);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(same(*taken, drawn));
    EXPECT_TRUE(rest.empty());
    EXPECT_FALSE(take_token(few));
}

TEST(Addresses, AreAHostAndAPort) {
    const auto is = [](std::string_view text, std::string_view host, int port) {
        const Result<ucx::Address> parsed = ucx::Address::parse(text);
        return parsed && parsed->host == host && parsed->port == port;
    };
    EXPECT_TRUE(is("127.0.0.1:7000", "127.0.0.1", 7000));
    EXPECT_TRUE(is("[::1]:0", "::1", 0));
    EXPECT_TRUE(is("localhost:65535", "localhost", 65535));
    for (const char* wrong :
         {"", ":1", "host", "host:", "host:65536", "host:1x", "::1:7", "[]:7", "[::1:7", "host:-1"}) {
        EXPECT_EQ(ucx::Address::parse(wrong).code(), Code::invalid_argument) << wrong;
    }
}

TEST(Addresses, OtherMachinesNeedAKey) {  // keeps N4
    ucx::ConnectionOptions open;
    EXPECT_TRUE(ucx::Listener::create({"127.0.0.1", 0}, open));
    for (const char* host : {"0.0.0.0", "192.0.2.1", "::"}) {
        EXPECT_EQ(ucx::Listener::create({host, 0}, open).code(), Code::not_permitted) << host;
    }
    EXPECT_EQ(ucx::Connection::connect({"192.0.2.1", 7}, open).code(), Code::not_permitted);
    ucx::ConnectionOptions keyed;
    keyed.key.emplace(secret(1));
    EXPECT_TRUE(ucx::Listener::create({"0.0.0.0", 0}, keyed));
}

class KeyFile : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
        path_ = folder_ + "/key";
    }
    void TearDown() override {
        ::unlink(path_.c_str());
        ::rmdir(folder_.c_str());
    }
    Code load(const std::string& content, mode_t mode) {
        std::ofstream(path_) << content;
        ::chmod(path_.c_str(), mode);
        const Result<ucx::Key> key = ucx::Key::load(path_);
        if (key) {
            EXPECT_EQ(key->bytes()[0], std::byte{0xa5});
            EXPECT_EQ(key->bytes()[31], std::byte{0x0f});
        }
        ::unlink(path_.c_str());
        return key.code();
    }
    std::string folder_ = "/tmp/isthmus-key-XXXXXX", path_;
    const std::string right_ = "a5" + std::string(60, '0') + "0F";
};

TEST_F(KeyFile, IsReadWhereItIsItsUsersAlone) {  // keeps N4
    EXPECT_EQ(load(right_, 0600), Code::ok);
    EXPECT_EQ(load(right_ + "\n", 0400), Code::ok);
    for (const mode_t mode : {0640, 0604, 0660, 0700, 0644}) {
        EXPECT_EQ(load(right_, mode), Code::not_permitted) << std::oct << mode;
    }
    EXPECT_EQ(ucx::Key::load(folder_).code(), Code::not_permitted);
    EXPECT_EQ(ucx::Key::load(path_).code(), Code::system_error);
    for (const std::string& wrong : {std::string(), right_.substr(1), right_ + "0", right_ + "\n\n",
                                     "x" + right_.substr(1), right_.substr(0, 63) + ":"}) {
        EXPECT_EQ(load(wrong, 0600), Code::invalid_argument) << wrong;
    }
}

// Both ends of a greeting over a socket of this machine.
std::pair<Code, Code> greeted(const ucx::ConnectionOptions& sends, const ucx::ConnectionOptions& receives) {
    Result<ucx::Listener> listener = ucx::Listener::create({"127.0.0.1", 0}, sends);
    EXPECT_TRUE(listener);
    std::future<Code> sender = std::async(
        std::launch::async, [&] { return ucx::Connection::greet(accepted_by(*listener).value(), sends).code(); });
    const Code receiver = ucx::Connection::connect({"127.0.0.1", listener->port()}, receives).code();
    return {sender.get(), receiver};
}

TEST(Connections, NeedTheSameKeyAtBothEnds) {  // keeps N4
    using Pair = std::pair<Code, Code>;
    ucx::ConnectionOptions open = patient(), one = patient(), another = patient();
    one.key.emplace(secret(1));
    another.key.emplace(secret(2));
    EXPECT_EQ(greeted(open, open), Pair(Code::ok, Code::ok));
    EXPECT_EQ(greeted(one, one), Pair(Code::ok, Code::ok));
    EXPECT_EQ(greeted(one, another), Pair(Code::peer_lost, Code::not_permitted));
    EXPECT_EQ(greeted(one, open), Pair(Code::not_permitted, Code::not_permitted));
    EXPECT_EQ(greeted(open, one), Pair(Code::not_permitted, Code::not_permitted));
}

TEST(Connections, ASilentEndMeetsTheDeadline) {  // keeps N3
    ucx::ConnectionOptions options;
    options.step_timeout = std::chrono::milliseconds(100);
    Result<ucx::Listener> listener = ucx::Listener::create({"127.0.0.1", 0}, options);
    ASSERT_TRUE(listener);
    // Nobody accepts: the system has the connection, and nothing is answered.
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ucx::Connection::connect({"127.0.0.1", listener->port()}, options).code(), Code::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const FileDescriptor other(ends[1]);
    // Not even a connection over TCP: loopback cannot be told.
    EXPECT_EQ(ucx::Connection::greet(FileDescriptor(ends[0]), options).code(), Code::not_permitted);
}

TEST(Connections, AnEndThatDripsMeetsTheDeadline) {  // keeps N3
    ucx::ConnectionOptions options;
    options.step_timeout = std::chrono::seconds(1);
    Result<ucx::Listener> listener = ucx::Listener::create({"127.0.0.1", 0}, options);
    ASSERT_TRUE(listener);
    std::atomic<bool> over{false};
    std::atomic<std::size_t> sent{0};
    std::thread other([&] {
        const FileDescriptor line(::socket(AF_INET, SOCK_STREAM, 0));
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(listener->port());
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::connect(line.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
        // For 24 s, so that this end is not through where the other one stands still.
        for (; sent < hello.size() && !over; ++sent) {
            if (::send(line.get(), hello.data() + sent, 1, MSG_NOSIGNAL) != 1) break;
            for (int part = 0; part < 50 && !over; ++part) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    });
    EXPECT_EQ(ucx::Connection::greet(accepted_by(*listener).value(), options).code(), Code::timed_out);
    EXPECT_LT(sent, hello.size()) << "the deadline is not that of each byte";
    over = true;
    other.join();
}

}  // namespace
}  // namespace isthmus
