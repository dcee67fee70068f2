// SPDX-License-Identifier: Apache-2.0
// A library without the component channel: neither end of a channel can be made.
#include "left_out.hpp"

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("channel", answer);
}

TEST(ChannelLeftOut, NothingIsMade) {
    EXPECT_TRUE(refused(create_channel_pair()));
    EXPECT_TRUE(refused(connect_channel("")));
    EXPECT_TRUE(refused(Channel::adopt(FileDescriptor(), ChannelSide::offering)));
    EXPECT_TRUE(refused(Listener::create("")));
}

}  // namespace
}  // namespace left_out
