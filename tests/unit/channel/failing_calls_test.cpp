// SPDX-License-Identifier: Apache-2.0
// Every system call of connecting, handshake, transfer and close fails once, or from there on, on either side and for
// both ways of connecting: a typed error or none, never a wrong value, nothing left, and the other side ends too.
#include "process_state.hpp"
#include "transfer.hpp"
#include "wrapped_calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace isthmus;
using platform::os::ProcessCalls;

const std::set<std::string> interruptible = {"ppoll", "sendmsg", "recvmsg", "accept4", "connect", "getrandom", "flock"};

using Role = Result<void> (*)(Meeting, const ProcessCalls&);

// Returns how many calls the role makes when call number `nth`, or every call from there on, fails; 0: none fails.
long play(Role faulty, Role other, bool listens, long nth, int code, bool persistent = false) {
    OwnDirectory directory;
    long calls = 0;
    std::string failed;
    bool unlinking_failed = false;
    {
        const NothingLeft nothing_left;
        ChannelPair pair = create_channel_pair().value();
        std::atomic<bool> over{false};
        std::atomic<bool> other_over{false};
        const auto meeting = [&](FileDescriptor end, std::atomic<bool>& ended) {
            return Meeting{listens ? directory.path() : "", std::move(end), [&ended] { return ended.load(); }};
        };
        Result<void> answer;
        std::thread thread([&, at = meeting(std::move(pair.childs), over)]() mutable {
            answer = other(std::move(at), ProcessCalls::real());
            other_over = true;
        });
        call_hooks = {};
        call_hooks.before = [&](const char* name) {
            if (++calls < nth || nth == 0 || (calls > nth && !persistent)) return 0;
            failed = name;
            unlinking_failed = unlinking_failed || failed == "unlinkat";
            return code;
        };
        const Result<void> result = faulty(meeting(std::move(pair.ours), other_over), wrapped_calls());
        call_hooks = {};
        over = true;
        thread.join();
        for (const Result<void>* each : {&result, &std::as_const(answer)}) {
            if (each->ok()) continue;
            EXPECT_NE(each->code(), Code::driver_error) << each->error().text() << " after " << failed;
            EXPECT_NE(each->code(), Code::timed_out) << each->error().text() << " after " << failed;
            EXPECT_FALSE(each->error().message().empty());
            EXPECT_FALSE(each->error().remedy().empty());
        }
        if (nth == 0) {
            EXPECT_TRUE(result.ok() && answer.ok());
        }
        // A call interrupted by a signal is repeated.
        if (code == EINTR && interruptible.count(failed) != 0) {
            EXPECT_TRUE(result.ok()) << result.error().text() << " after " << failed;
        }
    }
    // Only a failed unlink leaves something: the name, which the next listener removes.
    EXPECT_TRUE(directory.entries() == 0 || unlinking_failed) << "after " << failed;
    EXPECT_TRUE(Listener::create(directory.path()).ok());
    EXPECT_EQ(directory.entries(), 0) << "after " << failed;
    return calls;
}

// keeps R6, I6
TEST(FailingCalls, NoneOfThemLeavesAnythingBehind) {
    long tries = 0;
    for (const bool listens : {true, false}) {
        for (const bool offering : {true, false}) {
            const Role faulty = offering ? play_offering : play_receiving;
            const Role other = offering ? play_receiving : play_offering;
            // The fewest of some plays: a side polls for a thread that has not begun yet.
            long calls = play(faulty, other, listens, 0, 0);
            for (int again = 0; again < 3; ++again) calls = std::min(calls, play(faulty, other, listens, 0, 0));
            ASSERT_GT(calls, 10);
            for (long nth = 1; nth <= calls; ++nth) {
                for (const int code : {EIO, EMFILE, ENOMEM, EACCES, ENOSYS, EINTR, 0}) {
                    play(faulty, other, listens, nth, code == 0 ? EIO : code, code == 0);
                    ++tries;
                    if (HasFailure())
                        FAIL() << "call " << nth << " with errno " << code << ", offering " << offering << ", listens "
                               << listens;
                }
            }
        }
    }
    RecordProperty("tries", std::to_string(tries));
    std::printf("%ld failed calls\n", tries);
}

}  // namespace
