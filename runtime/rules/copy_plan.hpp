// Two sides of a copy → who carries it, which path it takes and why; and what shapes may be copied. Pure.
#pragma once

#include <isthmus/copy.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <platform/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus::rules {

// Whose memory it is, seen from the stream that carries the copy.
enum class CopyOwner : std::uint8_t { same, other_gpu, cpu_device, caller };

struct CopySideFacts {
    MemoryKind kind = MemoryKind::unknown;
    CopyOwner owner = CopyOwner::same;
    LaunchPath path = LaunchPath::pass;  // of the buffer
    bool reached = false;                // does the stream's device reach it in place?
};

// On whose stream the driver is called. Another one than the caller's is put in order with it by events.
enum class CopyCarrier : std::uint8_t { stream, owner_of_destination, owner_of_source };
CopyCarrier copy_carrier(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

struct CopyPlan {
    CopyPath path = CopyPath::refuse;
    platform::CopyDirection direction = platform::CopyDirection::device_to_device;  // driver only
    std::string_view reason;                                                        // static storage
    std::string_view remedy;                                                        // refuse only
};
// Seen from the carrier.
CopyPlan plan_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

// The same on a captured stream. In a graph the driver reads and writes when the copy's turn comes, so that pageable
// buffers may take part where the device reaches them; memory of the caller's may be gone by then.
CopyPlan plan_recorded_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from);

// Ordinary addresses of the host's are given to the driver for these, the device's for the others.
bool is_host_memory(const CopySideFacts& side);

struct Fit {
    enum class Answer : std::uint8_t { fits, row_pitch, slice_pitch, overflow, outside };
    Answer answer = Answer::fits;
    std::size_t end = 0;  // one past the last element; outside only
};
// Does the box lie inside `elements`? Fills in pitches that are 0.
Fit fit(CopyLayout& layout, const CopyBox& box, std::size_t elements);

// Everything in bytes from here on. A row is `width`; pitches may be anything that fit() lets pass.
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
// The same bytes in as few slices and rows as possible: what has no gaps becomes one row.
CopyShape simplest(CopyShape shape);
// May two boxes of one memory share a byte? Exact where both sides have the same pitches; otherwise it is enough that
// one begins before the other ends.
bool overlaps(const CopyShape& shape);
// Can one call of the driver copy the whole shape? Slices have to be whole rows apart, and pitches have a limit.
bool one_call(const CopyShape& shape);

// A part of a shape that fits into `piece_bytes` when its rows are packed: offsets from both sides' first bytes.
struct CopyPiece {
    std::size_t to = 0;
    std::size_t from = 0;
    std::size_t width = 0;
    std::size_t rows = 1;
};
// Walks through all pieces in order. A value: copy it to look ahead.
class CopyPieces {
public:
    CopyPieces(const CopyShape& shape, std::size_t piece_bytes) : shape_(shape), piece_bytes_(piece_bytes) {}
    bool next(CopyPiece& piece);

private:
    CopyShape shape_;
    std::size_t piece_bytes_;
    std::size_t slice_ = 0, row_ = 0, at_ = 0;
};

// A pattern as the driver's fills take it: 1, 2 or 4 bytes. 0: longer than that, and not a repetition.
struct FillPattern {
    std::size_t bytes = 0;
    std::uint32_t value = 0;
};
FillPattern shortest_pattern(const void* value, std::size_t bytes);

// The shape in pieces of which none reaches over a seam, in order; seams are bytes of the destination's memory, rising.
// Drivers refuse a fill over two handles of mapped memory that lies on the host (observed: docs/hardware.md).
std::vector<CopyShape> pieces_between(const CopyShape& shape, const std::vector<std::size_t>& seams);

}  // namespace isthmus::rules
