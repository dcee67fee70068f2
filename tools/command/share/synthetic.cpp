// SPDX-License-Identifier: Apache-2.0
// Squares of 16 pixels that move right and down, each with a shade of its own.
#include "synthetic.hpp"

namespace isthmus::tools::share {
namespace {

class SyntheticReader : public camera::FrameReader {
public:
    SyntheticReader(const camera::FrameShape& shape, std::uint64_t frames) {
        shape_ = shape;
        frames_expected_ = frames;
    }
    Result<camera::Got> read(std::span<std::uint8_t> frame) override {
        if (frames_expected_ != 0 && next_ == frames_expected_) return camera::Got::nothing;
        for (std::uint32_t y = 0; y < shape_.height; ++y) {
            const std::uint64_t row = (y + next_) / 16 * 7;
            std::uint8_t* const pixels = frame.data() + std::size_t{y} * shape_.pitch_bytes;
            for (std::uint32_t x = 0; x < shape_.width; ++x) {
                pixels[x] = static_cast<std::uint8_t>(((x + 2 * next_) / 16 * 29 + row) * 37);
            }
        }
        ++next_;
        return camera::Got::all;
    }

private:
    std::uint64_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<camera::FrameReader>> open_synthetic(std::uint64_t width, std::uint64_t height,
                                                            std::uint64_t frames) {
    Result<camera::FrameShape> shape = camera::make_frame_shape(camera::PixelFormat::gray, width, height);
    if (!shape) return std::move(shape).error();
    return std::unique_ptr<camera::FrameReader>(std::make_unique<SyntheticReader>(*shape, frames));
}

}  // namespace isthmus::tools::share
