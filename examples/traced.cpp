// SPDX-License-Identifier: Apache-2.0
// Three frames of a picture that CPU and GPU work on by turns, recorded: ISTHMUS_TRACE=trace.json names the file.
#include <isthmus/chrome_trace.hpp>
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    // Records nothing without ISTHMUS_TRACE. Made before the runtime, and so closed after it.
    isthmus::ChromeTrace trace = isthmus::ChromeTrace::from_environment().value();
    isthmus::RuntimeOptions options;
    options.launch_mode = isthmus::LaunchMode::checked;
    options.observer = trace.callbacks();
    isthmus::Runtime runtime = isthmus::Runtime::open(options).value();
    isthmus::Device& device = runtime.default_device();

    constexpr std::size_t size = 640 * 480;
    auto picture = device.allocate_shared<std::uint8_t>(size, {.host = isthmus::Use::writes_often}).value();
    for (std::uint8_t frame = 0; frame < 3; ++frame) {
        {
            auto pixels = picture.write_on_host().value();
            for (auto& pixel : pixels) pixel = frame;
        }
        device.launch(brighten, size, picture, 40).value();
        const auto pixels = picture.read_on_host().value();
        if (pixels[0] != frame + 40) return 1;
        // Refused, because the view is open: the trace says so, too.
        if (device.launch(brighten, size, picture, 40).ok()) return 1;
    }
    std::printf("%s", runtime.counters_text().c_str());
    return 0;
}
