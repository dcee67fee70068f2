// SPDX-License-Identifier: Apache-2.0
// Stands for <rosidl_buffer_backend/buffer_backend.hpp> 5.2 of ROS 2 (Lyrical), which Debian does not have: the same
// virtual functions in the same order.
#pragma once

#include <rmw/topic_endpoint_info.h>
#include <rosidl_typesupport_cpp/message_type_support.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rosidl {

inline constexpr std::size_t kMaxBufferDescriptorSize = 4096;

class BufferBackend {
public:
    virtual ~BufferBackend() = default;
    virtual std::string get_backend_type() const = 0;
    virtual std::string get_backend_metadata() const { return ""; }
    virtual const rosidl_message_type_support_t* get_descriptor_type_support() const = 0;
    virtual std::shared_ptr<void> create_empty_descriptor() const = 0;
    virtual std::shared_ptr<void> create_descriptor_with_endpoint(const void* impl,
                                                                  const rmw_topic_endpoint_info_t& endpoint) const = 0;
    virtual std::unique_ptr<void, void (*)(void*)> from_descriptor_with_endpoint(
        const void* descriptor, const rmw_topic_endpoint_info_t& endpoint) const = 0;
    virtual void on_creating_endpoint(const rmw_topic_endpoint_info_t&) const {}
    virtual std::pair<bool, std::vector<std::set<std::uint32_t>>> on_discovering_endpoint(
        const rmw_topic_endpoint_info_t&, const std::vector<rmw_topic_endpoint_info_t>&,
        const std::unordered_map<std::string, std::string>&) {
        return {true, {}};
    }
};

}  // namespace rosidl
