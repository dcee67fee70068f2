// SPDX-License-Identifier: Apache-2.0
// Layouts, boxes and paths of copies and fills. Units are elements; rows and slices may have gaps between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct BufferState;
}

// Position of a box in one buffer, in elements. A pitch of 0: rows (or slices) are contiguous.
struct CopyLayout {
    std::size_t offset = 0;       // of the first element
    std::size_t row_pitch = 0;    // from one row to the next, at least the width
    std::size_t slice_pitch = 0;  // from one slice to the next; slices may not overlap
};
// Size of the box to copy or fill, in elements. A width, height or depth of 0: the box is empty.
struct CopyBox {
    std::size_t width = 0;
    std::size_t height = 1;
    std::size_t depth = 1;
};

// How a copy is carried out. Values are stable.
enum class CopyPath : std::uint8_t {
    on_host = 0,          // the calling thread copies, after waiting for the device work that uses the buffers
    driver = 1,           // ordered on the stream; the host does not wait
    between_devices = 2,  // ordered on the stream; the driver stages memory that the devices cannot reach
    bounce_up = 3,        // pageable source, through pinned memory: it has been read when the call returns
    bounce_down = 4,      // pageable destination, through pinned memory: it has been written when the call returns
    refuse = 5,
};

struct CopyExplanation {
    CopyPath path = CopyPath::refuse;
    std::string_view reason;  // static storage
};

namespace detail {

// One side of a copy: a buffer, or the caller's own memory (span).
struct CopyEnd {
    const std::shared_ptr<BufferState>* buffer = nullptr;
    std::uintptr_t span = 0;
    std::size_t span_elements = 0;
    CopyLayout layout;
};
struct CopyRequest {
    CopyEnd to, from;
    CopyBox box;
    std::size_t element_bytes = 1;
};
inline CopyEnd end_of(const void* span, std::size_t elements, const CopyLayout& layout) {
    return {nullptr, reinterpret_cast<std::uintptr_t>(span), elements, layout};
}
struct FillRequest {
    const std::shared_ptr<BufferState>& to;
    CopyLayout layout;
    CopyBox box;
    std::size_t element_bytes = 1;
    const void* value = nullptr;  // points to element_bytes bytes
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
