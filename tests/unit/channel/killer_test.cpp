// SPDX-License-Identifier: Apache-2.0
// One of two processes is killed, with a real SIGKILL, before and after each system call of connecting, handshake,
// transfer and close. The other one gets a typed error within 100 ms (ten times that under sanitizers), and nothing is
// left of either: no descriptor, no mapping, no name.
#include "kills.hpp"
#include "process_state.hpp"
#include "transfer.hpp"
#include "wrapped_calls.hpp"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <random>
#include <string>
#include <utility>

namespace {

using namespace isthmus;
using platform::os::ProcessCalls;

// Shared by both processes.
struct Shared {
    std::atomic<long> points{0};  // passed by the victim
    std::atomic<std::int64_t> killed_at_ns{0};
    std::atomic<bool> ended{false};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct Way {
    bool offering;  // the victim's role
    bool listens;   // they connect through a directory
};
constexpr Way ways[] = {{true, true}, {false, true}, {true, false}, {false, false}};

[[noreturn]] void be_the_victim(const Way& way, const KillAt& kill, const SharedPage<Shared>& shared,
                                const std::string& directory, FileDescriptor end) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::minstd_rand random(kill.seed);
    const auto pass = [&] {
        if (++shared->points != kill.point) return;
        shared->killed_at_ns = now_ns();
        ::kill(::getpid(), SIGKILL);
    };
    call_hooks.before = [&](const char*) {
        if (kill.dawdle_us != 0) ::usleep(static_cast<useconds_t>(random() % kill.dawdle_us));
        pass();
        return 0;
    };
    call_hooks.after = [&](const char*) { pass(); };
    Meeting meeting{directory, std::move(end), [] { return false; }, survivors_step};
    // The survivor's listener is made first, so that every run passes the same points.
    const std::string name = directory + "/channel";
    while (!way.offering && way.listens && ::access(name.c_str(), F_OK) != 0) ::usleep(100);
    const Result<void> result = (way.offering ? play_offering : play_receiving)(std::move(meeting), wrapped_calls());
    shared->ended = true;
    ::_exit(result ? 0 : 1);
}

Seen play(std::size_t number, const KillAt& kill) {
    const Way& way = ways[number];
    Seen seen;
    const NothingLeft nothing_left;
    OwnDirectory directory;
    const std::string place = way.listens ? directory.path() : "";
    const SharedPage<Shared> shared;
    ChannelPair pair = create_channel_pair().value();
    const pid_t child = ::fork();
    if (child == 0) {
        pair.ours.close();
        be_the_victim(way, kill, shared, place, std::move(pair.childs));
    }
    pair.childs.close();
    const auto over = [&shared] { return shared->killed_at_ns != 0 || shared->ended; };
    seen.survivor = (way.offering ? play_receiving : play_offering)(
        Meeting{place, std::move(pair.ours), over, survivors_step}, ProcessCalls::real());
    const std::int64_t over_at_ns = now_ns();
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    seen.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(seen.killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        << "the victim ended by itself: " << status;
    seen.points = shared->points;
    if (seen.killed) seen.after_the_kill = std::chrono::nanoseconds(over_at_ns - shared->killed_at_ns);
    // The name of a killed listener is removed by the next attempt to connect to it.
    if (way.listens) {
        EXPECT_EQ(connect_channel(place).code(), Code::peer_lost);
    }
    EXPECT_EQ(directory.entries(), 0);
    return seen;
}

std::string text(std::size_t number, const KillAt& kill) {
    const Way& way = ways[number];
    return std::string(way.offering ? "offering" : "receiving") + (way.listens ? " in a directory" : " over a pair") +
           ", killed at point " + std::to_string(kill.point) + ", dawdling up to " + std::to_string(kill.dawdle_us) +
           " us, seed " + std::to_string(kill.seed);
}

// keeps I6
TEST(Killer, TheSurvivorKnowsAtOnceAndNothingIsLeft) {
    kill_at_every_point(std::size(ways), 2, play, text);
}

}  // namespace
