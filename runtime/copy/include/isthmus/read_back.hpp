// SPDX-License-Identifier: Apache-2.0
// read_back: returns the content of a buffer of any memory kind as a vector. A convenience; it waits.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

namespace detail {
ISTHMUS_API Result<void> read_back_bytes(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait);
}

// Waits for the work that this runtime gave to any stream and that writes the buffer, and for nothing else; the
// driver's synchronising default stream is not used. Then reads through a host view, or copies from device memory;
// `wait` does not bound the copy itself. Intended for final results and for tests; programs that continue should copy
// on a stream (Stream::copy_to_host) or open a view of shared memory (read_on_host).
//
// Errors: capture_error (a capture is open on this thread: copy to another buffer within it, which is allowed, and read
// that buffer back after the graph has run), invalid_handle (an empty buffer), in_use (a host view writes it),
// timed_out, not_ready (Wait::never(), and the call would have to wait or to copy), device_lost.
template <class T>
Result<std::vector<T>> read_back(const TypedBuffer<T>& buffer, Wait wait = {}) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy into: use std::uint8_t");
    std::vector<T> content(buffer.size());
    if (Result<void> read = detail::read_back_bytes(buffer.state(), content.data(), wait); !read) {
        return std::move(read).error();
    }
    return content;
}

}  // namespace v0
}  // namespace isthmus
