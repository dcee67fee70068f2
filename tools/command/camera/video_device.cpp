// SPDX-License-Identifier: Apache-2.0
// The ioctls of a V4L2 camera (Documentation/userspace-api/media/v4l).
#include "video_device.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace isthmus::tools::camera {
namespace {

constexpr std::uint32_t most_formats = 256;  // that a driver is asked for
constexpr std::uint32_t most_buffers = 32;   // VIDEO_MAX_FRAME

int call_open(const char* path, int flags) {
    return ::open(path, flags);
}
int call_ioctl(int fd, unsigned long request, void* argument) {
    return ::ioctl(fd, request, argument);
}

}  // namespace

const VideoCalls& VideoCalls::real() noexcept {
    static constexpr VideoCalls calls = {call_open, ::close, call_ioctl, ::poll};
    return calls;
}

int VideoDevice::call(unsigned long request, void* argument) const noexcept {
    for (;;) {
        const int answer = calls_->ioctl(fd_, request, argument);
        if (answer == 0 || errno != EINTR) return answer;
    }
}

Error VideoDevice::failed(const char* step, const char* name) const {
    return camera_failure(name_, step, name, errno);
}

Result<std::unique_ptr<VideoDevice>> VideoDevice::open(const std::string& path, const CameraWish& wish,
                                                       const VideoCalls& calls) {
    std::unique_ptr<VideoDevice> device(new VideoDevice(path, calls));
    device->fd_ = calls.open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device->fd_ < 0) return device->failed("the camera cannot be opened", "open");
    if (Result<void> able = device->ask_capabilities(); !able) return std::move(able).error();
    if (Result<void> set = device->set_format(wish); !set) return std::move(set).error();
    v4l2_streamparm parameters{};
    parameters.type = device->type_;
    if (device->call(VIDIOC_G_PARM, &parameters) == 0) device->rate_ = frame_rate_of(parameters);
    return device;
}

VideoDevice::~VideoDevice() {
    if (fd_ < 0) return;
    give_up_buffers();
    (void)calls_->close(fd_);
}

