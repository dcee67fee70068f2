// SPDX-License-Identifier: Apache-2.0
// Step 2: a buffer that the CPU and the GPU share.
#include <isthmus/isthmus.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();

    constexpr std::size_t width = 640;
    constexpr std::size_t height = 480;
    auto frame = device
                     .allocate_shared<std::uint8_t>(
                         width * height, {.host = isthmus::Use::reads_and_writes, .device = isthmus::Use::writes_once})
                     .value();
    std::printf("memory: %s\n", std::string(frame.explain()).c_str());

    {
        auto pixels = frame.write_on_host().value();  // in this scope the CPU writes every element
        for (std::uint8_t& pixel : pixels) pixel = 1;
    }                                            // the view closes here
    device.fill(frame, 9).value();               // work for the device; the call does not wait for it
    auto pixels = frame.read_on_host().value();  // waits for the fill
    std::printf("first pixel: %d\n", pixels[0]);
    return pixels[0] == 9 ? 0 : 1;
}
