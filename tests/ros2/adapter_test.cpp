// SPDX-License-Identifier: Apache-2.0
// The type adapter for ROS 2: with the message that Debian's generator makes, or a stand-in, and a stand-in for rclcpp.
#include <isthmus/ros2.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/stream.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <type_traits>

namespace isthmus {
namespace {

using ros2::ImageFrame;
using sensor_msgs::msg::Image;
using Adapter = rclcpp::TypeAdapter<ImageFrame>;  // as create_publisher<ImageFrame>() finds it

static_assert(Adapter::is_specialized::value);
static_assert(std::is_same_v<Adapter::ros_message_type, Image>);

Image picture(std::uint8_t value) {
    Image image;
    image.header.stamp.sec = 17;
    image.header.stamp.nanosec = 23;
    image.header.frame_id = "camera";
    image.width = 62;
    image.height = 48;
    image.step = 64;
    image.encoding = "mono8";
    image.is_bigendian = 1;
    image.data.assign(64 * 48, value);
    return image;
}

class Ros2 : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(device.is_cpu(), std::getenv("ISTHMUS_SIM") == nullptr);
        ros2::adapter_device = &device;
    }
    void TearDown() override { ros2::adapter_device = nullptr; }
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
};

TEST_F(Ros2, AMessageComesBackWithEachField) {
    ImageFrame frame;
    Adapter::convert_to_custom(picture(10), frame);
    ASSERT_NE(frame.pixels, nullptr);
    Stream stream = device.create_stream().value();
    ASSERT_TRUE(stream.fill(*frame.pixels, std::uint8_t{15}));  // what the device writes is in the message
    Image image;
    image.data.assign(7, 1);
    Adapter::convert_to_ros_message(frame, image);
    const Image wanted = picture(15);
    EXPECT_EQ(image.header.stamp.sec, 17);
    EXPECT_EQ(image.header.stamp.nanosec, 23u);
    EXPECT_EQ(image.header.frame_id, "camera");
    EXPECT_EQ(image.width, 62u);
    EXPECT_EQ(image.height, 48u);
    EXPECT_EQ(image.step, 64u);
    EXPECT_EQ(image.encoding, "mono8");
    EXPECT_EQ(image.is_bigendian, 1);
    EXPECT_EQ(image.data, wanted.data);
    Adapter::convert_to_ros_message(ImageFrame(), image);
    EXPECT_TRUE(image.data.empty()) << "no picture is an empty message";
    EXPECT_EQ(image.header.frame_id, "");
}

TEST_F(Ros2, MemoryIsUsedAgainOnlyWhereNoOtherNodeHasIt) {
    ImageFrame frame;
    Adapter::convert_to_custom(picture(10), frame);
    const ImageFrame passed_on = frame;
    EXPECT_EQ(passed_on.pixels, frame.pixels) << "within the process nothing is copied";
    Adapter::convert_to_custom(picture(20), frame);
    EXPECT_NE(passed_on.pixels, frame.pixels);
    Image image;
    Adapter::convert_to_ros_message(passed_on, image);
    EXPECT_EQ(image.data, picture(10).data);
    const auto* const kept = frame.pixels.get();
    Adapter::convert_to_custom(picture(30), frame);
    EXPECT_EQ(frame.pixels.get(), kept);
    Image larger = picture(40);
    larger.height = 96;
    larger.data.resize(64 * 96, 40);
    Adapter::convert_to_custom(larger, frame);
    EXPECT_EQ(frame.pixels->size(), 64u * 96);
}

TEST_F(Ros2, AMessageWithoutAllItsRowsIsRefusedAndTheFrameStays) {
    ImageFrame frame;
    ASSERT_TRUE(ros2::from_message(device, picture(10), frame));
    const ImageFrame before = frame;
    Image wrong = picture(1);
    wrong.data.pop_back();
    EXPECT_EQ(ros2::from_message(device, wrong, frame).code(), Code::invalid_argument);
    wrong = picture(1);
    wrong.height = 0xffffffff;  // times step beyond 32 bits
    wrong.step = 0x80000000;
    EXPECT_EQ(ros2::from_message(device, wrong, frame).code(), Code::invalid_argument);
    EXPECT_EQ(ros2::from_message(device, Image(), frame).code(), Code::invalid_argument);
    wrong = picture(1);
    wrong.width = wrong.step + 1;
    EXPECT_EQ(ros2::from_message(device, wrong, frame).code(), Code::invalid_argument);
    EXPECT_EQ(frame.pixels, before.pixels);
    EXPECT_EQ(frame.width, 62u);
    EXPECT_THROW(Adapter::convert_to_custom(wrong, frame), BadResult);
    ros2::adapter_device = nullptr;
    EXPECT_THROW(Adapter::convert_to_custom(picture(1), frame), BadResult);
}

TEST_F(Ros2, AFrameWhosePixelsAreNotItsRowsIsNoMessage) {
    ImageFrame frame;
    ASSERT_TRUE(ros2::from_message(device, picture(10), frame));
    Image image;
    frame.height = 49;
    EXPECT_EQ(ros2::to_message(frame, image).code(), Code::invalid_argument);
    EXPECT_THROW(Adapter::convert_to_ros_message(frame, image), BadResult);
    frame.height = 48;
    frame.step = 62;
    EXPECT_EQ(ros2::to_message(frame, image).code(), Code::invalid_argument);
    frame.step = 64;
    EXPECT_TRUE(ros2::to_message(frame, image));
}

}  // namespace
}  // namespace isthmus
