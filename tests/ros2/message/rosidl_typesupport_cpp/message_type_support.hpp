// SPDX-License-Identifier: Apache-2.0
// Stands for ROS 2's header of that name, where Debian's packages are missing.
#pragma once

struct rosidl_message_type_support_t {
    const char* typesupport_identifier;
};

namespace rosidl_typesupport_cpp {

template <typename T>
const rosidl_message_type_support_t* get_message_type_support_handle();

}  // namespace rosidl_typesupport_cpp
