// SPDX-License-Identifier: Apache-2.0
// Formats and frames of V4L2 drivers.
#include "video_format.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace isthmus::tools::camera {
namespace {

struct Known {
    std::uint32_t fourcc;
    PixelFormat format;
};
// In order of preference. Of Bayer patterns only the brightness is used, so that their order does not matter.
constexpr std::array<Known, 9> known_formats{{{V4L2_PIX_FMT_GREY, PixelFormat::gray},
                                              {V4L2_PIX_FMT_NV12, PixelFormat::nv12},
                                              {V4L2_PIX_FMT_YUV420, PixelFormat::i420},
                                              {V4L2_PIX_FMT_YUYV, PixelFormat::yuyv},
                                              {V4L2_PIX_FMT_UYVY, PixelFormat::uyvy},
                                              {V4L2_PIX_FMT_SBGGR8, PixelFormat::bayer8},
                                              {V4L2_PIX_FMT_SGBRG8, PixelFormat::bayer8},
                                              {V4L2_PIX_FMT_SGRBG8, PixelFormat::bayer8},
                                              {V4L2_PIX_FMT_SRGGB8, PixelFormat::bayer8}}};

constexpr const char* other_ways =
    "decode it before: ffmpeg -f v4l2 -i DEVICE -f yuv4mpegpipe -pix_fmt gray - | isthmus run -";

// The driver's numbers of one memory, from either form of the structure.
struct Sizes {
    std::uint32_t fourcc, width, height, field, pitch_bytes, memory_bytes, memories;
};

std::optional<Sizes> sizes_of(const v4l2_format& format) {
    if (format.type == V4L2_BUF_TYPE_VIDEO_CAPTURE) {
        const v4l2_pix_format& pix = format.fmt.pix;
        return Sizes{pix.pixelformat, pix.width, pix.height, pix.field, pix.bytesperline, pix.sizeimage, 1};
    }
    if (format.type == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE) {
        const v4l2_pix_format_mplane& pix = format.fmt.pix_mp;
        const v4l2_plane_pix_format& plane = pix.plane_fmt[0];
        return Sizes{pix.pixelformat,    pix.width,       pix.height,    pix.field,
                     plane.bytesperline, plane.sizeimage, pix.num_planes};
    }
    return std::nullopt;
}

}  // namespace

std::optional<PixelFormat> pixel_format_of(std::uint32_t fourcc) noexcept {
    for (const Known& known : known_formats) {
        if (known.fourcc == fourcc) return known.format;
    }
    return std::nullopt;
}

