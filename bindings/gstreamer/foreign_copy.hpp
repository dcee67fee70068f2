// SPDX-License-Identifier: Apache-2.0
// Copies a frame in memory of other elements into a slot of a ring: once, by the runtime, wherever it can.
#pragma once

#include "foreign.hpp"
#include "layout.hpp"

#include <isthmus/copy.hpp>
#include <isthmus/stream.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace isthmus::gst {

enum class CopyWay : std::uint8_t { runtime, map };
struct FrameCopy {
    CopyWay way = CopyWay::map;
    bool twice = false;  // the bytes move more than once
    friend bool operator==(const FrameCopy&, const FrameCopy&) = default;
};
// `path`: what Stream::explain_copy() says of the slot and the memory. `slot_is_staged`: what a device copies into the
// slot is copied once more, for the viewers. `device_memory`: a map for the CPU is a copy by the memory's allocator.
constexpr FrameCopy frame_copy(CopyPath path, bool slot_is_staged, bool device_memory) noexcept {
    const bool one_copy = path == CopyPath::driver || path == CopyPath::on_host;
    if (one_copy && !slot_is_staged) return {CopyWay::runtime, false};
    if (!device_memory) return {CopyWay::map, false};
    return {path == CopyPath::refuse ? CopyWay::map : CopyWay::runtime, true};
}

// The memories of one frame, each as a buffer of the device.
class ForeignPlanes {
public:
    // Whether some of the frame lies in memory that ForeignFrame knows; and whether a map for the CPU copies some of it
    // from a device. GstCudaMemory does not tell when the CPU's copy is as new as the device's: that counts, too.
    static bool has_foreign_memory(GstBuffer* buffer) noexcept;
    static bool is_copied_by_map(GstBuffer* buffer) noexcept;
    // Errors: those of ForeignFrame::of(); unsupported (rows in descending order, a plane outside of its
    // memory, or a GstVideoMeta that does not suit the caps).
    static Result<ForeignPlanes> of(GstBuffer* buffer, const GstVideoInfo& info, const OpenSession& opened);
    FrameCopy way_to(const Stream& stream, const Buffer<std::uint8_t>& slot) const;
    // Copies the rows without their padding, and waits until that is done: the frame may go back to its owner. Errors:
    // those of Stream::copy_region() (invalid_argument: the frame ends within a plane), and of Stream::synchronize().
    Result<void> copy(Stream& stream, Buffer<std::uint8_t>& slot, const FrameShape& shape) const;

private:
    struct Plane {
        std::size_t memory = 0;  // the number of its frame
        CopyLayout layout{};
    };
    ForeignPlanes() = default;

    std::vector<ForeignFrame> frames_{};
    std::array<Plane, GST_VIDEO_MAX_PLANES> planes_{};
    guint count_ = 0;
    bool device_memory_ = false;
};

}  // namespace isthmus::gst
