// SPDX-License-Identifier: Apache-2.0
// Writes videos in 4:4:4, and series of pictures.
#include "overlay_writer.hpp"

#include "picture_encoders.hpp"

#include <cstdio>
#include <optional>

namespace isthmus::tools::camera {
namespace {

// The rounding of luma_of().
std::uint8_t at_most_255(std::int32_t value) {
    return static_cast<std::uint8_t>(value > 255 ? 255 : value);
}
std::uint8_t blue_difference_of(Colour c) {
    return at_most_255((-11056 * c.red - 21712 * c.green + 32768 * c.blue + (128 << 16) + 32768) >> 16);
}
std::uint8_t red_difference_of(Colour c) {
    return at_most_255((32768 * c.red - 27440 * c.green - 5328 * c.blue + (128 << 16) + 32768) >> 16);
}

class VideoWriter final : public OverlayWriter {
public:
    VideoWriter(AtomicFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    Result<void> begin(std::uint32_t width, std::uint32_t height, FrameRate rate) {
        return file_.write("YUV4MPEG2 W" + std::to_string(width) + " H" + std::to_string(height) + " F" +
                           std::to_string(rate.numerator) + ":" + std::to_string(rate.denominator) +
                           " Ip A1:1 C444 XCOLORRANGE=FULL\n");
    }
    Result<void> write(const Canvas& canvas) override {
        bytes_.clear();
        for (std::uint8_t (*component)(Colour) : {&luma_of, &blue_difference_of, &red_difference_of})
            for (const Colour& pixel : canvas.pixels()) bytes_.push_back(component(pixel));
        if (Result<void> written = file_.write("FRAME\n"); !written) return written;
        any_ = true;
        return file_.write(bytes_);
    }
    Result<std::vector<std::string>> finish(OutputFiles& files) override {
        if (!any_) return std::vector<std::string>{};
        if (Result<void> added = files.add(std::move(file_)); !added) return std::move(added).error();
        return std::vector<std::string>{path_};
    }

private:
    AtomicFile file_;
    std::string path_;
    std::vector<std::uint8_t> bytes_;
    bool any_ = false;
};

class PictureWriter final : public OverlayWriter {
public:
    PictureWriter(AtomicFile alone, std::string path, PictureEncoder encoder)
        : alone_(std::move(alone)), path_(std::move(path)), encoder_(encoder) {}

    // The first picture is held back: its name depends on whether a second one follows.
    Result<void> write(const Canvas& canvas) override {
        if (numbered_.empty() && !first_) {
            first_ = canvas;
            return {};
        }
        if (first_) {
            if (Result<void> written = write_numbered(*first_); !written) return written;
            first_.reset();
        }
        return write_numbered(canvas);
    }
    Result<std::vector<std::string>> finish(OutputFiles& files) override {
        std::vector<std::string> names;
        if (first_) {
            if (Result<void> written = encoder_.encode(*first_, alone_); !written) return std::move(written).error();
            if (Result<void> added = files.add(std::move(alone_)); !added) return std::move(added).error();
            names.push_back(path_);
        }
        for (AtomicFile& file : numbered_) {
            if (Result<void> added = files.add(std::move(file)); !added) return std::move(added).error();
            names.push_back(numbered(names.size()));
        }
        return names;
    }

private:
    Result<void> write_numbered(const Canvas& canvas) {
        Result<AtomicFile> file = AtomicFile::create(numbered(numbered_.size()));
        if (!file) return std::move(file).error();
        if (Result<void> written = encoder_.encode(canvas, *file); !written) return written;
        if (Result<void> finished = file->finish(); !finished) return finished;
        numbered_.push_back(std::move(file).value());
        return {};
    }
    // picture.jpeg → picture-0000.jpeg
    std::string numbered(std::size_t at) const {
        char number[24];
        std::snprintf(number, sizeof number, "-%04zu", at);
        const std::size_t dot = path_.rfind('.');
        return path_.substr(0, dot) + number + path_.substr(dot);
    }
    AtomicFile alone_;  // for one picture; begun first, so that an unwritable directory is found before the first frame
    std::optional<Canvas> first_{};  // set while it is the only picture
    std::vector<AtomicFile> numbered_{};
    std::string path_;
    PictureEncoder encoder_;
};

}  // namespace

Result<void> check_overlay_name(const std::string& path) {
    if (extension_of(path) == ".y4m") return {};
    Result<PictureEncoder> encoder = picture_encoder(path);
    if (!encoder) return std::move(encoder).error();
    return {};
}

Result<std::unique_ptr<OverlayWriter>> open_overlay(const std::string& path, std::uint32_t width, std::uint32_t height,
                                                    FrameRate rate) {
    if (Result<void> good = check_overlay_name(path); !good) return std::move(good).error();
    Result<AtomicFile> file = AtomicFile::create(path);
    if (!file) return std::move(file).error();
    if (extension_of(path) == ".y4m") {
        auto video = std::make_unique<VideoWriter>(std::move(file).value(), path);
        if (Result<void> begun = video->begin(width, height, rate); !begun) return std::move(begun).error();
        return std::unique_ptr<OverlayWriter>(std::move(video));
    }
    return std::unique_ptr<OverlayWriter>(
        std::make_unique<PictureWriter>(std::move(file).value(), path, picture_encoder(path).value()));
}

}  // namespace isthmus::tools::camera