std::string fourcc_text(std::uint32_t fourcc) {
    std::string text;
    for (int shift = 0; shift < 32; shift += 8) {
        const auto letter = static_cast<unsigned char>(fourcc >> shift & 0xff);
        if (letter < 0x20 || letter > 0x7e) return std::to_string(fourcc);
        text.push_back(static_cast<char>(letter));
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

Result<std::uint32_t> choose_fourcc(std::span<const std::uint32_t> offered, std::optional<PixelFormat> wanted,
                                    const std::string& camera) {
    for (const Known& known : known_formats) {
        if (wanted && known.format != *wanted) continue;
        if (std::find(offered.begin(), offered.end(), known.fourcc) != offered.end()) return known.fourcc;
    }
    std::string all;
    for (const std::uint32_t fourcc : offered) all += (all.empty() ? "" : ", ") + fourcc_text(fourcc);
    if (all.empty()) all = "no format";
    return Error(
        Code::unsupported,
        camera + " offers " + all + ", and not " + (wanted ? std::string(name(*wanted)) : "any that is read here"),
        wanted ? "ask for another --format, or for none" : other_ways);
}

Result<VideoFrames> frames_of(const v4l2_format& format) {
    const std::optional<Sizes> sizes = sizes_of(format);
    if (!sizes) return Error(Code::unsupported, "the driver answers with a format that is none of captured video");
    const std::optional<PixelFormat> pixels = pixel_format_of(sizes->fourcc);
    if (!pixels) {
        return Error(Code::unsupported, "the driver sets " + fourcc_text(sizes->fourcc) + ", which is not read here",
                     other_ways);
    }
    if (sizes->memories != 1) {
        return Error(Code::unsupported,
                     "the driver puts one frame into " + std::to_string(sizes->memories) + " memories",
                     "ask for another --format");
    }
    const bool whole = sizes->field == V4L2_FIELD_NONE || sizes->field == V4L2_FIELD_INTERLACED ||
                       sizes->field == V4L2_FIELD_INTERLACED_TB || sizes->field == V4L2_FIELD_INTERLACED_BT;
    if (!whole) {
        return Error(Code::unsupported, "the driver gives fields one by one, not whole frames",
                     "set the camera to progressive frames (v4l2-ctl)");
    }
    Result<FrameShape> shape = make_frame_shape(*pixels, sizes->width, sizes->height, sizes->pitch_bytes);
    if (!shape) return std::move(shape).error();
    // Drivers may leave the size out of formats without compression; more is padding behind the frame.
    const std::size_t memory_bytes = std::max<std::size_t>(sizes->memory_bytes, shape->size_bytes);
    if (sizes->memory_bytes != 0 && sizes->memory_bytes < shape->size_bytes) {
        return Error(Code::invalid_argument,
                     "the driver states " + std::to_string(sizes->memory_bytes) + " bytes for frames of " +
                         std::to_string(shape->size_bytes),
                     "ask for another size or --format");
    }
    if (memory_bytes > 8 * max_pixels) {
        return Error(Code::invalid_argument, "frames of " + std::to_string(memory_bytes) + " bytes are too large",
                     "a smaller size");
    }
    return VideoFrames{*shape, memory_bytes};
}

FrameRate frame_rate_of(const v4l2_streamparm& parameters) noexcept {
    const v4l2_fract& time = parameters.parm.capture.timeperframe;
    if ((parameters.parm.capture.capability & V4L2_CAP_TIMEPERFRAME) == 0) return {};
    if (time.numerator == 0 || time.denominator == 0) return {};
    return {time.denominator, time.numerator};
}

Result<FilledBuffer> filled_buffer(const v4l2_buffer& buffer, std::uint32_t bytes_used, std::span<const bool> queued,
                                   std::size_t frame_bytes) {
    if (buffer.index >= queued.size() || !queued[buffer.index]) {
        return Error(
            Code::system_error,
            "the camera's driver answers with buffer " + std::to_string(buffer.index) + ", which it does not have",
            "update the driver");
    }
    const bool whole = (buffer.flags & V4L2_BUF_FLAG_ERROR) == 0 && bytes_used >= frame_bytes;
    return FilledBuffer{buffer.index, whole};
}

Error camera_failure(const std::string& camera, const char* step, const char* call, int error) {
    const std::string text = camera + ": " + step + ": " + std::generic_category().message(error);
    const auto made = [&](Code code, const char* remedy) { return Error(code, text, remedy).from_call(call, error); };
    switch (error) {
        case ENOENT: return made(Code::invalid_argument, "name a camera that is there: ls /dev/video*");
        case ENODEV:
        case ENXIO: return made(Code::invalid_argument, "connect the camera, or load its driver");
        case EBUSY: return made(Code::in_use, "end the program that uses the camera (fuser -v DEVICE)");
        case EACCES:
        case EPERM: return made(Code::not_permitted, "let this user use the camera: a member of the group video");
        case ENOTTY: return made(Code::invalid_argument, "name a camera: ls /dev/video*");
        case ENOMEM: return made(Code::out_of_memory, "ask for a smaller size");
        default: return made(Code::system_error, "see the error of the system, and the kernel's log (dmesg)");
    }
}

}  // namespace isthmus::tools::camera
