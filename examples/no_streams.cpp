// SPDX-License-Identifier: Apache-2.0
// The first level of use: no streams. All operations run on the device's current stream, in program order; views wait
// for the operations on their buffer.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.current_device();

    constexpr std::size_t size = 640 * 480;
    auto camera = device.allocate_shared<std::uint8_t>(size, {.host = isthmus::Use::writes_often}).value();
    auto picture = device.allocate<std::uint8_t>(size).value();
    auto shown = device.allocate_shared<std::uint8_t>(size, {.host = isthmus::Use::reads_once}).value();

    for (std::uint8_t frame = 0; frame < 4; ++frame) {
        {
            auto pixels = camera.write_on_host().value();  // waits for the copy of the previous frame
            for (auto& pixel : pixels) pixel = frame;
        }
        device.copy(picture, camera).value();
        device.launch(brighten, size, picture, 40).value();  // runs after the copy; does not wait
        device.copy(shown, picture).value();
        const auto pixels = shown.read_on_host().value();  // waits for the second copy
        if (pixels[0] != frame + 40) return 1;
    }
    std::printf("4 frames on %.*s\n", static_cast<int>(device.name().size()), device.name().data());
    return 0;
}
