// SPDX-License-Identifier: Apache-2.0
// Stands for the message that ROS 2 generates, where its generator is missing: the same fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sensor_msgs::msg {

struct Image {
    struct {
        struct {
            std::int32_t sec = 0;
            std::uint32_t nanosec = 0;
        } stamp{};
        std::string frame_id{};
    } header{};
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::string encoding{};
    std::uint8_t is_bigendian = 0;
    std::uint32_t step = 0;
    std::vector<std::uint8_t> data{};
};

}  // namespace sensor_msgs::msg
