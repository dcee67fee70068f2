// CornerFinder: frames in shared memory go through the camera kernels of a device, and come back as lists of corners.
#pragma once

#include "frame_shape.hpp"
#include "stage_times.hpp"

#include <isthmus/buffer.hpp>
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
    std::uint32_t most_corners = 4096;   // in one frame
    std::optional<MemoryKind> memory{};  // of what both sides use; nothing: the machine's row decides
};

// A list that the device made; the view keeps the buffer from being written meanwhile.
struct FoundCorners {
    HostView<const kernels::Corner> list;  // only the first count.listed are corners
    kernels::CornerCount count;
};

// Frames take turns in two slots, so that the CPU works on one while the device works on the other. Not thread-safe.
class CornerFinder {
public:
    static constexpr std::size_t slot_count = 2;
    static Result<CornerFinder> create(Device& device, const FinderOptions& options);

    // Where the next frame goes. Waits for the device where it still reads the slot's previous one.
    Result<HostView<std::uint8_t>> write_frame(std::size_t slot) { return slots_[slot].frame.write_on_host(); }
    // Hands the slot's frame to the device; returns before the device is done (on the CPU device, when it is).
    Result<void> submit(std::size_t slot);
    // Waits for the slot's corners.
    Result<FoundCorners> corners(std::size_t slot);
    // The frame again, for the CPU's own part; the device may read it at the same time.
    Result<HostView<const std::uint8_t>> read_frame(std::size_t slot) { return slots_[slot].frame.read_on_host(); }

    // Times of the device's stages, by the device's own clock, for frames whose corners were asked for.
    const std::vector<Samples>& device_times() const noexcept { return times_; }
    std::uint64_t bytes_copied() const noexcept;  // between host and device sides, so far

    struct SharedBuffer {
        std::string_view name;
        const BufferBase* buffer;
    };
    std::array<SharedBuffer, 3> shared_buffers() const noexcept;

private:
    static constexpr std::size_t stage_count = 5;
    struct Slot {
        Buffer<std::uint8_t> frame{};
        Buffer<kernels::Corner> corners{};
        Buffer<kernels::CornerCount> count{};
        std::vector<Event> marks{};  // before the first stage and after each
    };
    CornerFinder(Device& device, const FinderOptions& options);
    Result<void> allocate();
    Result<void> allocate_slot(Slot& slot);
    Result<void> mark(Slot& slot, std::size_t stage);
    Result<void> take_times(Slot& slot);

    Device* device_;
    FinderOptions options_;
    kernels::Plane plane_;
    std::array<Slot, slot_count> slots_{};
    Buffer<std::uint8_t> gray_{}, smoothed_{}, marked_{};
    Buffer<kernels::Gradient> gradient_{};
    Buffer<std::int32_t> response_{};
    Buffer<std::uint32_t> rows_{};
    std::vector<Samples> times_;
};

}  // namespace isthmus::tools::camera
