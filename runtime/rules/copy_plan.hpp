// SPDX-License-Identifier: Apache-2.0
// Two sides of a copy → the stream that carries it, its path and why; and which shapes may be copied. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <platform/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus::rules {

// The owner of the memory, relative to the stream that carries the copy.
enum class CopyOwner : std::uint8_t { same, other_gpu, cpu_device, caller };

struct CopySideFacts {
    MemoryKind kind = MemoryKind::unknown;
    CopyOwner owner = CopyOwner::same;
    LaunchPath path = LaunchPath::pass;  // launch path of the buffer
    bool reached = false;                // can the stream's device access it in place?
};

// The stream on which the driver is called. A stream other than the caller's is ordered with it by events.
enum class CopyCarrier : std::uint8_t { stream, owner_of_destination, owner_of_source };
CopyCarrier copy_carrier(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

struct CopyPlan {
    CopyPath path = CopyPath::refuse;
    platform::CopyDirection direction = platform::CopyDirection::device_to_device;  // driver only
    std::string_view reason;                                                        // static storage
    std::string_view remedy;                                                        // refuse only
};
// The owners in `to` and `from` are relative to the carrier.
CopyPlan plan_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

// plan_copy() for a captured stream. In a graph the driver reads and writes when the copy is executed. Pageable buffers
// may therefore take part where the device reaches them; the caller's own memory may be freed by then.
CopyPlan plan_recorded_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

// How a copy of pageable memory (bounce_up, bounce_down) is carried: through bounce buffers, or in calls of the driver,
// which stages it itself, faster from a size on (ADR 107).
enum class PageableWay : std::uint8_t {
    bounce,
    driver_if_idle,  // bounce buffers take it without a wait for the stream: the driver gets it where there is none
    driver,          // the host waits for the stream first, as it would for bounce buffers
};
struct PageableFacts {
    bool up = false;
    bool one_range = true;         // no gaps on either side
    bool others_submit = false;    // other code gives the stream work
    bool capture_is_open = false;  // of this runtime, on any stream
    bool service_runs = false;     // on the device
    std::size_t bytes = 0;
    std::size_t bounce_bytes = 0;  // of all bounce buffers of the device
    MemoryModel memory = MemoryModel::separate;
};
// Measured on H200 (docs/hardware.md, "Copies of pageable memory"): the driver is slower up to 64 KiB up and 2 MiB
// down, as fast at 256 KiB up, and faster from 512 KiB up and 4 MiB down.
inline constexpr std::size_t driver_up_bytes = std::size_t{512} << 10;
inline constexpr std::size_t driver_down_bytes = std::size_t{4} << 20;
// What one call of the driver copies. The stream's lock is held for its time: about 5 ms.
inline constexpr std::size_t driver_piece_bytes = std::size_t{64} << 20;
// `gpu`: the side that is not pageable.
PageableWay pageable_way(const CopySideFacts& gpu, const PageableFacts& facts);

// For these sides the driver gets the host address, for the others the device address.
bool is_host_memory(const CopySideFacts& side);

struct Fit {
    enum class Answer : std::uint8_t { fits, row_pitch, slice_pitch, overflow, outside };
    Answer answer = Answer::fits;
    std::size_t end = 0;  // one past the last element; outside only
};
// Does the box lie inside `elements`? Replaces pitches of 0 by contiguous ones.
Fit fit(CopyLayout& layout, const CopyBox& box, std::size_t elements);

// From here on all figures are bytes. A row has `width` bytes; pitches may have any value that fit() accepts.
struct CopyStride {
    std::size_t offset = 0;
    std::size_t row = 0;
    std::size_t slice = 0;
};
struct CopyShape {
    std::size_t width = 0;
    std::size_t rows = 1;
    std::size_t slices = 1;
    CopyStride to;
    CopyStride from;
};
// Describes the same bytes with as few slices and rows as possible: a range without gaps becomes one row.
CopyShape simplest(CopyShape shape);
// May two boxes in one memory share a byte? Exact where both sides have the same pitches; otherwise true if one begins
// before the other ends.
bool overlaps(const CopyShape& shape);
// Can one driver call copy the whole shape? The slice pitch has to be a multiple of the row pitch, and pitches have a
// limit.
bool one_call(const CopyShape& shape);

// A part of a shape that fits into `chunk_bytes` with packed rows. Offsets count from the first byte of each side.
struct CopyChunk {
    std::size_t to = 0;
    std::size_t from = 0;
    std::size_t width = 0;
    std::size_t rows = 1;
};
// Iterates over all chunks in order. A value: copy it to look ahead.
class CopyChunks {
public:
    CopyChunks(const CopyShape& shape, std::size_t chunk_bytes) : shape_(shape), chunk_bytes_(chunk_bytes) {}
    bool next(CopyChunk& chunk);

private:
    CopyShape shape_;
    std::size_t chunk_bytes_;
    std::size_t slice_ = 0, row_ = 0, at_ = 0;
};

// A pattern for the driver's fills: 1, 2 or 4 bytes. 0: the value is longer and not a repetition.
struct FillPattern {
    std::size_t bytes = 0;
    std::uint32_t value = 0;
};
FillPattern shortest_pattern(const void* value, std::size_t bytes);

// Splits the shape into shapes that do not cross a seam, in order. Seams are byte offsets in the destination's memory,
// ascending. Drivers refuse a fill over two handles of mapped memory on the host (observed: docs/hardware.md).
std::vector<CopyShape> shapes_between(const CopyShape& shape, const std::vector<std::size_t>& seams);

}  // namespace isthmus::rules
