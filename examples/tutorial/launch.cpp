// SPDX-License-Identifier: Apache-2.0
// Step 3: launch a kernel. Step 4: handle an error.
#include <isthmus/isthmus.hpp>

#include "motion.hpp"

#include <cstdint>
#include <cstdio>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();

    // show: launch
    constexpr std::size_t pixels = 640 * 480;
    const isthmus::SharedUse input{.host = isthmus::Use::writes_often, .device = isthmus::Use::reads_once};
    const isthmus::SharedUse output{.host = isthmus::Use::reads_once, .device = isthmus::Use::writes_once};
    auto now = device.allocate_shared<std::uint8_t>(pixels, input).value();
    auto before = device.allocate_shared<std::uint8_t>(pixels, input).value();
    auto moved = device.allocate_shared<std::uint8_t>(pixels, output).value();
    for (std::uint8_t& pixel : before.write_on_host().value()) pixel = 10;
    for (std::uint8_t& pixel : now.write_on_host().value()) pixel = 10;
    now.read_write_on_host().value()[7] = 200;  // one pixel changes

    device.launch(mark_motion, pixels, moved, now, before, 20).value();
    std::size_t count = 0;
    for (const std::uint8_t mark : moved.read_on_host().value()) count += mark;  // waits for the kernel
    std::printf("%zu pixel moved\n", count);
    // end

    // show: error
    auto open = now.write_on_host().value();                                     // `now` is open for writing
    auto launched = device.launch(mark_motion, pixels, moved, now, before, 20);  // refused: the kernel reads `now`
    if (!launched) {
        const isthmus::Error& error = launched.error();
        std::printf("%s\n", error.text().c_str());  // what was asked, what forbids it, what to do
        if (error.code() != isthmus::Code::in_use) return 1;
    }
    // end
    return count == 1 && !launched ? 0 : 1;
}
