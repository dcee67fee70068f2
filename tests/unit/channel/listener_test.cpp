// SPDX-License-Identifier: Apache-2.0
// Listeners and their directories, and a whole transfer in both directions.
#include <isthmus/ipc/channel.hpp>

#include "channel_state.hpp"
#include "process_state.hpp"
#include "transfer.hpp"
#include "wrapped_calls.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using platform::os::ProcessCalls;
using namespace std::chrono_literals;

// keeps I4
TEST(Listener, MeetsInADirectoryAndLeavesNoName) {
    const NothingLeft nothing_left;
    OwnDirectory parent;
    const std::string directory = parent.path() + "/" + std::string(150, 'd');  // longer than a socket address
    {
        Listener listener = Listener::create(directory, patient()).value();
        struct stat facts {};
        ASSERT_EQ(::stat(directory.c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, 0700u);
        EXPECT_FALSE(listener.wait_for_connection(0s).value());
        for (int times = 0; times < 3; ++times) {
            auto other = std::async(std::launch::async, [&] { return connect_channel(directory, patient()); });
            EXPECT_TRUE(listener.wait_for_connection(20s).value());
            Channel ours = listener.accept().value();
            Channel theirs = other.get().value();
            ASSERT_TRUE(ours.send(7, {}).ok());
            EXPECT_EQ(theirs.receive().value().kind, 7u);
            EXPECT_EQ(theirs.peer().pid, ::getpid());
        }
        EXPECT_EQ(Listener::create(directory).code(), Code::in_use);
        EXPECT_EQ(::access((directory + "/channel").c_str(), F_OK), 0);
    }
    EXPECT_NE(::access((directory + "/channel").c_str(), F_OK), 0);
    EXPECT_EQ(connect_channel(directory).code(), Code::peer_lost);
    EXPECT_EQ(connect_channel(directory + "/none").code(), Code::peer_lost);
    ::rmdir(directory.c_str());
}

// keeps I4
TEST(Listener, NothingOfItSurvivesExec) {
    OwnDirectory directory;
    const int kept = files_kept_by_exec();
    Listener listener = Listener::create(directory.path(), patient()).value();
    auto other = std::async(std::launch::async, [&] { return connect_channel(directory.path(), patient()); });
    EXPECT_TRUE(listener.wait_for_connection(20s).value());
    const Channel ours = listener.accept().value();
    const Channel theirs = other.get().value();
    const ChannelPair pair = create_channel_pair().value();
    EXPECT_EQ(files_kept_by_exec(), kept);
}

// keeps I3
TEST(Listener, GoesOnAfterSomebodyWhoIsNotAdmitted) {
    OwnDirectory directory;
    bool admits = false;
    ChannelOptions options = patient();
    options.allow = [&admits](const PeerCredentials&) { return admits; };
    Listener listener = Listener::create(directory.path(), options).value();
    for (const bool admitted : {false, true}) {
        admits = admitted;
        auto other = std::async(std::launch::async, [&] { return connect_channel(directory.path(), patient()); });
        EXPECT_TRUE(listener.wait_for_connection(20s).value());
        EXPECT_EQ(listener.accept().code(), admitted ? Code::ok : Code::not_permitted);
        EXPECT_EQ(other.get().code(), admitted ? Code::ok : Code::peer_lost);
    }
}

// keeps I4
TEST(Listener, DirectoriesThatOthersCouldUseAreRefused) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    const auto refused = [](const std::string& path) {
        const Result<Listener> listener = Listener::create(path);
        ASSERT_FALSE(listener.ok());
        EXPECT_EQ(listener.code(), Code::not_permitted) << listener.error().text();
        EXPECT_FALSE(listener.error().remedy().empty());
    };
    for (const unsigned mode : {0701u, 0710u, 0702u, 0720u, 0704u, 0740u, 0777u}) {
        ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0);
        refused(directory.path());
        if ((mode & 022) != 0) {
            EXPECT_EQ(connect_channel(directory.path()).code(), Code::not_permitted);
        }
    }
    ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
    const std::string beside = directory.path() + "/beside";
    ASSERT_EQ(::symlink(directory.path().c_str(), beside.c_str()), 0);
    refused(beside);
    EXPECT_EQ(connect_channel(beside).code(), Code::not_permitted);
    ASSERT_EQ(::unlink(beside.c_str()), 0);
    const std::string link = directory.path() + "/channel";
    ASSERT_EQ(::symlink(directory.path().c_str(), link.c_str()), 0);
    refused(link);
    EXPECT_EQ(connect_channel(link).code(), Code::not_permitted);
    // A name that is a link, or no socket, is refused.
    EXPECT_EQ(connect_channel(directory.path()).code(), Code::not_permitted);
    ASSERT_EQ(::unlink(link.c_str()), 0);
    FileDescriptor file(::open(link.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    file.close();
    EXPECT_EQ(connect_channel(directory.path()).code(), Code::not_permitted);
    refused(link);
    EXPECT_EQ(Listener::create("").code(), Code::invalid_argument);
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(directory.path().c_str(), 65534, 65534), 0);
        refused(directory.path());
    }
}

