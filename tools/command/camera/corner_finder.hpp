// SPDX-License-Identifier: Apache-2.0
// CornerFinder: frames in shared memory go through the camera kernels of a device, and come back as lists of corners.
#pragma once

#include "frame_shape.hpp"
#include "stage_times.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/device.hpp>
#include <isthmus/kernels/camera.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace isthmus::tools::camera {

struct FinderOptions {
    FrameShape shape{};
    kernels::CornerRule rule{};
    std::uint32_t max_corners = 4096;    // in one frame
    std::optional<MemoryKind> memory{};  // of what both sides use; nothing: the machine's row decides
    std::uint32_t in_flight = 2;         // frames that the device may have at a time
    bool own_frames = true;              // false: frames stand in buffers of somebody else, and there is no ring
};

// What the device made of a frame; the views keep the buffers from being written meanwhile.
struct FoundCorners {
    HostView<const kernels::Corner> list;  // only the first count.listed are corners
    kernels::CornerCount count;
    HostView<const std::uint8_t> frame;  // for the CPU's own part
    std::uint64_t bytes_copied = 0;      // for this frame, between host and device sides
};

// Frames come through a ring, which another thread may fill. Each that the device has stands in a lane of its own, with
// a stream and pictures of its own, so that copies for one frame and kernels of another overlap. All but the ring is
// for one thread.
class CornerFinder {
public:
    using Frames = FrameRing<std::uint8_t>;
    static Result<CornerFinder> create(Device& device, const FinderOptions& options);

    Frames& frames() noexcept { return *frames_; }  // one more than are in flight
    std::size_t in_flight() const noexcept { return static_cast<std::size_t>(submitted_ - finished_); }
    bool full() const noexcept { return in_flight() == lanes_.size(); }
    // Hands a frame to the device where not full(); returns before the device is done (on the CPU device, when it is).
    Result<void> submit(ReadyFrame<std::uint8_t> frame);
    // … a frame of shape().size_bytes bytes that stays where it is until finish().
    Result<void> submit(const Buffer<std::uint8_t>& frame);
    // Waits for the corners of the oldest frame in flight.
    Result<FoundCorners> corners();
    // Lets go of that frame, whose views are closed.
    void finish();

    // Times of the device's stages, by the device's own clock, for frames whose corners were asked for.
    const std::vector<Samples>& device_times() const noexcept { return times_; }

    struct SharedBuffer {
        std::string_view name;
        const BufferBase* buffer;
    };
    std::array<SharedBuffer, 3> shared_buffers() const noexcept;

private:
    static constexpr std::size_t stage_count = 5;
    struct Lane {
        explicit Lane(const Stream& own) : stream(own) {}
        Stream stream;
        Buffer<std::uint8_t> gray{}, smoothed{}, marked{};
        Buffer<kernels::Gradient> gradient{};
        Buffer<std::int32_t> response{};
        Buffer<std::uint32_t> rows{};
        Buffer<kernels::Corner> corners{};
        Buffer<kernels::CornerCount> count{};
        std::vector<Event> marks{};                       // before the first stage and after each
        std::optional<ReadyFrame<std::uint8_t>> frame{};  // of the ring
        const Buffer<std::uint8_t>* source = nullptr;     // the frame's buffer, wherever it stands
        std::uint64_t copied_before = 0;                  // when it was submitted
    };
    CornerFinder(Device& device, const FinderOptions& options);
    Result<void> allocate();
    Result<void> allocate_pictures(Lane& lane);
    Result<void> allocate_shared(Lane& lane);
    Result<void> take_times(Lane& lane);
    Lane& lane(std::uint64_t frame) noexcept { return lanes_[frame % lanes_.size()]; }
    static std::uint64_t copied(const Lane& lane) noexcept;

    Device* device_;
    FinderOptions options_;
    kernels::Plane plane_;
    std::optional<Frames> frames_{};
    std::vector<Lane> lanes_{};
    std::uint64_t submitted_ = 0;
    std::uint64_t finished_ = 0;
    std::vector<Samples> times_;
};

}  // namespace isthmus::tools::camera
