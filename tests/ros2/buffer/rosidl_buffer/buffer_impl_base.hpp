// SPDX-License-Identifier: Apache-2.0
// Stands for <rosidl_buffer/buffer_impl_base.hpp> 5.2 of ROS 2 (Lyrical), which Debian does not have: the same virtual
// functions in the same order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rosidl {

template <typename T>
class BufferImplBase {
public:
    virtual ~BufferImplBase() = default;
    virtual std::string get_backend_type() const = 0;
    virtual std::size_t size() const = 0;
    virtual std::unique_ptr<BufferImplBase<T>> to_cpu() const = 0;
    virtual std::unique_ptr<BufferImplBase<T>> clone() const = 0;
};

}  // namespace rosidl
