// SPDX-License-Identifier: Apache-2.0
// Stands for <rosidl_buffer/cpu_buffer_impl.hpp> of ROS 2: bytes in a vector.
#pragma once

#include <rosidl_buffer/buffer_impl_base.hpp>

#include <vector>

namespace rosidl {

template <typename T>
class CpuBufferImpl : public BufferImplBase<T> {
public:
    std::vector<T>& get_storage() { return all_; }
    const std::vector<T>& get_storage() const { return all_; }
    std::string get_backend_type() const override { return "cpu"; }
    std::size_t size() const override { return all_.size(); }
    std::unique_ptr<BufferImplBase<T>> to_cpu() const override { return clone(); }
    std::unique_ptr<BufferImplBase<T>> clone() const override {
        auto copy = std::make_unique<CpuBufferImpl<T>>();
        copy->all_ = all_;
        return copy;
    }

private:
    std::vector<T> all_{};
};

}  // namespace rosidl
