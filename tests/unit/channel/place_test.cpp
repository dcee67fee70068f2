// SPDX-License-Identifier: Apache-2.0
// Where listeners live, and what a channel tolerates: paths that end in a slash, directories of another user, copies in
// forked children, sockets whose former owner enabled ancillary data, lack of memory.
#include "channel_place.hpp"

#include "channel_state.hpp"
#include "process_state.hpp"

#include <isthmus/ipc/channel.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <optional>
#include <string>
#include <utility>

namespace {

using namespace isthmus;
using detail::ListenerPlace;
using detail::without_trailing;
using platform::os::ProcessCalls;
using namespace std::chrono_literals;

// keeps I4
TEST(Place, ALinkIsNotFollowedHoweverItIsWritten) {
    for (const auto& [path, name] : {std::pair{"/", "/"},
                                     {"//", "/"},
                                     {"/.", "/"},
                                     {".", "."},
                                     {"./", "."},
                                     {"a", "a"},
                                     {"a/", "a"},
                                     {"a/.", "a"},
                                     {"a/./", "a"},
                                     {"a//.//", "a"},
                                     {"a/..", "a/.."},
                                     {"a.", "a."},
                                     {"/a/b/.", "/a/b"}}) {
        EXPECT_EQ(without_trailing(path), name) << path;
    }
    const NothingLeft nothing_left;
    OwnDirectory directory;
    OwnDirectory beside;
    const std::string link = beside.path() + "/channel";
    ASSERT_EQ(::symlink(directory.path().c_str(), link.c_str()), 0);
    const Listener listener = Listener::create(directory.path() + "/", patient()).value();
    for (const char* end : {"", "/", "/.", "/./", "//"}) {
        EXPECT_EQ(Listener::create(link + end).code(), Code::not_permitted) << end;
        EXPECT_EQ(connect_channel(link + end).code(), Code::not_permitted) << end;
    }
}

uid_t said_uid = 0;

// keeps I4
TEST(Place, ADirectoryOfSomebodyElseIsOnlyThatOnesToListenIn) {
    const NothingLeft nothing_left;
    constexpr uid_t somebody = 4321;
    ProcessCalls calls = ProcessCalls::real();
    calls.fstat = [](int fd, struct stat* facts) {
        const int done = ::fstat(fd, facts);
        if (S_ISDIR(facts->st_mode)) facts->st_uid = somebody;
        return done;
    };
    calls.getsockopt = [](int socket, int level, int option, void* value, socklen_t* bytes) {
        const int done = ::getsockopt(socket, level, option, value, bytes);
        if (option == SO_PEERCRED) static_cast<ucred*>(value)->uid = said_uid;
        return done;
    };
    OwnDirectory directory;
    ListenerPlace place = ListenerPlace::take(directory.path(), ProcessCalls::real()).value();
    const auto connected = [&] { return detail::connect_to_place(directory.path(), 1s, calls).code(); };
    said_uid = somebody;
    EXPECT_EQ(connected(), Code::ok);
    for (const uid_t other : {uid_t{0}, ::geteuid() + 1}) {
        said_uid = other;
        EXPECT_EQ(connected(), Code::not_permitted) << other;
    }
    place.end();
}

// A forked child that holds a copy of every descriptor until this object is destroyed.
class Child {
public:
    Child() {
        EXPECT_EQ(::pipe2(hold_, O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::close(hold_[1]);
        char byte = 0;
        (void)!::read(hold_[0], &byte, 1);
        ::_exit(0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        ::close(hold_[0]);
        ::close(hold_[1]);
        ::waitpid(pid_, nullptr, 0);
    }

private:
    int hold_[2] = {-1, -1};
    pid_t pid_ = -1;
};

int fails_with = 0;  // the next message
ssize_t send_or_fail(int socket, const msghdr* message, int flags) {
    if (fails_with == 0) return ::sendmsg(socket, message, flags);
    errno = std::exchange(fails_with, 0);
    return -1;
}

// keeps I6
TEST(Place, AnEndIsOneThoughAForkedChildHoldsCopies) {
    OwnDirectory directory;
    std::optional<Listener> listener(Listener::create(directory.path(), patient()).value());
    ChannelPair pair = create_channel_pair().value();
    auto other = std::async(std::launch::async, [end = std::move(pair.childs)]() mutable {
        return Channel::adopt(std::move(end), ChannelSide::receiving, patient());
    });
    ProcessCalls calls = ProcessCalls::real();
    calls.sendmsg = send_or_fail;
    std::optional<Channel> ours(
        detail::ChannelAccess::adopt(std::move(pair.ours), ChannelSide::offering, patient(), calls).value());
    Channel theirs = other.get().value();
    ASSERT_TRUE(ours->send(7, {}).ok());
    const Child child;
    listener.reset();
    EXPECT_TRUE(Listener::create(directory.path()).ok()) << "the lock went with it";
    fails_with = EIO;  // no farewell
    ours.reset();
    EXPECT_EQ(theirs.receive().value().kind, 7u) << "what was sent before counts";
    EXPECT_EQ(theirs.receive().code(), Code::peer_lost);
}

// keeps I4
TEST(Place, AnInheritedSocketPassesMessagesOnly) {
    const NothingLeft nothing_left;
    constexpr int pass_pidfd = 76;  // SO_PASSPIDFD, Linux 6.5
    ChannelPair pair = create_channel_pair().value();
    const int on = 1;
    ASSERT_EQ(::setsockopt(pair.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    const bool known = ::setsockopt(pair.ours.get(), SOL_SOCKET, pass_pidfd, &on, sizeof on) == 0;
    auto other = std::async(std::launch::async, [end = std::move(pair.childs)]() mutable {
        return Channel::adopt(std::move(end), ChannelSide::receiving, patient());
    });
    Channel ours = Channel::adopt(std::move(pair.ours), ChannelSide::offering, patient()).value();
    Channel theirs = other.get().value();
    for (const int option : {SO_PASSCRED, known ? pass_pidfd : SO_PASSCRED}) {
        int value = -1;
        socklen_t bytes = sizeof value;
        ASSERT_EQ(::getsockopt(ours.descriptor(), SOL_SOCKET, option, &value, &bytes), 0);
        EXPECT_EQ(value, 0) << option;
    }
    const int files = open_files();
    ASSERT_TRUE(theirs.send(3, {}).ok());
    EXPECT_EQ(ours.receive().value().kind, 3u);
    EXPECT_EQ(open_files(), files);
}

// keeps R6
TEST(Place, AMessageForWhichMemoryIsShortLeavesTheChannelOpen) {
    const NothingLeft nothing_left;
    ProcessCalls calls = ProcessCalls::real();
    calls.sendmsg = send_or_fail;
    ChannelPair pair = create_channel_pair().value();
    auto other = std::async(std::launch::async, [end = std::move(pair.childs)]() mutable {
        return Channel::adopt(std::move(end), ChannelSide::receiving, patient());
    });
    Channel ours = detail::ChannelAccess::adopt(std::move(pair.ours), ChannelSide::offering, patient(), calls).value();
    Channel theirs = other.get().value();
    const std::byte bytes[3] = {};
    for (const int code : {ENOMEM, ENOBUFS}) {
        fails_with = code;
        EXPECT_EQ(ours.send(1, bytes).code(), Code::out_of_memory);
        ASSERT_TRUE(ours.send(2, bytes).ok());
        EXPECT_EQ(theirs.receive().value().kind, 2u);
    }
}

}  // namespace