// keeps I6
TEST(Listener, TheNameOfOneThatWasKilledIsRemoved) {
    OwnDirectory directory;
    for (const bool by_connecting : {true, false}) {
        const pid_t child = ::fork();
        if (child == 0) {
            Result<Listener> listener = Listener::create(directory.path());
            ::kill(::getpid(), SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        ASSERT_EQ(directory.entries(), 1);
        if (by_connecting) {
            EXPECT_EQ(connect_channel(directory.path()).code(), Code::peer_lost);
            EXPECT_EQ(directory.entries(), 0);
        } else {
            EXPECT_TRUE(Listener::create(directory.path()).ok());
            EXPECT_EQ(directory.entries(), 0);
        }
    }
}

// The lock of a directory, as a process has it that removes a dead name.
FileDescriptor lock_of(const std::string& directory) {
    FileDescriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    return lock;
}
void leave_dead_name(const std::string& directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory + "/channel").c_str());
    const FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}
// Listens there, and calls `tried` with the number of each try to get the lock. The time between tries does not pass.
Result<Listener> listen_counted(const std::string& directory, const std::function<void(int)>& tried) {
    int tries = 0;
    call_hooks.before = [&](std::string_view name) {
        if (name == "flock") tried(++tries);
        return name == "ppoll" ? EINTR : 0;
    };
    Result<Listener> listener = detail::ChannelAccess::listen(directory, patient(), wrapped_calls());
    call_hooks = {};
    return listener;
}

// keeps I6
TEST(Listener, WaitsForAProcessThatStandsStillWhileItRemovesADeadName) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    for (const bool removed : {false, true}) {
        if (!removed) leave_dead_name(directory.path());
        FileDescriptor lock = lock_of(directory.path());
        const Result<Listener> listener = listen_counted(directory.path(), [&](int tries) {
            if (tries == 1000) lock.close();
        });
        EXPECT_TRUE(listener.ok()) << listener.error().text();
        EXPECT_FALSE(lock) << "it was waited for";
    }
    const FileDescriptor lock = lock_of(directory.path());
    int tries = 0;
    EXPECT_EQ(listen_counted(directory.path(), [&](int at) { tries = at; }).code(), Code::in_use);
    EXPECT_EQ(tries, 5000) << "but not for ever";
}

// keeps I4, I6
TEST(Listener, ItsDirectoryIsRefusedToOthersSoonAndItHearsNothingOfThem) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path(), patient()).value();
    int tries = 0;
    EXPECT_EQ(listen_counted(directory.path(), [&](int at) { tries = at; }).code(), Code::in_use);
    EXPECT_EQ(tries, 20);
    pollfd one{listener.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 0), 0);
}

