// SPDX-License-Identifier: Apache-2.0
// VideoDevice: a V4L2 camera, from its opening to its frames, over a table of system calls that tests replace.
#pragma once

#include "video_format.hpp"

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

// Each with the semantics of its namesake (−1 and errno).
struct VideoCalls {
    int (*open)(const char* path, int flags);
    int (*close)(int fd);
    int (*ioctl)(int fd, unsigned long request, void* argument);
    int (*poll)(pollfd* fds, unsigned long count, int timeout_ms);
    static const VideoCalls& real() noexcept;
};

// Who owns the memory that the camera writes.
enum class CameraMemory : std::uint8_t {
    driver,  // V4L2_MEMORY_MMAP, exported as dma-bufs
    user,    // V4L2_MEMORY_USERPTR: pages of this process
};

// For one thread. Destroying it stops the camera, gives its buffers back and closes it. Its buffers must outlive it,
// because the camera writes them until then.
class VideoDevice {
public:
    // Opens the camera and sets its format; the driver may answer with another size than was wished. Errors:
    // invalid_argument (no camera), in_use, not_permitted, unsupported (no format that is read here; no streaming),
    // system_error.
    static Result<std::unique_ptr<VideoDevice>> open(const std::string& path, const CameraWish& wish,
                                                     const VideoCalls& calls = VideoCalls::real());
    VideoDevice(const VideoDevice&) = delete;
    VideoDevice& operator=(const VideoDevice&) = delete;
    ~VideoDevice();

    const std::string& name() const noexcept { return name_; }  // "/dev/video0 (vivid)"
    const VideoFrames& frames() const noexcept { return frames_; }
    FrameRate rate() const noexcept { return rate_; }

    // Makes buffers; the driver may answer with another number. Once, before the others. unsupported: the driver takes
    // no such memory.
    Result<std::uint32_t> request(CameraMemory memory, std::uint32_t count);
    // A dma-buf of the driver's buffer; unsupported: the driver exports none. Gives up the buffers then.
    Result<FileDescriptor> export_buffer(std::uint32_t index);
    // Lends a buffer to the driver. `pages`: its memory, frames().memory_bytes from a page on, where the user's.
    Result<void> queue(std::uint32_t index, void* pages = nullptr);
    Result<void> start();
    // The next buffer that the driver filled; nothing: `stop_descriptor` became readable. Waits at most `wait_ms`.
    // Errors: timed_out (no frame came), unsupported (a frame does not begin where its buffer does), and those of
    // camera_failure(), as where the camera was unplugged.
    Result<std::optional<FilledBuffer>> next(int stop_descriptor, int wait_ms);
    // Gives buffers back that request() made.
    void give_up_buffers() noexcept;

private:
    VideoDevice(std::string path, const VideoCalls& calls) : calls_(&calls), path_(std::move(path)), name_(path_) {}
    int call(unsigned long request, void* argument) const noexcept;
    Error failed(const char* step, const char* name) const;
    Result<void> ask_capabilities();
    Result<void> set_format(const CameraWish& wish);
    v4l2_buffer buffer(std::uint32_t index, v4l2_plane& plane) const noexcept;
    bool multiplanar() const noexcept { return type_ == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE; }

    const VideoCalls* calls_;
    std::string path_;
    std::string name_;
    int fd_ = -1;
    std::uint32_t type_ = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    std::uint32_t memory_ = 0;  // V4L2_MEMORY_…; 0: no buffers
    bool streams_ = false;
    VideoFrames frames_{};
    FrameRate rate_{};
    std::unique_ptr<bool[]> queued_;  // by buffer: the driver has it
    std::uint32_t count_ = 0;
};

}  // namespace isthmus::tools::camera
