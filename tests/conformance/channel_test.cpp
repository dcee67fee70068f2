// SPDX-License-Identifier: Apache-2.0
// Both ends of a channel in one process. No device takes part, but the library makes the system calls, so they fail
// under planned faults (tests/faults). Two processes: tests/unit/channel.
#include "scenario.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t bytes_sent = 1000;

ChannelOptions patient() {
    ChannelOptions options;
    options.step_timeout = 10s;
    return options;
}

// Offers a descriptor, receives the acknowledgement, and closes.
void offer(Channel channel) {
    const FileDescriptor something(::dup(STDOUT_FILENO));
    const int fd = something.get();
    const std::string bytes(bytes_sent, 'b');
    EXPECT_TRUE(worked(channel.send(1, std::as_bytes(std::span(bytes)), std::span(&fd, 1))));
    EXPECT_TRUE(worked(channel.wait_received()));
    EXPECT_EQ(channel.receive().value().kind, 2u);
}

void take(Channel channel) {
    const ChannelMessage message = channel.receive().value();
    EXPECT_EQ(message.kind, 1u);
    EXPECT_EQ(message.bytes.size(), bytes_sent);
    EXPECT_EQ(message.bytes.back(), std::byte{'b'});
    EXPECT_EQ(message.fds.size(), 1u);
    struct stat here {};
    struct stat there {};
    EXPECT_TRUE(::fstat(STDOUT_FILENO, &here) == 0 && ::fstat(message.fds.at(0).get(), &there) == 0 &&
                here.st_ino == there.st_ino && here.st_dev == there.st_dev);
    EXPECT_TRUE(worked(channel.send(2, {})));
    EXPECT_TRUE(refused_as(channel.receive(), Code::peer_lost));
}

// keeps I4
TEST(Channels, CarryDescriptorsOverAPair) {
    ChannelPair pair = isthmus::create_channel_pair().value();
    Thread other([end = std::make_shared<FileDescriptor>(std::move(pair.childs))] {
        take(Channel::adopt(std::move(*end), ChannelSide::receiving, patient()).value());
    });
    offer(Channel::adopt(std::move(pair.ours), ChannelSide::offering, patient()).value());
    other.join();
}

// keeps I4
TEST(Channels, CarryDescriptorsFromADirectory) {
    struct Directory {
        std::string path = "/tmp/isthmus-conformance-XXXXXX";
        Directory() { path = ::mkdtemp(path.data()) == nullptr ? "" : path; }
        ~Directory() {
            ::unlink((path + "/channel").c_str());
            ::rmdir(path.c_str());
        }
    } const directory;
    // Destroyed before the thread is joined, which then learns that no peer will come.
    auto made = std::make_unique<Listener>(Listener::create(directory.path, patient()).value());
    std::atomic<bool> over{false};
    Thread other([&] {
        struct Over {
            std::atomic<bool>& over;
            ~Over() { over = true; }
        } const at_the_end{over};
        take(isthmus::connect_channel(directory.path, patient()).value());
    });
    const std::unique_ptr<Listener> listener = std::move(made);
    EXPECT_TRUE(refused_as(Listener::create(directory.path, patient()), Code::in_use));
    bool came = false;
    while (!came) {
        const bool last = over;
        came = listener->wait_for_connection(1ms).value();
        if (last && !came) break;
    }
    if (came) offer(listener->accept().value());
    other.join();
}

}  // namespace
}  // namespace conformance
