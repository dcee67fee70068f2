// SPDX-License-Identifier: Apache-2.0
// A picture in a shared buffer as a type of ROS 2 (docs/ros2.md). Nodes of one process pass the buffer on; what leaves
// the process becomes a sensor_msgs::msg::Image. Header only, with libisthmus. Without <rclcpp/type_adapter.hpp> and
// <sensor_msgs/msg/image.hpp> the adapter is left out, and the two functions take any type with the message's fields.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#if __has_include(<rclcpp/type_adapter.hpp>) && __has_include(<sensor_msgs/msg/image.hpp>)
#include <rclcpp/type_adapter.hpp>
#include <sensor_msgs/msg/image.hpp>
#define ISTHMUS_ROS2_ADAPTER 1
#endif

namespace isthmus {
inline namespace v0 {
namespace ros2 {

// What publishers and subscribers of one process exchange. Copies refer to the same pixels: a node that writes them
// takes care that no other one reads them. Any thread may have one; one thread at a time changes it.
struct ImageFrame {
    std::shared_ptr<Buffer<std::uint8_t>> pixels{};  // step × height bytes; nullptr: no picture
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::uint32_t step = 0;  // bytes of a row, with its padding
    std::string encoding{};  // as sensor_msgs names it: "mono8"
    bool is_bigendian = false;
    std::int32_t stamp_sec = 0;
    std::uint32_t stamp_nanosec = 0;
    std::string frame_id{};
};

namespace detail {
template <class Image>
concept HasHeader = requires(Image& image) {
    image.header.stamp.sec = 0;
    image.header.stamp.nanosec = 0u;
    image.header.frame_id = std::string();
};
}  // namespace detail

// For subscribers outside of the process: waits for device work that writes the pixels, and copies them. Errors:
// invalid_argument (the pixels are not step × height bytes), those of read_on_host(); the message then has no defined
// content.
template <class Image>
Result<void> to_message(const ImageFrame& frame, Image& image) {
    if (frame.pixels != nullptr && frame.pixels->size() != std::size_t{frame.step} * frame.height) {
        return Error(Code::invalid_argument,
                     "the frame has " + std::to_string(frame.pixels->size()) + " bytes, and " +
                         std::to_string(frame.height) + " rows of " + std::to_string(frame.step),
                     "set step and height as the pixels lie");
    }
    image.width = frame.width;
    image.height = frame.height;
    image.step = frame.step;
    image.encoding = frame.encoding;
    if constexpr (requires { image.is_bigendian; }) image.is_bigendian = frame.is_bigendian ? 1 : 0;
    if constexpr (detail::HasHeader<Image>) {
        image.header.stamp.sec = frame.stamp_sec;
        image.header.stamp.nanosec = frame.stamp_nanosec;
        image.header.frame_id = frame.frame_id;
    }
    image.data.clear();
    if (frame.pixels == nullptr) return {};
    Result<HostView<const std::uint8_t>> view = frame.pixels->read_on_host();
    if (!view) return std::move(view).error();
    image.data.assign(view->begin(), view->end());
    return {};
}

// A message of another process, into shared memory that this device and the CPU use. Memory of the frame that has the
// right size, and that no other frame refers to, is used again. Errors: invalid_argument (the message has not as many
// bytes as its rows need, or rows of fewer bytes than pixels), those of Device::allocate_shared() and write_on_host();
// the frame then stays as it was, but for pixels that were being written.
template <class Image>
Result<void> from_message(Device& device, const Image& image, ImageFrame& frame) {
    const std::size_t bytes = std::size_t{image.step} * image.height;
    if (bytes == 0 || image.data.size() != bytes) {
        return Error(Code::invalid_argument,
                     "the image has " + std::to_string(image.data.size()) + " bytes, and " +
                         std::to_string(image.height) + " rows of " + std::to_string(image.step),
                     "look at step, height and data of the message");
    }
    if (image.step < image.width) {
        return Error(Code::invalid_argument,
                     "the image has rows of " + std::to_string(image.step) + " bytes for " +
                         std::to_string(image.width) + " pixels",
                     "look at step and width of the message");
    }
    std::shared_ptr<Buffer<std::uint8_t>> pixels = frame.pixels;
    // This copy is the second one.
    if (pixels == nullptr || pixels.use_count() > 2 || pixels->size() != bytes) {
        Result<Buffer<std::uint8_t>> made = device.allocate_shared<std::uint8_t>(bytes);
        if (!made) return std::move(made).error();
        pixels = std::make_shared<Buffer<std::uint8_t>>(std::move(made).value());
    }
    {
        Result<HostView<std::uint8_t>> view = pixels->write_on_host();
        if (!view) return std::move(view).error();
        std::copy(image.data.begin(), image.data.end(), view->begin());
    }
    frame.pixels = std::move(pixels);
    frame.width = image.width;
    frame.height = image.height;
    frame.step = image.step;
    frame.encoding = image.encoding;
    if constexpr (requires { image.is_bigendian; }) frame.is_bigendian = image.is_bigendian != 0;
    if constexpr (detail::HasHeader<Image>) {
        frame.stamp_sec = image.header.stamp.sec;
        frame.stamp_nanosec = image.header.stamp.nanosec;
        frame.frame_id = image.header.frame_id;
    }
    return {};
}

// The functions of an adapter have no place for a device: a process sets this one before it spins, and keeps the
// runtime until it has stopped.
inline std::atomic<Device*> adapter_device{nullptr};

}  // namespace ros2
}  // namespace v0
}  // namespace isthmus

#ifdef ISTHMUS_ROS2_ADAPTER
// rclcpp::TypeAdapter<isthmus::ros2::ImageFrame, sensor_msgs::msg::Image> for publishers and subscribers. Failures are
// exceptions (isthmus::BadResult) in the thread of the publisher or the subscriber, as rclcpp's own are.
template <>
struct rclcpp::TypeAdapter<isthmus::ros2::ImageFrame, sensor_msgs::msg::Image> {
    using is_specialized = std::true_type;
    using custom_type = isthmus::ros2::ImageFrame;
    using ros_message_type = sensor_msgs::msg::Image;
    static void convert_to_ros_message(const custom_type& frame, ros_message_type& image) {
        isthmus::ros2::to_message(frame, image).value();
    }
    static void convert_to_custom(const ros_message_type& image, custom_type& frame) {
        isthmus::Device* const device = isthmus::ros2::adapter_device.load(std::memory_order_acquire);
        if (device == nullptr) {
            isthmus::Result<void>(isthmus::Error(isthmus::Code::no_device, "the adapter has no device",
                                                 "set isthmus::ros2::adapter_device before spinning"))
                .value();
        }
        isthmus::ros2::from_message(*device, image, frame).value();
    }
};
RCLCPP_USING_CUSTOM_TYPE_AS_ROS_MESSAGE_TYPE(isthmus::ros2::ImageFrame, sensor_msgs::msg::Image);
#endif
