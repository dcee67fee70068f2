// SPDX-License-Identifier: Apache-2.0
// CornerFinder: runs the camera kernels on frames in shared memory, and returns lists of corners.
#pragma once

#include "frame_shape.hpp"
#include "stage_times.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/device.hpp>
#include <isthmus/graph.hpp>
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
    std::optional<MemoryKind> memory{};  // of buffers that both sides use; nothing: the capability table decides
    std::uint32_t in_flight = 2;         // the most frames in flight on the device
    bool own_frames = true;              // false: frames stand in the caller's buffers, and there is no ring
    bool own_streams = false;            // false: the first is the device's own; true: finders of other threads go on
};

// The result for one frame. While its views are open, no write to the buffers starts.
struct FoundCorners {
    HostView<const kernels::Corner> list;  // only the first count.listed are corners
    kernels::CornerCount count;
    // For the CPU's part of the pipeline. Nothing: the frame is in memory without an address for the CPU, which only a
    // caller's buffer can be.
    std::optional<HostView<const std::uint8_t>> frame;
    std::uint64_t bytes_copied = 0;  // for this frame, between host and device sides
};

// Frames come through a ring, which another thread may fill. Each frame in flight has a lane of its own, with a stream,
// intermediate pictures and a graph of its own, so that copies for one frame overlap kernels of another. A graph has
// three kernels, or four where the GPU uses frames in place, which it then reads once; each frame is one launch of it,
// with the frame's buffer as argument of the first kernel. All but the ring is for one thread.
class CornerFinder {
public:
    using Frames = FrameRing<std::uint8_t>;
    static Result<CornerFinder> create(Device& device, const FinderOptions& options);

    Frames& frames() noexcept { return *frames_; }  // has one frame more than are in flight
    std::size_t in_flight() const noexcept { return static_cast<std::size_t>(submitted_ - finished_); }
    bool full() const noexcept { return in_flight() == lanes_.size(); }
    // Submits a frame; call it only where not full(). Returns before the device has finished (on the CPU device,
    // after).
    Result<void> submit(ReadyFrame<std::uint8_t> frame);
    // Submits a frame of shape().size_bytes bytes in the caller's buffer, which must stay where it is until finish().
    Result<void> submit(const Buffer<std::uint8_t>& frame);
    // Waits for the corners of the oldest frame in flight.
    Result<FoundCorners> corners();
    // Releases the oldest frame; its views must be closed.
    void finish();

    // Ends the finder's use of the last frame's buffer, which its graphs hold until they get another: the owner of the
    // memory can give it out anew. The next frame is recorded anew. Call it only where no frame is in flight.
    void forget_frames() noexcept;

    // Durations of the device's work by the device's clock, for the frames whose corners() was called.
    const Samples& device_times() const noexcept { return times_; }

    struct SharedBuffer {
        std::string_view name;
        const BufferBase* buffer;
    };
    // `frame`: a buffer of the ring's, or of the caller's.
    std::array<SharedBuffer, 3> shared_buffers(const BufferBase& frame) const noexcept;

private:
    using Responds =
        KernelNode<void(Block, Out<std::int32_t>, kernels::Plane, View<const std::uint8_t>, kernels::LumaLayout)>;
    using Copies =
        KernelNode<void(Index2, Out<std::uint8_t>, kernels::Plane, View<const std::uint8_t>, kernels::LumaLayout)>;
    struct Lane {
        explicit Lane(const Stream& own) : stream(own) {}
        Stream stream;
        Buffer<std::uint8_t> luma{};  // of frames in place
        Buffer<std::int32_t> response{};
        Buffer<std::uint16_t> columns{};
        Buffer<std::uint32_t> rows{};
        Buffer<kernels::Corner> corners{};
        Buffer<kernels::CornerCount> count{};
        std::vector<Event> marks{};                       // before and after the kernels
        std::optional<GraphInstance> graph{};             // recorded with the lane's first frame
        std::optional<Copies> copies{};                   // the graph's first kernel, of frames in place;
        std::optional<Responds> responds{};               // of others
        const void* recorded = nullptr;                   // the frame's buffer that the graph has now, and holds
        std::optional<ReadyFrame<std::uint8_t>> frame{};  // set where the frame is from the ring
        const Buffer<std::uint8_t>* source = nullptr;     // the buffer of the frame, from the ring or the caller's
        std::uint64_t copied_before = 0;                  // the count of bytes copied when the frame was submitted
    };
    CornerFinder(Device& device, const FinderOptions& options);
    Result<void> allocate();
    Result<void> allocate_pictures(Lane& lane);
    Result<void> allocate_shared(Lane& lane);
    Result<void> record(Lane& lane, const Buffer<std::uint8_t>& frame);
    Result<void> record_first(Capture& capture, Lane& lane, const Buffer<std::uint8_t>& frame);
    Result<void> launch(Lane& lane, const Buffer<std::uint8_t>& frame);
    Result<void> take_times(Lane& lane);
    Lane& lane(std::uint64_t frame) noexcept { return lanes_[frame % lanes_.size()]; }
    static std::uint64_t copied(const Lane& lane) noexcept;

    Device* device_;
    FinderOptions options_;
    kernels::Plane plane_;
    kernels::Plane luma_;  // the same with rows that begin at multiples of 16
    std::optional<Frames> frames_{};
    std::vector<Lane> lanes_{};
    std::uint64_t submitted_ = 0;
    std::uint64_t finished_ = 0;
    Samples times_{"find", "device"};
};

}  // namespace isthmus::tools::camera
