// SPDX-License-Identifier: Apache-2.0
// Computes the place of the window in a picture, and copies the window into a frame.
#include "panning.hpp"

#include <algorithm>

namespace isthmus::tools::camera {
namespace {

// Moves to and fro over [0, room].
std::uint32_t bounce(std::uint64_t way, std::uint32_t room) {
    if (room == 0) return 0;
    const auto phase = static_cast<std::uint32_t>(way % (2 * std::uint64_t{room}));
    return phase <= room ? phase : 2 * room - phase;
}

class PannedReader final : public FrameReader {
public:
    PannedReader(const FrameShape& window, const PictureFacts& facts, std::vector<std::uint8_t> picture,
                 std::uint64_t frames)
        : pixels_(std::move(picture)), frames_(frames) {
        shape_ = window;
        frames_expected_ = frames;
        picture_ = facts;
    }
    Result<Got> read(std::span<std::uint8_t> frame) override {
        if (next_ == frames_) return Got::nothing;
        const WindowPlace place =
            window_place(next_++, picture_->width - shape_.width, picture_->height - shape_.height);
        for (std::uint32_t y = 0; y < shape_.height; ++y) {
            const std::uint8_t* row = pixels_.data() + std::size_t{place.y + y} * picture_->width + place.x;
            std::copy_n(row, shape_.width, frame.data() + std::size_t{y} * shape_.pitch_bytes);
        }
        return Got::all;
    }

private:
    std::vector<std::uint8_t> pixels_;
    std::uint64_t frames_;
    std::uint64_t next_ = 0;
};

}  // namespace

WindowPlace window_place(std::uint64_t frame, std::uint32_t room_x, std::uint32_t room_y) noexcept {
    return {bounce(frame * 3, room_x), bounce(frame * 2, room_y)};
}

Result<std::unique_ptr<FrameReader>> open_picture(const PictureFacts& facts, std::vector<std::uint8_t> picture,
                                                  std::uint64_t frames) {
    const std::uint32_t part = frames > 1 ? 8 : 0;  // 1/8 of the picture is the room to move
    const auto side = [part](std::uint32_t whole) { return part == 0 ? whole : whole - whole / part; };
    Result<FrameShape> window = make_frame_shape(PixelFormat::gray, side(facts.width), side(facts.height));
    if (!window) return std::move(window).error();
    return std::unique_ptr<FrameReader>(
        std::make_unique<PannedReader>(*window, facts, std::move(picture), frames > 1 ? frames : 1));
}

}  // namespace isthmus::tools::camera
