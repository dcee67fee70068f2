// SPDX-License-Identifier: Apache-2.0
// CameraFrames: a camera's buffers as buffers of a device, used where the camera wrote them.
#pragma once

#include "video_device.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace isthmus::tools::camera {

// Makes a buffer of a dma-buf; Device::adopt_dma_buf() outside of tests.
using AdoptDmaBuf = std::function<Result<Buffer<std::uint8_t>>(Device& device, const FileDescriptor& dma_buf,
                                                               std::size_t bytes, const AdoptOptions& options)>;
AdoptDmaBuf adopt_by_device();

// While the camera has a buffer, a view for writing is open: no kernel reads half a frame, and the caches are those of
// the CPU and the camera in turn. The driver's buffers are adopted as dma-bufs; where it exports none, or they cannot
// be mapped, it is given pages of this process. For one thread.
class CameraFrames {
public:
    // Errors: those of VideoDevice, of Device::adopt_dma_buf() and of Device::allocate_shared().
    static Result<CameraFrames> create(Device& device, std::unique_ptr<VideoDevice> camera, std::uint32_t count,
                                       std::optional<MemoryKind> kind, const AdoptDmaBuf& adopt = adopt_by_device());
    CameraFrames(CameraFrames&&) = default;
    CameraFrames& operator=(CameraFrames&&) = delete;
    ~CameraFrames();

    CameraMemory memory() const noexcept { return memory_; }
    std::size_t count() const noexcept { return buffers_.size(); }
    const Buffer<std::uint8_t>& buffer(std::uint32_t index) const noexcept { return buffers_[index]; }

    Result<void> start();  // lends every buffer to the camera
    // The next whole frame; nothing: the stop descriptor became readable. Frames with errors go back to the camera.
    // Waits at most `wait_ms` for a whole one. Errors: those of VideoDevice::next().
    Result<std::optional<std::uint32_t>> next(int stop_descriptor, int wait_ms);
    // Lends a frame's buffer to the camera again; waits for the device's work with it. Its views must be closed.
    Result<void> give_back(std::uint32_t index);
    std::uint64_t broken() const noexcept { return broken_; }  // frames with errors

private:
    explicit CameraFrames(std::unique_ptr<VideoDevice> camera) : camera_(std::move(camera)) {}
    Result<void> adopt_all(Device& device, std::uint32_t count, std::optional<MemoryKind> kind,
                           const AdoptDmaBuf& adopt);
    Result<void> allocate_all(Device& device, std::uint32_t count, std::optional<MemoryKind> kind);

    std::unique_ptr<VideoDevice> camera_;
    std::vector<Buffer<std::uint8_t>> buffers_;
    std::vector<std::optional<HostView<std::uint8_t>>> lent_;  // open while the camera has the buffer
    CameraMemory memory_ = CameraMemory::driver;
    std::uint64_t broken_ = 0;
};

}  // namespace isthmus::tools::camera
