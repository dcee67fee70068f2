// SPDX-License-Identifier: Apache-2.0
// Step 5: a camera loop. One thread writes frames; the other finds what moved between two frames.
#include <isthmus/isthmus.hpp>

#include "motion.hpp"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace {

constexpr std::size_t width = 320;
constexpr std::size_t height = 240;
constexpr std::size_t square = 8;  // pixels
constexpr int frames = 30;

using Frame = isthmus::ReadyFrame<std::uint8_t>;

// The camera of this example: a bright square on a dark ground, 4 pixels further to the right in each frame.
void expose(std::span<std::uint8_t> pixels, std::size_t number) {
    for (std::uint8_t& pixel : pixels) pixel = 20;
    for (std::size_t y = 100; y < 100 + square; ++y) {
        for (std::size_t x = 0; x < square; ++x) pixels[y * width + 4 * number + x] = 220;
    }
}

// The leftmost and the rightmost column in which a pixel changed.
struct Motion {
    std::size_t first = width;
    std::size_t last = 0;
};

isthmus::Result<Motion> find_motion(isthmus::Stream& stream, isthmus::Buffer<std::uint8_t>& moved, const Frame& now,
                                    const Frame& before) {
    ISTHMUS_TRY(stream.launch(mark_motion, width * height, moved, now.buffer(), before.buffer(), 50));
    ISTHMUS_TRY(const auto marks, moved.read_on_host());  // waits for the kernel
    Motion motion;
    for (std::size_t at = 0; at < marks.size(); ++at) {
        if (marks[at] == 0) continue;
        if (at % width < motion.first) motion.first = at % width;
        if (at % width > motion.last) motion.last = at % width;
    }
    return motion;
}

void produce(isthmus::FrameRing<std::uint8_t>& ring) {
    for (std::size_t number = 0; number < frames; ++number) {
        auto frame = ring.begin_frame();  // waits for a free buffer
        if (!frame) break;                // the consumer closed the ring
        {
            auto pixels = frame->buffer().write_on_host();  // waits for kernels that still read this buffer
            if (!pixels) break;
            expose(pixels->span(), number);
        }
        frame->publish();
    }
    ring.close();
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    // Everything is allocated before the loop: 4 frames, and the result of the kernel.
    auto ring = isthmus::FrameRing<std::uint8_t>::create(device, width * height, {.frames = 4}).value();
    auto moved = device
                     .allocate_shared<std::uint8_t>(
                         width * height, {.host = isthmus::Use::reads_once, .device = isthmus::Use::writes_once})
                     .value();

    std::thread camera([&] { produce(ring); });
    std::optional<Frame> before;
    int right = 0;
    for (;;) {
        auto frame = ring.next_frame();
        if (frame.code() == isthmus::Code::ended) break;  // closed, and every frame was taken
        if (!frame) {
            std::fprintf(stderr, "%s\n", frame.error().text().c_str());
            break;
        }
        if (before) {
            const auto motion = find_motion(device.stream(), moved, *frame, *before);
            if (!motion) {
                std::fprintf(stderr, "%s\n", motion.error().text().c_str());
                break;
            }
            const std::size_t left = 4 * before->number();
            if (motion->first == left && motion->last == left + 4 + square - 1) ++right;
        }
        before = std::move(*frame);  // the frame before it goes back to the camera
    }
    ring.close();
    before.reset();
    camera.join();
    std::printf("motion found in %d of %d pairs of frames\n", right, frames - 1);
    return right == frames - 1 ? 0 : 1;
}
