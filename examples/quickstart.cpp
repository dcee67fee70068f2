// SPDX-License-Identifier: Apache-2.0
// The CPU writes a picture, the GPU brightens it, the CPU reads it: the same program on every machine.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    // All GPUs and the CPU. Calls that can fail return a Result; value() returns its value or throws.
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();

    // The declared use and the machine decide the memory: pinned, managed, plain, or a copy on each side.
    constexpr std::size_t size = 640 * 480;
    auto picture = device
                       .allocate_shared<std::uint8_t>(
                           size, {.host = isthmus::Use::writes_often, .device = isthmus::Use::reads_and_writes})
                       .value();
    {
        auto pixels = picture.write_on_host().value();  // writes every element; GPU use is refused meanwhile
        for (std::size_t i = 0; i < size; ++i) pixels[i] = static_cast<std::uint8_t>(i % 256);
    }
    stream.launch(brighten, size, picture, 40).value();  // checked at compile time; does not wait
    auto pixels = picture.read_on_host().value();        // waits for that launch only

    std::printf("%.*s: pixel 7 was 7 and is %d; pixel 250 was 250 and is %d\n", static_cast<int>(device.name().size()),
                device.name().data(), pixels[7], pixels[250]);
    std::printf("memory: %.*s\n", static_cast<int>(picture.explain().size()), picture.explain().data());
    return pixels[7] == 47 && pixels[250] == 255 ? 0 : 1;
}
