// SPDX-License-Identifier: Apache-2.0
// A V4L2 camera that the test makes up: it answers the ioctls as the kernel documents them, and fills buffers that it
// was lent with given frames.
#pragma once

#include "camera/video_device.hpp"
#include "read_frames.hpp"

#include <isthmus/file_descriptor.hpp>

#include <fcntl.h>
#include <linux/videodev2.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

class MadeUpCamera {
public:
    MadeUpCamera() { current_ = this; }
    MadeUpCamera(const MadeUpCamera&) = delete;
    MadeUpCamera& operator=(const MadeUpCamera&) = delete;
    ~MadeUpCamera() { current_ = nullptr; }

    // What it is; set before it is opened.
    std::vector<std::uint32_t> fourccs = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_GREY};
    std::uint32_t width = 64, height = 48, pitch_alignment = 64;
    std::uint32_t memory_bytes = 0;  // 0: those of a frame, in whole pages
    bool multiplanar = false, exports = true, has_mmap = true, takes_pages = true;
    std::uint32_t most_buffers = 4;
    std::vector<Frame> frames;            // with its pitch
    std::vector<std::size_t> damaged;     // numbers of frames with V4L2_BUF_FLAG_ERROR
    std::map<unsigned long, int> errors;  // request → errno
    int open_error = 0;
    int interruptions = 0;          // so many ioctls are interrupted
    std::int64_t wrong_index = -1;  // that DQBUF answers with
    std::uint32_t field = V4L2_FIELD_NONE;
    std::uint32_t data_offset = 0;  // of the plane, where multiplanar
    bool repeats = false;           // the frames, without an end

    // What was done with it.
    std::uint32_t set_fourcc = 0;
    int opened = 0, buffers = 0;  // open descriptors; buffers that exist
    bool streams = false;
    std::size_t filled = 0;

    static const VideoCalls& calls() {
        static constexpr VideoCalls made = {
            [](const char*, int) { return current_->open(); }, [](int) { return --current_->opened, 0; },
            [](int, unsigned long request, void* argument) { return current_->answer(request, argument); },
            [](pollfd* fds, unsigned long count, int wait_ms) { return current_->poll(fds, count, wait_ms); }};
        return made;
    }

