// Copies and fills between the sides of a stream: what Stream's own functions share.
#pragma once

#include <isthmus/copy.hpp>
#include <isthmus/result.hpp>

#include "copy_plan.hpp"
#include "order_range.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus::inline v0::detail {

struct BufferState;
struct DeviceState;
struct StreamState;

// One side: a buffer, or memory of the caller's.
struct CopySide {
    std::shared_ptr<BufferState> buffer;
    std::uintptr_t span = 0;
    MemoryKind span_kind = MemoryKind::host;
};

struct CopyJob {
    CopySide to, from;
    rules::CopyShape shape;
};

// Each expects a checked job. `whole`: every byte of the buffer is written.
Result<void> run_copy(StreamState& stream, const CopyJob& job);
bool writes_whole(const BufferState& buffer, const rules::CopyShape& shape);
// What the shape touches on one of its sides.
rules::ByteRange bytes_of(const rules::CopyShape& shape, const rules::CopyStride& side) noexcept;
rules::CopySideFacts facts_of(const DeviceState& carrier, const CopySide& side);
// Where the driver finds the first byte of it, before the shape's offset.
std::uint64_t driver_address(const CopySide& side, bool host_memory);

// In the calling thread, through host scopes.
Result<void> copy_on_host(const CopyJob& job);
// Through pinned pieces.
Result<void> bounce_up(StreamState& stream, const CopyJob& job);
Result<void> bounce_down(StreamState& stream, const CopyJob& job);

// Later work of one stream waits for what the other was given so far; the host waits for neither.
Result<void> order_behind(StreamState& later, StreamState& earlier);
// The stream on which a device's own copies run when a caller's stream cannot carry them. Made by its first use.
std::shared_ptr<StreamState> carrier_stream(DeviceState& device);

// What the driver is told of one copy; rows, slices and pitches in bytes.
struct DriverCopy {
    std::uint64_t to = 0;
    std::uint64_t from = 0;
    bool to_host = false;
    bool from_host = false;
    bool between = false;
    int to_ordinal = -1;
    int from_ordinal = -1;
    platform::CopyDirection direction = platform::CopyDirection::device_to_device;
};
// As few driver calls as the shape allows; expects to be called as an Operation's action.
platform::Status give_to_driver(StreamState& stream, const DriverCopy& copy, const rules::CopyShape& shape);

// Is the pinned or registered memory of the caller's known as such? Foreign memory is asked about once.
MemoryKind kind_of_span(DeviceState& device, std::uintptr_t address, std::size_t bytes);

}  // namespace isthmus::inline v0::detail
