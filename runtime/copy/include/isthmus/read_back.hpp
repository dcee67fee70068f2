// read_back: what a buffer holds, as a vector, whatever its memory. Convenience; it waits.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace isthmus::inline v0 {

namespace detail {
ISTHMUS_API Result<void> read_back_bytes(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait);
}

// Waits for what this runtime gave to any stream that writes the buffer, and for nothing else: no stream of the
// driver's own that would hold up others takes part. Then views the buffer, or copies out of device memory, which
// takes as long as it takes. For results at the end of a computation and for tests; programs that run on copy on
// a stream (Stream::copy_to_host) or view shared memory (read_on_host).
// Errors: capture_error (a capture is open on this thread: copy into another buffer within it, and read that back when
// the graph has run; a copy there is fine), invalid_handle (an empty buffer), in_use (a host view writes it),
// timed_out, not_ready (Wait::never(), and it would have to wait, or to copy), device_lost.
template <class T>
Result<std::vector<T>> read_back(const TypedBuffer<T>& buffer, Wait wait = {}) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy into: use std::uint8_t");
    std::vector<T> content(buffer.size());
    if (Result<void> read = detail::read_back_bytes(buffer.state(), content.data(), wait); !read) {
        return std::move(read).error();
    }
    return content;
}

}  // namespace isthmus::inline v0
