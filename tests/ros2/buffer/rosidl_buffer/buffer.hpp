// SPDX-License-Identifier: Apache-2.0
// Stands for <rosidl_buffer/buffer.hpp> of ROS 2: what a message field of another backend can do. The real one has a
// vector's functions, too, for the CPU's backend alone.
#pragma once

#include <rosidl_buffer/buffer_impl_base.hpp>
#include <rosidl_buffer/cpu_buffer_impl.hpp>

#include <utility>
#include <vector>

namespace rosidl {

template <typename T, typename Allocator = std::allocator<T>>
class Buffer {
public:
    Buffer() : impl_(std::make_unique<CpuBufferImpl<T>>()) {}
    explicit Buffer(std::unique_ptr<BufferImplBase<T>> impl) : impl_(std::move(impl)) {}
    Buffer(const Buffer& other) : impl_(other.impl_->clone()) {}
    Buffer(Buffer&& other) noexcept : impl_(std::move(other.impl_)) {
        other.impl_ = std::make_unique<CpuBufferImpl<T>>();
    }
    Buffer& operator=(Buffer other) noexcept {
        std::swap(impl_, other.impl_);
        return *this;
    }
    std::size_t size() const { return impl_->size(); }
    std::vector<T> to_vector() const { return static_cast<const CpuBufferImpl<T>&>(*impl_->to_cpu()).get_storage(); }
    std::string get_backend_type() const { return impl_->get_backend_type(); }
    const BufferImplBase<T>* get_impl() const { return impl_.get(); }

private:
    std::unique_ptr<BufferImplBase<T>> impl_;
};

}  // namespace rosidl
