// SPDX-License-Identifier: Apache-2.0
// The made-up camera has a pipe as its descriptor: the kernel refuses each ioctl (ENOTTY; an emulator
// may answer otherwise) and changes nothing.
#include "ioctl_camera.hpp"

#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace conformance {
namespace {

using isthmus::tools::camera::VideoCalls;

constexpr std::uint32_t width = 64, height = 48, frame_bytes = width * height;
constexpr std::uint32_t memory_bytes = 4096;
constexpr std::uint32_t most = 32;

struct MadeUp {
    struct Lent {
        std::uint32_t index;
        unsigned long pages;
    };
    std::array<int, 2> pipe{-1, -1};
    std::array<Lent, most> queue{};  // a ring, so that no call takes memory
    std::uint32_t first = 0, queued = 0, buffers = 0;
    unsigned frames = 0;
    bool late = false;
};
MadeUp camera;

int fail(int error) {
    errno = error;
    return -1;
}

int made_up_open(const char*, int) {
    if (::pipe2(camera.pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    if (::write(camera.pipe[1], "f", 1) != 1) return -1;  // readable from now on, as a camera that has a frame
    return camera.pipe[0];
}
int made_up_close(int fd) {
    (void)::close(camera.pipe[1]);
    return ::close(fd);
}

int lend(const v4l2_buffer& lent) {
    if (lent.memory != V4L2_MEMORY_USERPTR || lent.index >= camera.buffers || camera.queued == most) {
        return fail(EINVAL);
    }
    camera.queue[(camera.first + camera.queued++) % most] = {lent.index, lent.m.userptr};
    return 0;
}
int fill(v4l2_buffer& answered) {
    if (camera.queued == 0) return fail(EAGAIN);
    if (camera.frames % 8 == 7 && !camera.late) {
        camera.late = true;
        return fail(EAGAIN);
    }
    camera.late = false;
    const MadeUp::Lent to = camera.queue[camera.first % most];
    ++camera.first;
    --camera.queued;
    std::memset(reinterpret_cast<void*>(to.pages), static_cast<unsigned char>(camera.frames), frame_bytes);
    ++camera.frames;
    answered.index = to.index;
    answered.flags = 0;
    answered.bytesused = frame_bytes;
    return 0;
}

int answer(unsigned long request, void* argument) {
    switch (request) {
        case VIDIOC_QUERYCAP: {
            auto& able = *static_cast<v4l2_capability*>(argument);
            std::memcpy(able.card, "made-up", sizeof "made-up");
            able.capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
            return 0;
        }
        case VIDIOC_ENUM_FMT: {
            auto& described = *static_cast<v4l2_fmtdesc*>(argument);
            if (described.index != 0) return fail(EINVAL);
            described.pixelformat = V4L2_PIX_FMT_GREY;
            return 0;
        }
        case VIDIOC_G_FMT:
        case VIDIOC_S_FMT: {
            auto& pix = static_cast<v4l2_format*>(argument)->fmt.pix;
            pix.width = width;
            pix.height = height;
            pix.pixelformat = V4L2_PIX_FMT_GREY;
            pix.field = V4L2_FIELD_NONE;
            pix.bytesperline = width;
            pix.sizeimage = memory_bytes;
            return 0;
        }
        case VIDIOC_REQBUFS: {
            auto& wanted = *static_cast<v4l2_requestbuffers*>(argument);
            if (wanted.memory != V4L2_MEMORY_USERPTR) return fail(EINVAL);
            camera.buffers = wanted.count;
            return 0;
        }
        case VIDIOC_STREAMON: return 0;
        case VIDIOC_STREAMOFF: return camera.queued = 0, 0;
        case VIDIOC_QBUF: return lend(*static_cast<v4l2_buffer*>(argument));
        case VIDIOC_DQBUF: return fill(*static_cast<v4l2_buffer*>(argument));
        default: return fail(ENOTTY);
    }
}
int made_up_ioctl(int fd, unsigned long request, void* argument) {
    if (::ioctl(fd, request, argument) == 0) return fail(EIO);
    return answer(request, argument);
}

int call_open(const char* path, int flags) {
    return ::open(path, flags);
}
int call_ioctl(int fd, unsigned long request, void* argument) {
    return ::ioctl(fd, request, argument);
}
// One name on every processor: some have no system call `poll`.
int call_poll(pollfd* waits, unsigned long count, int timeout_ms) {
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
    return ::ppoll(waits, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

constexpr VideoCalls made_up = {made_up_open, made_up_close, made_up_ioctl, call_poll};
constexpr VideoCalls real = {call_open, ::close, call_ioctl, call_poll};

}  // namespace

std::string camera_of_this_machine() {
    const char* const named = std::getenv("ISTHMUS_TEST_CAMERA");
    return named != nullptr ? named : "";
}

const VideoCalls& calls_of(const std::string& camera_path) {
    return camera_path.empty() ? made_up : real;
}

bool is_frame(const std::string& camera_path, unsigned char pixel, unsigned number) {
    return !camera_path.empty() || pixel == static_cast<unsigned char>(number);
}

}  // namespace conformance
