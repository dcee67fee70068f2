// SPDX-License-Identifier: Apache-2.0
// Copies and fills: the code that Stream's functions share.
#pragma once

#include <isthmus/copy.hpp>
#include <isthmus/result.hpp>

#include "copy_plan.hpp"
#include "order_range.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;
struct StreamState;

// One side: a buffer, or the caller's own memory.
struct CopySide {
    std::shared_ptr<BufferState> buffer;
    std::uintptr_t span = 0;
    MemoryKind span_kind = MemoryKind::host;
};

struct CopyJob {
    CopySide to, from;
    rules::CopyShape shape;
};

// run_copy() expects a checked job. writes_whole(): true if the shape writes every byte of the buffer.
Result<void> run_copy(StreamState& stream, const CopyJob& job);
bool writes_whole(const BufferState& buffer, const rules::CopyShape& shape);
// The bytes that the shape touches on one side.
rules::ByteRange bytes_of(const rules::CopyShape& shape, const rules::CopyStride& side) noexcept;
rules::CopySideFacts facts_of(const DeviceState& carrier, const CopySide& side);
// The driver's address of the side's first byte, before the shape's offset.
std::uint64_t driver_address(const CopySide& side, bool host_memory);

// Copies on the calling thread, through host views.
Result<void> copy_on_host(const CopyJob& job);
ArgumentUse writing(const CopySide& side, const rules::CopyShape& shape);  // the use of a copy's destination
// The part of a shape without gaps behind its first `done` bytes.
rules::CopyShape behind(rules::CopyShape shape, std::size_t done);
// Gives pageable memory to the driver where rules::pageable_way() says so. `host`: the address of the pageable side.
// Returns how many bytes were copied; the rest is for bounce buffers.
Result<std::size_t> staged_by_driver(StreamState& stream, const CopyJob& job, bool up, std::byte* host);
// Pageable memory to the device (up), or back (down): by the driver, through bounce buffers, or first the one, then the
// other.
Result<void> bounce_up(StreamState& stream, const CopyJob& job);
Result<void> bounce_down(StreamState& stream, const CopyJob& job);

// Later work of one stream waits for the work given to the other so far; the host does not wait.
Result<void> order_behind(StreamState& later, StreamState& earlier);
// The stream for a device's own copies, used if the caller's stream cannot carry them. Created at its first use.
std::shared_ptr<StreamState> carrier_stream(DeviceState& device);

// The driver's parameters for one copy. Rows, slices and pitches are in bytes.
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
// Makes as few driver calls as the shape allows. Call it as an Operation's action.
platform::Status give_to_driver(StreamState& stream, const DriverCopy& copy, const rules::CopyShape& shape);

// The kind of the caller's memory: pinned, registered or write-combined if known as such, otherwise host. Foreign
// pinned memory is looked up once.
MemoryKind kind_of_span(DeviceState& device, std::uintptr_t address, std::size_t bytes);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
