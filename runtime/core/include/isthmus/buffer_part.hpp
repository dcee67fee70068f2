// SPDX-License-Identifier: Apache-2.0
// BufferPart<T>: a range of a buffer's elements, for kernels and host views. Uses of different parts do not exclude
// each other.
#pragma once

#include <isthmus/concurrent_view.hpp>
#include <isthmus/export.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
// A part without its element type. Keeps the memory alive, as a view does; after the buffer's release() it answers
// Code::invalid_handle.
class ISTHMUS_API PartBase {
public:
    std::size_t size_bytes() const noexcept { return bytes_; }
    std::size_t first_byte() const noexcept { return first_byte_; }  // offset within the buffer
    MemoryKind kind() const noexcept;
    // Whether parts of this memory are used separately. Not if it is staged, or managed memory that CPU and GPU use in
    // turn (89=0): then it changes sides as a whole, and using a part is using the buffer. Nor in a MirroredBuffer.
    bool independent() const noexcept;
    const std::shared_ptr<BufferState>& state() const noexcept { return buffer_; }

protected:
    PartBase(std::shared_ptr<BufferState> buffer, std::size_t first_byte, std::size_t bytes) noexcept
        : buffer_(std::move(buffer)), first_byte_(first_byte), bytes_(bytes) {}
    struct OpenedView {
        ViewScope scope;
        void* data;
    };
    Result<OpenedView> open_view(ArgumentUse use, Wait wait) const;
    Result<ConcurrentScope> open_concurrent(Wait wait) const;

private:
    std::shared_ptr<BufferState> buffer_;
    std::size_t first_byte_;
    std::size_t bytes_;
};
// Checks that the part exists. From then on the buffer tracks uses per part.
ISTHMUS_API Result<void> make_part(const std::shared_ptr<BufferState>& buffer, std::size_t first, std::size_t count,
                                   std::size_t element_bytes);
}  // namespace detail

// Made by Buffer::part(). A value: copies name the same part. T is const for a part that is only read. Any thread may
// use it.
template <class T>
class BufferPart : public detail::PartBase {
public:
    using element_type = T;
    BufferPart(std::shared_ptr<detail::BufferState> buffer, std::size_t first, std::size_t count) noexcept
        : PartBase(std::move(buffer), first * sizeof(T), count * sizeof(T)) {}

    std::size_t size() const noexcept { return size_bytes() / sizeof(T); }   // elements
    std::size_t first() const noexcept { return first_byte() / sizeof(T); }  // index of its first element in the buffer

    // As the buffer's functions, for these elements: uses of other elements are neither waited for nor refused.
    Result<HostView<const T>> read_on_host(Wait wait = {}) const { return open<const T>(ArgumentUse::read, wait); }
    Result<HostView<T>> write_on_host(Wait wait = {}) const requires(!std::is_const_v<T>) {
        return open<T>(ArgumentUse::write, wait);
    }
    Result<HostView<T>> read_write_on_host(Wait wait = {}) const requires(!std::is_const_v<T>) {
        return open<T>(ArgumentUse::read_write, wait);
    }
    Result<ConcurrentView<T>> concurrent_on_host(Wait wait = {}) const requires(!std::is_const_v<T>) {
        Result<detail::ConcurrentScope> scope = open_concurrent(wait);
        if (!scope) return std::move(scope).error();
        return ConcurrentView<T>(std::move(scope).value());
    }

private:
    template <class V>
    Result<HostView<V>> open(ArgumentUse use, Wait wait) const {
        Result<OpenedView> opened = open_view(use, wait);
        if (!opened) return std::move(opened).error();
        return HostView<V>(std::move(opened->scope), static_cast<V*>(opened->data), size());
    }
};

}  // namespace v0
}  // namespace isthmus
