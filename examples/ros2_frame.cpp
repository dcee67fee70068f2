// SPDX-License-Identifier: Apache-2.0
// A picture in a shared buffer as a type of ROS 2 (rclcpp::TypeAdapter): nodes of one process pass the buffer on, and
// only what leaves the process becomes a sensor_msgs::msg::Image. Without that message a stand-in takes its place;
// without rclcpp the adapter itself is not compiled.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<sensor_msgs/msg/image.hpp>)
#define HAS_MESSAGE 1
#include <sensor_msgs/msg/image.hpp>
#endif
#if __has_include(<rclcpp/type_adapter.hpp>)
#define HAS_ADAPTER 1
#include <rclcpp/type_adapter.hpp>
#endif

namespace {

#ifdef HAS_MESSAGE
using Image = sensor_msgs::msg::Image;
#else
// Stands for sensor_msgs::msg::Image: these fields have the same names and meanings.
struct Image {
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::string encoding;
    std::uint32_t step = 0;  // bytes of a row
    std::vector<std::uint8_t> data;
};
#endif

// show: frame
// What publishers and subscribers of one process exchange. Copies refer to the same pixels.
struct Frame {
    std::shared_ptr<isthmus::Buffer<std::uint8_t>> pixels;  // nullptr: no picture
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::uint32_t step = 0;
    std::string encoding;
};

// For subscribers outside of the process: waits for the GPU's work on the frame, and copies.
isthmus::Result<void> to_message(const Frame& frame, Image& image) {
    image.width = frame.width;
    image.height = frame.height;
    image.step = frame.step;
    image.encoding = frame.encoding;
    image.data.clear();
    if (frame.pixels == nullptr) return {};
    ISTHMUS_TRY(const auto view, frame.pixels->read_on_host());
    image.data.assign(view.begin(), view.end());
    return {};
}

// A message of another process. Memory of the frame that fits, and that nobody else has, is used again.
isthmus::Result<void> from_message(isthmus::Device& device, const Image& image, Frame& frame) {
    if (image.data.size() != std::size_t{image.step} * image.height || image.data.empty()) {
        return isthmus::Error(isthmus::Code::invalid_argument, "the image has not as many bytes as its rows need",
                              "look at step, height and data of the message");
    }
    if (frame.pixels == nullptr || frame.pixels.use_count() > 1 || frame.pixels->size() != image.data.size()) {
        ISTHMUS_TRY(auto made, device.allocate_shared<std::uint8_t>(image.data.size()));
        frame.pixels = std::make_shared<isthmus::Buffer<std::uint8_t>>(std::move(made));
    }
    {
        ISTHMUS_TRY(auto view, frame.pixels->write_on_host());
        std::copy(image.data.begin(), image.data.end(), view.begin());
    }
    frame.width = image.width;
    frame.height = image.height;
    frame.step = image.step;
    frame.encoding = image.encoding;
    return {};
}
// end

}  // namespace

#ifdef HAS_ADAPTER
// show: adapter
// The functions of an adapter have no place for a device, so that the process names one: main() sets it before it
// spins.
namespace frames {
inline isthmus::Device* device = nullptr;
}

template <>
struct rclcpp::TypeAdapter<Frame, sensor_msgs::msg::Image> {
    using is_specialized = std::true_type;
    using custom_type = Frame;
    using ros_message_type = sensor_msgs::msg::Image;
    // value() throws in the publisher's or the subscriber's thread.
    static void convert_to_ros_message(const custom_type& frame, ros_message_type& image) {
        to_message(frame, image).value();
    }
    static void convert_to_custom(const ros_message_type& image, custom_type& frame) {
        from_message(*frames::device, image, frame).value();
    }
};
RCLCPP_USING_CUSTOM_TYPE_AS_ROS_MESSAGE_TYPE(Frame, sensor_msgs::msg::Image);
// end
#endif

namespace {

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}

Image picture(std::uint8_t value) {
    Image image;
    image.width = 64;
    image.height = 48;
    image.step = 64;
    image.encoding = "mono8";
    image.data.assign(64 * 48, value);
    return image;
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    Frame frame;
    from_message(device, picture(10), frame).value();
    device.launch(brighten, frame.pixels->size(), *frame.pixels, 5).value();
    Image out;
    to_message(frame, out).value();
    expect(out.width == 64 && out.height == 48 && out.step == 64 && out.encoding == "mono8", "the fields are there");
    expect(out.data.size() == 64 * 48 && out.data.front() == 15 && out.data.back() == 15,
           "the message has what the GPU wrote");

    const Frame passed_on = frame;  // to a node of this process
    expect(passed_on.pixels == frame.pixels, "within the process nothing is copied");
    from_message(device, picture(20), frame).value();
    expect(passed_on.pixels != frame.pixels, "memory that another node has is left alone");
    to_message(passed_on, out).value();
    expect(out.data.front() == 15, "the other node's picture stays");
    const auto* const kept = frame.pixels.get();
    from_message(device, picture(30), frame).value();
    expect(frame.pixels.get() == kept, "memory that nobody else has is used again");

    Image wrong = picture(1);
    wrong.data.pop_back();
    expect(from_message(device, wrong, frame).code() == isthmus::Code::invalid_argument,
           "a message without all its rows");
    to_message(Frame(), out).value();
    expect(out.data.empty(), "no picture is an empty message");
#ifdef HAS_MESSAGE
    const char* const what = "sensor_msgs::msg::Image";
#else
    const char* const what = "a stand-in for sensor_msgs::msg::Image";
#endif
    std::printf("frames as %s: %s\n", what, failures == 0 ? "as expected" : "not as expected");
    return failures == 0 ? 0 : 1;
}
