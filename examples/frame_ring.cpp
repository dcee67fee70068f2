// SPDX-License-Identifier: Apache-2.0
// A camera's frames in memory that the runtime did not allocate: they circulate between the camera's thread, which
// writes them, and the GPU, which uses them in place where the machine allows that.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    constexpr std::size_t size = 640 * 480;
    constexpr int frames = 20;

    // Three frames, as a camera's driver would map them. The runtime calls `release` when nothing uses a frame any
    // more.
    std::vector<isthmus::Buffer<std::uint8_t>> mapped;
    for (int at = 0; at < 3; ++at) {
        isthmus::AdoptOptions options;
        options.use = {.host = isthmus::Use::reads_and_writes, .device = isthmus::Use::reads_and_writes};
        options.release = [](void* frame, std::size_t) { std::free(frame); };
        mapped.push_back(device.adopt<std::uint8_t>(std::aligned_alloc(4096, size), size, std::move(options)).value());
    }
    std::printf("frames: %.*s\n", static_cast<int>(mapped[0].explain().size()), mapped[0].explain().data());
    auto ring = isthmus::FrameRing<std::uint8_t>::create(device, std::move(mapped), isthmus::WhenFull::wait).value();

    std::thread camera([&] {
        for (int number = 0; number < frames; ++number) {
            auto frame = ring.begin_frame().value();
            {
                auto pixels = frame.buffer().write_on_host().value();  // waits for the GPU's use of the old content
                for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(number);
            }
            frame.publish();
        }
        ring.close();
    });

    int right = 0;
    for (;;) {
        auto frame = ring.next_frame();
        if (!frame) break;  // closed, and no frame is left
        device.stream().launch(brighten, size, frame->buffer(), 40).value();
        auto pixels = frame->buffer().read_on_host().value();  // waits for that launch
        if (pixels[0] == frame->number() + 40 && pixels[size - 1] == pixels[0]) ++right;
    }
    camera.join();
    const isthmus::RingCounts counts = ring.counts();
    std::printf("%d of %d frames were right; %llu published, %llu dropped\n", right, frames,
                static_cast<unsigned long long>(counts.produced), static_cast<unsigned long long>(counts.dropped));
    return right == frames ? 0 : 1;
}
