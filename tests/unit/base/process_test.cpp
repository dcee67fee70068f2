// SPDX-License-Identifier: Apache-2.0
// What is kept until the process ends, beside forks.
#include "process.hpp"

#include <gtest/gtest.h>
#include <sanitized.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

namespace isthmus::process {
namespace {

// keeps R3: a child waits for no lock that another thread of its parent had.
TEST(KeptUntilExit, IsKeptInTheChildOfAForkTooWhateverOtherThreadsDoAtThatMoment) {
#if defined(ISTHMUS_ADDRESS_SANITIZED)
    GTEST_SKIP() << "before LLVM 17, AddressSanitizer's own allocator may stay locked in the child";
#endif
    std::atomic<bool> over{false};
    const auto held = std::make_shared<int>(7);
    std::thread beside([&] {
        while (!over) {
            if (held.use_count() < 1'000'000)
                keep_until_exit(held);
            else
                (void)std::make_shared<int>(7);  // has the same lock of the heap
        }
    });
    while (held.use_count() == 1) std::this_thread::yield();  // it has begun
    for (int times = 0; times < 40 && !HasFailure(); ++times) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            ::alarm(60);  // ends it where it waits
            keep_until_exit(held);
            ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status)) << "it waited for ever";
    }
    over = true;
    beside.join();
}

}  // namespace
}  // namespace isthmus::process
