// SPDX-License-Identifier: Apache-2.0
// A library without the component real_time: no thread is prepared, and nothing is counted or locked.
#include "left_out.hpp"

#include <array>

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("real_time", answer);
}

TEST(RealTimeLeftOut, NothingIsDone) {
    const std::array<char, 64> memory{};
    EXPECT_TRUE(refused(prepare_thread({})));
    EXPECT_TRUE(refused(LockedMemory::lock(memory.data(), memory.size())));
    EXPECT_TRUE(refused(thread_counts()));
    EXPECT_TRUE(refused(cpus_near(conformance::runtime().default_device())));
}

}  // namespace
}  // namespace left_out
