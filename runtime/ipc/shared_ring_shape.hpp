// SPDX-License-Identifier: Apache-2.0
// Layout of a shared frame ring, and the descriptor that tells it to another process. Pure; the only source of sizes.
#pragma once

#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::rules {

// Producer's file: one or more pages of header and words, then the frames, each page-aligned. Reader's file: one page
// with its own words. Each word has its own 128 bytes.
inline constexpr std::size_t ring_line_bytes = 128;
inline constexpr std::size_t ring_published_at = 1 * ring_line_bytes;        // 64 bits: frame count and closed flag
inline constexpr std::size_t ring_producer_asleep_at = 2 * ring_line_bytes;  // 32 bits
inline constexpr std::size_t ring_stamps_at = 3 * ring_line_bytes;           // 64 bits per slot
inline constexpr std::size_t cursor_at = 0;                                  // 64 bits, in the reader's file
inline constexpr std::size_t reader_asleep_at = ring_line_bytes;             // 32 bits

inline constexpr std::uint32_t max_ring_slots = 256;
inline constexpr std::uint64_t max_ring_bytes = std::uint64_t{1} << 46;

struct RingShape {
    std::uint32_t slots = 0;
    SlowReaderPolicy policy = SlowReaderPolicy::overwrite;
    ReaderRights rights = ReaderRights::read_only;
    std::uint32_t element_bytes = 0;
    std::uint64_t elements = 0;      // per frame
    std::uint64_t stride_bytes = 0;  // from frame to frame: whole pages
    std::uint64_t frames_at = 0;     // offset of the first frame in the file: whole pages
    std::uint64_t file_bytes = 0;    // whole pages
    std::uint64_t page_bytes = 0;    // also the size of a reader's file
    std::array<std::byte, 16> id{};  // of the ring, drawn at its creation
    friend bool operator==(const RingShape&, const RingShape&) = default;
    std::uint64_t frame_bytes() const noexcept { return elements * element_bytes; }
    std::uint64_t frame_at(std::uint64_t frame) const noexcept { return frames_at + frame % slots * stride_bytes; }
    std::size_t stamp_at(std::uint64_t frame) const noexcept {
        return ring_stamps_at + static_cast<std::size_t>(frame % slots) * ring_line_bytes;
    }
    // Newest frames that the producer does not overwrite; without waiting it writes into the next slot.
    std::uint64_t kept() const noexcept { return policy == SlowReaderPolicy::wait ? slots : slots - 1; }
};

// Errors: invalid_argument (fewer than 2 slots or more than 256, no elements, more bytes than there are addresses).
Result<RingShape> make_ring_shape(std::uint64_t elements, std::uint32_t element_bytes, const SharedRingOptions& options,
                                  std::uint64_t page_bytes);

// Header of the producer's file; with a reader's facts after it, also the descriptor.
inline constexpr std::size_t ring_header_bytes = 96;
using RingHeader = std::array<std::byte, ring_header_bytes>;
RingHeader ring_header(const RingShape& shape);

struct RingPlaceOfReader {
    std::uint32_t reader = 0;  // its number, for messages
    std::uint64_t first = 0;   // first frame that it gets
    friend bool operator==(const RingPlaceOfReader&, const RingPlaceOfReader&) = default;
};
using RingDescriptorBytes = SharedRingDescriptor::Bytes;
RingDescriptorBytes encode_ring(const RingShape& shape, const RingPlaceOfReader& place);

struct DecodedRing {
    RingShape shape;
    RingPlaceOfReader place;
};
// Accepts any input. The result is a shape that make_ring_shape() could make with these pages, so no sum in it
// overflows. Errors: invalid_argument (length, magic, version, a field out of its range or in contradiction to the
// others; names the field).
Result<DecodedRing> decode_ring(std::span<const std::byte> bytes, std::uint64_t page_bytes);

}  // namespace isthmus::rules
