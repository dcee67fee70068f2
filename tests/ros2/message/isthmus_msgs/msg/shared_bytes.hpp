// SPDX-License-Identifier: Apache-2.0
// Stands for the message that ROS 2 generates, where its generator is missing: the same fields.
#pragma once

#include <array>
#include <cstdint>

namespace isthmus_msgs::msg {

struct SharedBytes {
    std::uint64_t bytes = 0;
    std::int32_t pid = 0;
    std::int32_t fd = 0;
    std::uint64_t file = 0;
    std::array<std::uint8_t, 128> memory{};
};

}  // namespace isthmus_msgs::msg
