// SPDX-License-Identifier: Apache-2.0
// A picture in a shared buffer as a type of ROS 2 (docs/ros2.md): what the adapter of <isthmus/ros2.hpp> does with a
// message. Without the header of sensor_msgs::msg::Image a stand-in takes its place.
#include <isthmus/isthmus.hpp>
#include <isthmus/ros2.hpp>

#include "brighten.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#if __has_include(<sensor_msgs/msg/image.hpp>)
#define HAS_MESSAGE 1
#include <sensor_msgs/msg/image.hpp>
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
    const Image message = picture(10);
    Image out;
    // show: convert
    isthmus::ros2::ImageFrame frame;
    isthmus::ros2::from_message(device, message, frame).value();  // a message of another process
    device.launch(brighten, frame.pixels->size(), *frame.pixels, 5).value();
    const isthmus::ros2::ImageFrame passed_on = frame;  // to a node of this process: the same pixels
    isthmus::ros2::to_message(passed_on, out).value();  // to another process: waits, and copies
    // end
    expect(passed_on.pixels == frame.pixels, "within the process nothing is copied");
    expect(out.width == 64 && out.height == 48 && out.step == 64 && out.encoding == "mono8", "the fields are there");
    expect(out.data.size() == 64 * 48 && out.data.front() == 15 && out.data.back() == 15,
           "the message has what the GPU wrote");
    isthmus::ros2::from_message(device, picture(20), frame).value();
    expect(passed_on.pixels != frame.pixels, "memory that another node has is left alone");
    Image wrong = picture(1);
    wrong.data.pop_back();
    expect(isthmus::ros2::from_message(device, wrong, frame).code() == isthmus::Code::invalid_argument,
           "a message without all its rows");
#ifdef HAS_MESSAGE
    const char* const what = "sensor_msgs::msg::Image";
#else
    const char* const what = "a stand-in for sensor_msgs::msg::Image";
#endif
    std::printf("frames as %s: %s\n", what, failures == 0 ? "as expected" : "not as expected");
    return failures == 0 ? 0 : 1;
}