TEST(Listener, GoesOnAfterSomebodyWhoSaysNothing) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    ChannelOptions options;
    options.step_timeout = 5ms;
    Listener listener = Listener::create(directory.path(), options).value();
    EXPECT_EQ(listener.accept().code(), Code::timed_out);  // no peer comes
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory.path() + "/channel").c_str());
    std::vector<FileDescriptor> silent;
    for (int at = 0; at < 12; ++at) {  // more than fit
        silent.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        (void)::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    EXPECT_EQ(connect_channel(directory.path(), options).code(), Code::timed_out);
    EXPECT_EQ(listener.accept().code(), Code::timed_out);
    silent.clear();
    while (listener.wait_for_connection(0s).value()) EXPECT_EQ(listener.accept().code(), Code::peer_lost);
    // 5 ms may be too short on a busy machine, but not in every try.
    bool met = false;
    for (int tries = 0; tries < 200 && !met; ++tries) {
        auto other = std::async(std::launch::async, [&] { return connect_channel(directory.path(), patient()); });
        EXPECT_TRUE(listener.wait_for_connection(20s).value());
        met = listener.accept().ok();
        (void)other.get();
    }
    EXPECT_TRUE(met);
}

// A socket that is connected to the listener and sends nothing.
FileDescriptor silent_peer(const std::string& directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory + "/channel").c_str());
    FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    return socket;
}

// keeps I4: its time is not over when the others have been greeted.
TEST(Listener, OneThatSaysNothingHoldsUpNoOther) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path(), patient()).value();
    const FileDescriptor first = silent_peer(directory.path());
    const FileDescriptor second = silent_peer(directory.path());
    for (int times = 0; times < 3; ++times) {
        auto other = std::async(std::launch::async, [&] { return connect_channel(directory.path(), patient()); });
        Result<Channel> ours = listener.accept();
        ASSERT_TRUE(ours.ok()) << ours.error().text();
        Channel theirs = other.get().value();
        ASSERT_TRUE(ours->send(7, {}).ok());
        EXPECT_EQ(theirs.receive().value().kind, 7u);
    }
    char byte = 0;
    EXPECT_LT(::recv(first.get(), &byte, 1, MSG_DONTWAIT), 0) << "it was given up";
    EXPECT_EQ(errno, EAGAIN);
}

// keeps I4
TEST(Listener, ThoseThatSayNothingTakeNoMoreThanAQuota) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path(), patient()).value();
    const int before = open_files();
    std::vector<FileDescriptor> silent;
    int given_up = 0;
    for (int at = 0; at < 100; ++at) {
        silent.push_back(silent_peer(directory.path()));
        while (listener.wait_for_connection(0s).value()) {
            EXPECT_EQ(listener.accept().code(), Code::timed_out);
            ++given_up;
        }
    }
    EXPECT_EQ(given_up, 100 - 32);
    EXPECT_EQ(open_files() - before, 100 + 32) << "this process's ends, and those that are being greeted";
    // The oldest were closed, the youngest were not, and a peer that sends gets its handshake.
    char byte = 0;
    EXPECT_EQ(::recv(silent.front().get(), &byte, 1, MSG_DONTWAIT), 0);
    EXPECT_LT(::recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), 0);
    auto other = std::async(std::launch::async, [&] { return connect_channel(directory.path(), patient()); });
    Result<Channel> ours = listener.accept();
    // The timeout belongs to the connection that was closed to make room.
    while (!ours && ours.code() == Code::timed_out) ours = listener.accept();
    EXPECT_TRUE(ours.ok()) << ours.error().text();
    EXPECT_TRUE(other.get().ok());
}

// keeps I4: whoever sleeps in poll() of its own misses nothing.
TEST(Listener, ItsDescriptorTellsOfEveryStepOfAGreeting) {
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path(), patient()).value();
    const FileDescriptor silent = silent_peer(directory.path());
    auto others = std::async(std::launch::async, [&] {
        std::vector<Channel> channels;
        for (int at = 0; at < 5; ++at) channels.push_back(connect_channel(directory.path(), patient()).value());
        return channels;
    });
    std::vector<Channel> accepted;
    while (accepted.size() < 5) {
        pollfd one{listener.descriptor(), POLLIN, 0};
        ASSERT_EQ(::poll(&one, 1, 20000), 1);
        if (listener.wait_for_connection(0s).value()) accepted.push_back(listener.accept().value());
    }
    EXPECT_EQ(others.get().size(), 5u);
    pollfd one{listener.descriptor(), POLLIN, 0};
    (void)listener.wait_for_connection(0s);
    EXPECT_EQ(::poll(&one, 1, 0), 0) << "one that is silent makes nothing readable";
}