private:
    static int fail(int error) {
        errno = error;
        return -1;
    }
    int open() {
        if (open_error != 0) return fail(open_error);
        ++opened;
        return 1000;
    }
    std::uint32_t type() const {
        return multiplanar ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE : V4L2_BUF_TYPE_VIDEO_CAPTURE;
    }
    int poll(pollfd* fds, unsigned long count, int) {
        for (unsigned long at = 0; at < count; ++at) fds[at].revents = 0;
        if (queue_.empty() || filled >= frames.size()) return 0;
        fds[0].revents = POLLIN;
        ready_ = true;
        return 1;
    }
    FrameShape shape() const {
        const PixelFormat pixels = pixel_format_of(set_fourcc).value();
        const std::uint32_t row = make_frame_shape(pixels, width, height).value().pitch_bytes;
        return make_frame_shape(pixels, width, height, (row + pitch_alignment - 1) / pitch_alignment * pitch_alignment)
            .value();
    }
    std::uint32_t bytes_of_memory() const {
        constexpr std::size_t page = 4096;
        return memory_bytes != 0 ? memory_bytes
                                 : static_cast<std::uint32_t>((shape().size_bytes + page - 1) / page * page);
    }
    void describe(v4l2_format& format) const {
        if (set_fourcc == 0) return;
        if (multiplanar) {
            format.fmt.pix_mp.pixelformat = set_fourcc;
            format.fmt.pix_mp.width = width;
            format.fmt.pix_mp.height = height;
            format.fmt.pix_mp.field = field;
            format.fmt.pix_mp.num_planes = 1;
            format.fmt.pix_mp.plane_fmt[0].bytesperline = shape().pitch_bytes;
            format.fmt.pix_mp.plane_fmt[0].sizeimage = bytes_of_memory();
            return;
        }
        format.fmt.pix.pixelformat = set_fourcc;
        format.fmt.pix.width = width;
        format.fmt.pix.height = height;
        format.fmt.pix.field = field;
        format.fmt.pix.bytesperline = shape().pitch_bytes;
        format.fmt.pix.sizeimage = bytes_of_memory();
    }
    int answer(unsigned long request, void* argument) {
        if (interruptions > 0) return --interruptions, fail(EINTR);
        if (const auto found = errors.find(request); found != errors.end()) return fail(found->second);
        switch (request) {
            case VIDIOC_QUERYCAP: {
                auto& able = *static_cast<v4l2_capability*>(argument);
                std::memcpy(able.card, "made up", 8);
                able.capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE;
                able.device_caps =
                    V4L2_CAP_STREAMING | (multiplanar ? V4L2_CAP_VIDEO_CAPTURE_MPLANE : V4L2_CAP_VIDEO_CAPTURE);
                return 0;
            }
            case VIDIOC_ENUM_FMT: {
                auto& described = *static_cast<v4l2_fmtdesc*>(argument);
                if (described.type != type() || described.index >= fourccs.size()) return fail(EINVAL);
                described.pixelformat = fourccs[described.index];
                return 0;
            }
            case VIDIOC_G_FMT:
            case VIDIOC_S_FMT: {
                auto& format = *static_cast<v4l2_format*>(argument);
                if (format.type != type()) return fail(EINVAL);
                if (request == VIDIOC_S_FMT)
                    set_fourcc = multiplanar ? format.fmt.pix_mp.pixelformat : format.fmt.pix.pixelformat;
                describe(format);
                return 0;
            }
            case VIDIOC_G_PARM: {
                auto& parameters = *static_cast<v4l2_streamparm*>(argument);
                parameters.parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
                parameters.parm.capture.timeperframe = {1, 30};
                return 0;
            }
            case VIDIOC_REQBUFS: return make_buffers(*static_cast<v4l2_requestbuffers*>(argument));
            case VIDIOC_EXPBUF: {
                auto& wanted = *static_cast<v4l2_exportbuffer*>(argument);
                if (!exports) return fail(ENOTTY);
                if (wanted.index >= memory_.size()) return fail(EINVAL);
                wanted.fd = ::fcntl(memory_[wanted.index].get(), F_DUPFD_CLOEXEC, 3);
                return wanted.fd < 0 ? -1 : 0;
            }
            case VIDIOC_QBUF: return lend(*static_cast<v4l2_buffer*>(argument));
            case VIDIOC_STREAMON: return streams = true, 0;
            case VIDIOC_STREAMOFF: return streams = false, queue_.clear(), 0;
            case VIDIOC_DQBUF: return fill(*static_cast<v4l2_buffer*>(argument));
            default: return fail(ENOTTY);
        }
    }
    int make_buffers(v4l2_requestbuffers& wanted) {
        if (wanted.memory == V4L2_MEMORY_MMAP ? !has_mmap : !takes_pages) return fail(EINVAL);
        memory_.clear();
        wanted.count = std::min(wanted.count, most_buffers);
        for (std::uint32_t at = 0; at < wanted.count && wanted.memory == V4L2_MEMORY_MMAP; ++at) {
            memory_.emplace_back(::memfd_create("frame", MFD_CLOEXEC));
            if (::ftruncate(memory_.back().get(), bytes_of_memory()) != 0) std::abort();
        }
        buffers = static_cast<int>(wanted.count);
        return 0;
    }
    struct Lent {
        std::uint32_t index;
        unsigned long pages;  // 0: the driver's own
    };
    int lend(const v4l2_buffer& lent) {
        if (lent.index >= static_cast<std::uint32_t>(buffers) || (multiplanar && lent.length != 1)) return fail(EINVAL);
        unsigned long pages = 0;
        if (lent.memory == V4L2_MEMORY_USERPTR) {
            pages = multiplanar ? lent.m.planes[0].m.userptr : lent.m.userptr;
            const std::uint32_t bytes = multiplanar ? lent.m.planes[0].length : lent.length;
            if (pages % 4096 != 0 || bytes < bytes_of_memory()) return fail(EFAULT);
        }
        queue_.push_back({lent.index, pages});
        return 0;
    }
    int fill(v4l2_buffer& answered) {
        if (!ready_ || queue_.empty() || filled >= frames.size()) return fail(EAGAIN);
        ready_ = false;
        const Lent to = queue_.front();
        queue_.pop_front();
        const Frame& frame = frames[filled];
        if (to.pages != 0) {
            std::memcpy(reinterpret_cast<void*>(to.pages), frame.data(), frame.size());
        } else if (::pwrite(memory_[to.index].get(), frame.data(), frame.size(), 0) !=
                   static_cast<ssize_t>(frame.size())) {
            std::abort();
        }
        answered.index = wrong_index >= 0 ? static_cast<std::uint32_t>(wrong_index) : to.index;
        answered.flags = 0;
        for (const std::size_t number : damaged) {
            if (number == filled) answered.flags = V4L2_BUF_FLAG_ERROR;
        }
        if (multiplanar) answered.m.planes[0].data_offset = data_offset;
        (multiplanar ? answered.m.planes[0].bytesused : answered.bytesused) = static_cast<std::uint32_t>(frame.size());
        ++filled;
        if (repeats && filled == frames.size()) filled = 0;
        return 0;
    }

    static inline MadeUpCamera* current_ = nullptr;
    std::vector<FileDescriptor> memory_;
    std::deque<Lent> queue_;
    bool ready_ = false;
};

}  // namespace isthmus::tools::camera
