// SPDX-License-Identifier: Apache-2.0
// The facet of copies between devices, shaped copies and fills, hints, and access between devices.
#pragma once

#include <platform/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace isthmus::platform {

// One side of a copy: address of the first byte, and distances between rows and slices.
struct CopySide {
    std::uint64_t address = 0;
    bool host = false;                // a host address (pageable, pinned, registered)
    std::size_t row_pitch_bytes = 0;  // distance between rows, at least the width
    std::size_t slice_rows = 0;       // distance between slices in rows, at least the rows of the copy
};
struct CopyExtent {
    std::size_t width_bytes = 0;
    std::size_t rows = 1;
    std::size_t slices = 1;
};

// Target of a hint: a device, or a host node.
struct Place {
    int ordinal = -1;    // of a GPU; -1: the host
    int host_node = -1;  // with ordinal −1: this node (CUDA 12.2 and newer); −1: any
};
enum class Advice : std::uint8_t { read_mostly, not_read_mostly, prefer, no_preference, accessed_by, not_accessed_by };

// One range of a batch of hints. `place`: where a prefetch brings it.
struct HintedRange {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    Place place;
};
// Advice that the driver holds for all of a range. An empty place: none, or not the same one everywhere.
struct AdviceFacts {
    bool read_mostly = false;
    bool accessed = false;  // by the device that was asked
    std::optional<Place> preferred;
    std::optional<Place> prefetched;  // the last one asked for
};

// Code::wrong_device: the other device was not opened by this driver.
class Transfers {
public:
    virtual ~Transfers() = default;
    // Within one device and the host; one slice is a 2-D copy (cuMemcpy2DAsync), more are 3-D.
    virtual Status copy_shaped(const CopySide& destination, const CopySide& source, const CopyExtent& extent,
                               StreamHandle stream) = 0;
    // Between two devices, with or without peer access: without it the driver stages.
    virtual Status copy_between(std::uint64_t destination, int destination_ordinal, std::uint64_t source,
                                int source_ordinal, std::size_t bytes, StreamHandle stream) = 0;
    virtual Status copy_shaped_between(const CopySide& destination, int destination_ordinal, const CopySide& source,
                                       int source_ordinal, const CopyExtent& extent, StreamHandle stream) = 0;
    // `count` elements of 1, 2 or 4 bytes, all equal to `value`; the address is aligned to the element.
    virtual Status fill_elements(std::uint64_t destination, std::uint32_t value, std::size_t element_bytes,
                                 std::size_t count, StreamHandle stream) = 0;
    virtual Status fill_shaped(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                               const CopyExtent& extent, StreamHandle stream) = 0;
    // Hints for managed memory, and for pageable memory that the device reaches. Code::unsupported where hints have no
    // effect. A capturing stream does not accept a prefetch.
    virtual Status prefetch(std::uint64_t address, std::size_t bytes, const Place& place, StreamHandle stream) = 0;
    virtual Status advise(std::uint64_t address, std::size_t bytes, Advice advice, const Place& place) = 0;
    // Batches, one call each (CUDA 13). A discard ends the content of the ranges, which is indeterminate until it is
    // written; with `prefetch` it also brings the ranges to their places, without their old content. A driver without
    // the call answers Code::unsupported.
    virtual Status prefetch_batch(const HintedRange* /*ranges*/, std::size_t /*count*/, StreamHandle /*stream*/) {
        return {Code::unsupported, 0, "cuMemPrefetchBatchAsync"};
    }
    virtual Status discard_batch(const HintedRange* /*ranges*/, std::size_t /*count*/, bool /*prefetch*/,
                                 StreamHandle /*stream*/) {
        return {Code::unsupported, 0, "cuMemDiscardBatchAsync"};
    }
    // The advice in force for managed memory.
    virtual Status advice(std::uint64_t /*address*/, std::size_t /*bytes*/, AdviceFacts& /*out*/) {
        return {Code::unsupported, 0, "cuMemRangeGetAttributes"};
    }
    // Whether this device can get access to the other's memory; and the switch for it. Repeating a switch is no error.
    virtual Status can_reach(int other_ordinal, bool& out) = 0;
    virtual Status set_peer_access(int other_ordinal, bool allowed) = 0;
};

}  // namespace isthmus::platform