Result<void> VideoDevice::ask_capabilities() {
    v4l2_capability able{};
    if (call(VIDIOC_QUERYCAP, &able) != 0) return failed("this is no camera", "ioctl(VIDIOC_QUERYCAP)");
    const auto* const card = reinterpret_cast<const char*>(able.card);
    const std::string named(card, strnlen(card, sizeof able.card));
    const bool printable = std::all_of(named.begin(), named.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
    if (!named.empty() && printable) name_ = path_ + " (" + named + ")";
    const std::uint32_t bits = (able.capabilities & V4L2_CAP_DEVICE_CAPS) != 0 ? able.device_caps : able.capabilities;
    if ((bits & V4L2_CAP_VIDEO_CAPTURE) == 0) {
        if ((bits & V4L2_CAP_VIDEO_CAPTURE_MPLANE) == 0) {
            return Error(Code::invalid_argument, name_ + " captures no video", "name a camera: ls /dev/video*");
        }
        type_ = V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
    }
    if ((bits & V4L2_CAP_STREAMING) != 0) return {};
    return Error(Code::unsupported, name_ + " has no streaming input and output", "read its frames by another program");
}

Result<void> VideoDevice::set_format(const CameraWish& wish) {
    std::vector<std::uint32_t> offered;
    for (std::uint32_t index = 0; index < most_formats; ++index) {
        v4l2_fmtdesc described{};
        described.type = type_;
        described.index = index;
        if (call(VIDIOC_ENUM_FMT, &described) != 0) break;
        offered.push_back(described.pixelformat);
    }
    const Result<std::uint32_t> fourcc = choose_fourcc(offered, wish.format, name_);
    if (!fourcc) return fourcc.error();
    v4l2_format format{};
    format.type = type_;
    if (call(VIDIOC_G_FMT, &format) != 0) return failed("its format is not stated", "ioctl(VIDIOC_G_FMT)");
    const auto ask = [&](auto& pix) {
        pix.pixelformat = *fourcc;
        pix.field = V4L2_FIELD_NONE;
        if (wish.width != 0) pix.width = wish.width;
        if (wish.height != 0) pix.height = wish.height;
    };
    if (multiplanar()) {
        ask(format.fmt.pix_mp);
        format.fmt.pix_mp.num_planes = 1;
        format.fmt.pix_mp.plane_fmt[0] = {};
    } else {
        ask(format.fmt.pix);
        format.fmt.pix.bytesperline = 0;
        format.fmt.pix.sizeimage = 0;
    }
    if (call(VIDIOC_S_FMT, &format) != 0) return failed("its format cannot be set", "ioctl(VIDIOC_S_FMT)");
    Result<VideoFrames> frames = frames_of(format);
    if (!frames) {
        return Error(frames.code(), name_ + ": " + std::string(frames.error().message()),
                     std::string(frames.error().remedy()));
    }
    frames_ = *frames;
    return {};
}

v4l2_buffer VideoDevice::buffer(std::uint32_t index, v4l2_plane& plane) const noexcept {
    v4l2_buffer buffer{};
    buffer.type = type_;
    buffer.memory = memory_;
    buffer.index = index;
    if (multiplanar()) {
        buffer.m.planes = &plane;
        buffer.length = 1;
    }
    return buffer;
}

Result<std::uint32_t> VideoDevice::request(CameraMemory memory, std::uint32_t count) {
    v4l2_requestbuffers wanted{};
    wanted.count = std::min(count, most_buffers);
    wanted.type = type_;
    wanted.memory = memory == CameraMemory::driver ? V4L2_MEMORY_MMAP : V4L2_MEMORY_USERPTR;
    if (call(VIDIOC_REQBUFS, &wanted) != 0) {
        if (errno != EINVAL) return failed("it gives no buffers", "ioctl(VIDIOC_REQBUFS)");
        return Error(Code::unsupported,
                     name_ + (memory == CameraMemory::driver ? " has no buffers of its own"
                                                             : " takes no memory of programs (USERPTR)"),
                     "read its frames by another program");
    }
    memory_ = wanted.memory;
    if (wanted.count == 0 || wanted.count > most_buffers) {
        const std::uint32_t made = wanted.count;
        give_up_buffers();
        return Error(Code::system_error, name_ + " gives " + std::to_string(made) + " buffers", "update its driver");
    }
    count_ = wanted.count;
    queued_ = std::make_unique<bool[]>(count_);
    return count_;
}

Result<FileDescriptor> VideoDevice::export_buffer(std::uint32_t index) {
    v4l2_exportbuffer wanted{};
    wanted.type = type_;
    wanted.index = index;
    wanted.flags = O_CLOEXEC | O_RDWR;
    if (call(VIDIOC_EXPBUF, &wanted) == 0) return FileDescriptor(wanted.fd);
    if (errno != ENOTTY && errno != EINVAL) return failed("it exports no buffer", "ioctl(VIDIOC_EXPBUF)");
    give_up_buffers();
    return Error(Code::unsupported, name_ + " exports no buffers", "give it memory of this program (USERPTR)");
}

Result<void> VideoDevice::queue(std::uint32_t index, void* pages) {
    v4l2_plane plane{};
    v4l2_buffer lent = buffer(index, plane);
    if (memory_ == V4L2_MEMORY_USERPTR) {
        const auto address = reinterpret_cast<unsigned long>(pages);
        const auto bytes = static_cast<std::uint32_t>(frames_.memory_bytes);
        if (multiplanar()) {
            plane.m.userptr = address;
            plane.length = bytes;
        } else {
            lent.m.userptr = address;
            lent.length = bytes;
        }
    }
    if (call(VIDIOC_QBUF, &lent) != 0) return failed("it takes no buffer", "ioctl(VIDIOC_QBUF)");
    queued_[index] = true;
    return {};
}

Result<void> VideoDevice::start() {
    auto type = static_cast<int>(type_);
    if (call(VIDIOC_STREAMON, &type) != 0) return failed("it does not start", "ioctl(VIDIOC_STREAMON)");
    streams_ = true;
    return {};
}

Result<std::optional<FilledBuffer>> VideoDevice::next(int stop_descriptor, int wait_ms) {
    for (;;) {
        v4l2_plane plane{};
        v4l2_buffer filled = buffer(0, plane);
        if (call(VIDIOC_DQBUF, &filled) == 0) {
            if (multiplanar() && plane.data_offset != 0) {
                return Error(
                    Code::unsupported,
                    name_ + " begins its frames " + std::to_string(plane.data_offset) + " bytes behind their buffer's",
                    "read its frames by another program");
            }
            const std::uint32_t used = multiplanar() ? plane.bytesused : filled.bytesused;
            Result<FilledBuffer> checked =
                filled_buffer(filled, used, {queued_.get(), count_}, frames_.shape.size_bytes);
            if (!checked) return std::move(checked).error();
            queued_[checked->index] = false;
            return std::optional<FilledBuffer>(*checked);
        }
        if (errno != EAGAIN) return failed("it gives no frame", "ioctl(VIDIOC_DQBUF)");
        pollfd waits[] = {{fd_, POLLIN, 0}, {stop_descriptor, POLLIN, 0}};
        const int ready = calls_->poll(waits, stop_descriptor < 0 ? 1 : 2, wait_ms);
        if (ready < 0 && errno != EINTR) return failed("waiting for a frame", "poll");
        if (stop_descriptor >= 0 && (waits[1].revents & POLLIN) != 0) return std::optional<FilledBuffer>();
        if (ready == 0) {
            return Error(Code::timed_out, name_ + " gave no frame for " + std::to_string(wait_ms) + " ms",
                         "look at its cable and its link (dmesg), or ask for a lower frame rate");
        }
        if (ready > 0 && (waits[0].revents & POLLERR) != 0) {
            return Error(Code::system_error, name_ + " has stopped", "connect the camera again");
        }
    }
}

// REQBUFS 0 also ends streaming and takes back what is queued; drivers before Linux 4.20 refuse it while dma-bufs are
// open, and then do so when the camera is closed.
void VideoDevice::give_up_buffers() noexcept {
    if (streams_) {
        auto type = static_cast<int>(type_);
        (void)call(VIDIOC_STREAMOFF, &type);
        streams_ = false;
    }
    if (memory_ != 0) {
        v4l2_requestbuffers none{};
        none.type = type_;
        none.memory = memory_;
        (void)call(VIDIOC_REQBUFS, &none);
        memory_ = 0;
    }
    count_ = 0;
    queued_.reset();
}

}  // namespace isthmus::tools::camera
