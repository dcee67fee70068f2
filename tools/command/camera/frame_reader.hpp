// SPDX-License-Identifier: Apache-2.0
// FrameReader: frames one after the other, from YUV4MPEG2, PGM and PPM, JPEG, PNG, or raw bytes of a stated format.
#pragma once

#include "byte_source.hpp"
#include "frame_shape.hpp"

#include <isthmus/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace isthmus::tools::camera {

struct FrameRate {
    std::uint32_t numerator = 25;
    std::uint32_t denominator = 1;
};

// The picture that frames are made from, where the input is a picture. Frames have its luma; panned frames are smaller.
struct PictureFacts {
    std::string_view format;  // "PGM", "PPM", "JPEG", "PNG"
    bool colour = false;
    std::uint32_t width = 0;  // pixels, in upright orientation
    std::uint32_t height = 0;
};

class FrameReader {
public:
    virtual ~FrameReader() = default;
    const FrameShape& shape() const noexcept { return shape_; }
    FrameRate rate() const noexcept { return rate_; }
    std::uint64_t frames_expected() const noexcept { return frames_expected_; }  // 0: unknown
    const std::optional<PictureFacts>& picture() const noexcept { return picture_; }

    // Reads the next frame into shape().size_bytes bytes. Returns Got::nothing after the last one.
    virtual Result<Got> read(std::span<std::uint8_t> frame) = 0;

protected:
    FrameShape shape_{};
    FrameRate rate_{};
    std::uint64_t frames_expected_ = 0;
    std::optional<PictureFacts> picture_{};
};

struct InputOptions {
    std::optional<FrameShape> raw{};  // the bytes are frames of this shape, without any header
    // the most frames to read; a single picture is panned into this many; 0: all that the input has
    std::uint64_t frames = 0;
};

// Reads as much as is needed to know the shape. Errors: invalid_argument (unknown format, truncated, unusable sizes),
// unsupported (this build cannot read the format), system_error (the system cannot read it), not_ready (a signal asked
// to stop).
Result<std::unique_ptr<FrameReader>> open_frames(std::unique_ptr<ByteSource> source, const InputOptions& options);

// The readers behind open_frames, one per format; `source` stands at the format's magic number.
Result<std::unique_ptr<FrameReader>> open_y4m(std::unique_ptr<ByteSource> source);
Result<std::unique_ptr<FrameReader>> open_pnm(std::unique_ptr<ByteSource> source, std::uint64_t frames);
// Read one picture each, and nothing after it. Declared only where the build has the library (picture_config.hpp).
Result<std::unique_ptr<FrameReader>> open_jpeg(std::unique_ptr<ByteSource> source, std::uint64_t frames);
Result<std::unique_ptr<FrameReader>> open_png(std::unique_ptr<ByteSource> source, std::uint64_t frames);
Error stopped_by_signal(const ByteSource& source);

}  // namespace isthmus::tools::camera
