// SPDX-License-Identifier: Apache-2.0
// Two shared libraries with a kernel of the same name: each runs its own.
#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

extern "C" int launch_of_library_one(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data);
extern "C" int launch_of_library_two(isthmus::Stream& stream, isthmus::Buffer<std::int32_t>& data);

namespace {

using namespace isthmus;

// keeps W9
TEST(SameName, EachSharedLibraryRunsItsOwnKernel) {
    Runtime runtime = Runtime::open().value();
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        SCOPED_TRACE(std::string(device.name()));
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(100).value();
        for (std::int32_t& value : data.write_on_host().value()) value = 0;
        ASSERT_EQ(launch_of_library_one(device.stream(), data), 0);
        EXPECT_EQ(data.read_on_host().value()[99], 1);
        ASSERT_EQ(launch_of_library_two(device.stream(), data), 0);
        EXPECT_EQ(data.read_on_host().value()[99], 21);
        ASSERT_EQ(launch_of_library_one(device.stream(), data), 0);
        EXPECT_EQ(data.read_on_host().value()[99], 22);
    }
}

}  // namespace
