// SPDX-License-Identifier: Apache-2.0
// The names of streams, with a tool that NVTX itself loads.
// keeps O2
#include <isthmus/nvtx_streams.hpp>

#include "nvtx_tool.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;
using nvtx_tool::told;

TEST(NvtxStreams, HaveTheirNumberOrTheNameThatIsGiven) {
    Runtime runtime = Runtime::open({}).value();
    Device& device = runtime.default_device();
    nvtxMarkA("loads the tool");
    (void)told();
    const Stream first = device.create_stream().value();
    const Stream second = device.create_stream().value();
    ASSERT_TRUE(name_in_nvtx(first).ok());
    ASSERT_TRUE(name_in_nvtx(second, "camera").ok());
    const std::string expected = "stream isthmus stream " + std::to_string(first.id()) + "\nstream camera\n";
    EXPECT_EQ(told(), device.is_cpu() ? "" : expected);
}

}  // namespace
