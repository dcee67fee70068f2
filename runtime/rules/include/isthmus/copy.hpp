// How a copy or a fill lies in its buffers: layouts and boxes in elements; rows and slices may have gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace isthmus::inline v0 {

namespace detail {
struct BufferState;
}

// Where a box lies on one side, in elements. A pitch of 0: rows, or slices, follow each other without a gap.
struct CopyLayout {
    std::size_t offset = 0;       // of the first element
    std::size_t row_pitch = 0;    // from one row to the next; at least the width
    std::size_t slice_pitch = 0;  // from one slice to the next; slices may not overlap themselves
};
// What is copied or filled, in elements. No width, height or depth: nothing.
struct CopyBox {
    std::size_t width = 0;
    std::size_t height = 1;
    std::size_t depth = 1;
};

// How a copy goes. Values are stable.
enum class CopyPath : std::uint8_t {
    on_host = 0,          // the calling thread copies, after waiting for what uses the buffers
    driver = 1,           // ordered on the stream; the host goes on
    between_devices = 2,  // ordered on the stream; the driver stages what the devices do not see of each other
    bounce_up = 3,        // pageable memory through pinned pieces: the source has been read when the call returns
    bounce_down = 4,      // … the destination has been written when the call returns
    refuse = 5,
};

struct CopyExplanation {
    CopyPath path = CopyPath::refuse;
    std::string_view reason;  // static storage
};

namespace detail {

// A buffer, or memory of the caller's.
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
    const void* value = nullptr;  // element_bytes of it
};

}  // namespace detail
}  // namespace isthmus::inline v0
