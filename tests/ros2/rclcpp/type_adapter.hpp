// SPDX-License-Identifier: Apache-2.0
// Stands for <rclcpp/type_adapter.hpp> of ROS 2 (Galactic and newer), which Debian does not have: the templates that a
// type adapter specialises, with the same names and parameters.
#pragma once

#include <type_traits>

namespace rclcpp {

template <class Custom, class Message = void, class Enable = void>
struct TypeAdapter {
    using is_specialized = std::false_type;
    using custom_type = Custom;
    using ros_message_type = Custom;
};
template <class Custom>
struct ImplicitTypeAdapter {
    using is_specialized = std::false_type;
};
template <class Custom>
struct TypeAdapter<Custom, void, std::enable_if_t<ImplicitTypeAdapter<Custom>::is_specialized::value>>
    : ImplicitTypeAdapter<Custom> {};

}  // namespace rclcpp

#define RCLCPP_USING_CUSTOM_TYPE_AS_ROS_MESSAGE_TYPE(CustomType, ROSMessageType)                              \
    template <>                                                                                               \
    struct rclcpp::ImplicitTypeAdapter<CustomType> : public rclcpp::TypeAdapter<CustomType, ROSMessageType> { \
        static_assert(is_specialized::value, "no adapter for this pair of types");                            \
    }
