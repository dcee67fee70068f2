// SPDX-License-Identifier: Apache-2.0
// Recognises the format of the input, reads raw frames, and ends a stream after the wanted number of frames.
#include "frame_reader.hpp"

#include "camera/picture_config.hpp"

#include <string>

namespace isthmus::tools::camera {
namespace {

class RawReader final : public FrameReader {
public:
    RawReader(std::unique_ptr<ByteSource> source, const FrameShape& shape) : source_(std::move(source)) {
        shape_ = shape;
    }
    Result<Got> read(std::span<std::uint8_t> frame) override { return source_->read(frame); }

private:
    std::unique_ptr<ByteSource> source_;
};

class LimitedReader final : public FrameReader {
public:
    LimitedReader(std::unique_ptr<FrameReader> reader, std::uint64_t frames)
        : reader_(std::move(reader)), left_(frames) {
        shape_ = reader_->shape();
        rate_ = reader_->rate();
        frames_expected_ = frames;
        picture_ = reader_->picture();
    }
    Result<Got> read(std::span<std::uint8_t> frame) override {
        if (left_ == 0) return Got::nothing;
        --left_;
        return reader_->read(frame);
    }

private:
    std::unique_ptr<FrameReader> reader_;
    std::uint64_t left_;
};

Error not_built(const ByteSource& source, const std::string& format, const char* library, const char* converter) {
    return {Code::unsupported,
            source.name() + " looks like a " + format + " picture, and this isthmus was built without " + library,
            "convert it: " + std::string(converter) + " FILE | isthmus run -"};
}

Result<std::unique_ptr<FrameReader>> open_any(std::unique_ptr<ByteSource> source, const InputOptions& options) {
    if (options.raw) return std::unique_ptr<FrameReader>(std::make_unique<RawReader>(std::move(source), *options.raw));
    Result<int> first = source->peek();
    if (!first) return std::move(first).error();
    switch (*first) {
        case 'Y': return open_y4m(std::move(source));
        case 'P': return open_pnm(std::move(source), options.frames);
        case 0xff:
            if constexpr (with_jpeg) return open_jpeg(std::move(source), options.frames);
            return not_built(*source, "JPEG", "libjpeg", "djpeg -pnm");
        case 0x89:
            if constexpr (with_png) return open_png(std::move(source), options.frames);
            return not_built(*source, "PNG", "libpng", "pngtopnm");
        case -1: return Error(Code::invalid_argument, source->name() + " is empty");
        case -2: return stopped_by_signal(*source);
        default: break;
    }
    return Error(
        Code::invalid_argument,
        source->name() + " is neither YUV4MPEG2 nor a picture in PGM, PPM (P5, P6), JPEG or PNG",
        "convert it (ffmpeg -f yuv4mpegpipe); `isthmus run` takes raw frames with --format, --width, --height");
}

}  // namespace

Error stopped_by_signal(const ByteSource& source) {
    return {Code::not_ready, "a signal ended the reading of " + source.name()};
}

Result<std::unique_ptr<FrameReader>> open_frames(std::unique_ptr<ByteSource> source, const InputOptions& options) {
    Result<std::unique_ptr<FrameReader>> reader = open_any(std::move(source), options);
    if (!reader || options.frames == 0) return reader;
    return std::unique_ptr<FrameReader>(std::make_unique<LimitedReader>(std::move(reader).value(), options.frames));
}

}  // namespace isthmus::tools::camera