// keeps I4: also where a child that was forked meanwhile holds copies of the sockets.
TEST(Listener, AGreetingThatFailedLeavesNothingToListenTo) {
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path(), patient()).value();
    FileDescriptor silent = silent_peer(directory.path());
    EXPECT_FALSE(listener.wait_for_connection(0s).value());
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    FileDescriptor from(ends[0]);
    FileDescriptor to(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        silent.close();
        to.close();
        char byte = 0;
        ::_exit(::read(from.get(), &byte, 1) == 0 ? 0 : 1);  // until the parent is done
    }
    silent.close();
    EXPECT_TRUE(listener.wait_for_connection(20s).value());
    EXPECT_EQ(listener.accept().code(), Code::peer_lost);
    pollfd one{listener.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 0), 0);
    to.close();
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// keeps I4
TEST(Listener, RemovesNothingButADeadSocketOfItsOwn) {
    const NothingLeft nothing_left;
    OwnDirectory directory;
    const std::string name = directory.path() + "/channel";
    const auto stays = [&](Code code) {
        struct stat before {};
        struct stat after {};
        ASSERT_EQ(::lstat(name.c_str(), &before), 0);
        const Result<Listener> listener = Listener::create(directory.path());
        EXPECT_EQ(listener.code(), code);
        EXPECT_FALSE(listener.error().remedy().empty());
        ASSERT_EQ(::lstat(name.c_str(), &after), 0);
        EXPECT_EQ(before.st_ino, after.st_ino);
    };
    FileDescriptor file(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(file.get(), "mine", 4), 4);
    file.close();
    stays(Code::not_permitted);
    ASSERT_EQ(::unlink(name.c_str()), 0);
    ASSERT_EQ(::mkdir(name.c_str(), 0700), 0);
    stays(Code::not_permitted);
    ASSERT_EQ(::rmdir(name.c_str()), 0);
    ASSERT_EQ(::symlink("/nowhere", name.c_str()), 0);
    stays(Code::not_permitted);
    ASSERT_EQ(::unlink(name.c_str()), 0);
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    stays(Code::not_permitted);
    ASSERT_EQ(::unlink(name.c_str()), 0);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, name.c_str());
        FileDescriptor other(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        if (type != SOCK_DGRAM) {
            ASSERT_EQ(::listen(other.get(), 0), 0);
        }
        stays(Code::in_use);
        stays(Code::in_use);  // its queue may be full by now
        if (::geteuid() == 0) {
            ASSERT_EQ(::chown(name.c_str(), 65534, 65534), 0);
            stays(Code::not_permitted);
            ASSERT_EQ(::chown(name.c_str(), 0, 0), 0);
        }
        other.close();
        EXPECT_TRUE(Listener::create(directory.path()).ok()) << "dead, and its own";
        EXPECT_EQ(directory.entries(), 0);
    }
    // A file that replaced the name during the listener's lifetime is not removed.
    Result<Listener> listener = Listener::create(directory.path());
    ASSERT_TRUE(listener.ok());
    ASSERT_EQ(::unlink(name.c_str()), 0);
    file = FileDescriptor(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    file.close();
    listener = Error(Code::unsupported, "", "");
    EXPECT_EQ(directory.entries(), 1);
    ::unlink(name.c_str());
}

TEST(Transfer, RunsWholeOverBothWays) {
    for (const bool listens : {true, false}) {
        const NothingLeft nothing_left;
        OwnDirectory directory;
        ChannelPair pair = create_channel_pair().value();
        Meeting offering{listens ? directory.path() : "", std::move(pair.ours), [] { return false; }};
        Meeting receiving{listens ? directory.path() : "", std::move(pair.childs), [] { return false; }};
        auto other = std::async(std::launch::async, [meeting = std::move(receiving)]() mutable {
            return play_receiving(std::move(meeting), ProcessCalls::real());
        });
        const Result<void> offered = play_offering(std::move(offering), ProcessCalls::real());
        const Result<void> received = other.get();
        EXPECT_TRUE(offered.ok()) << offered.error().text();
        EXPECT_TRUE(received.ok()) << received.error().text();
    }
}

}  // namespace
