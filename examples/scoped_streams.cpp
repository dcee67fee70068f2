// SPDX-License-Identifier: Apache-2.0
// The second level of use: scoped streams. Code without knowledge of streams runs on the stream that its caller
// selected; two pictures are processed at the same time.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

namespace {

// A library's function: it uses the current stream of the calling thread.
isthmus::Result<void> enhance(isthmus::Device& device, isthmus::Buffer<std::uint8_t>& picture) {
    for (int step = 0; step < 4; ++step) {
        auto launched = device.launch(brighten, picture.size(), picture, 10);
        if (!launched) return std::move(launched).error();
    }
    return {};
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.current_device();
    isthmus::Stream first = device.current_stream();
    isthmus::Stream second = device.create_stream({.priority = -1}).value();

    constexpr std::size_t size = 640 * 480;
    auto left = device.allocate<std::uint8_t>(size).value();
    auto right = device.allocate<std::uint8_t>(size).value();
    auto both = device.allocate_shared<std::uint8_t>(2 * size, {.host = isthmus::Use::reads_once}).value();

    device.fill(left, 1).value();
    device.fill(right, 2).value();
    enhance(device, left).value();
    {
        // `second` waits for all work submitted to `first` so far, such as the fill of `right`.
        const auto scope = isthmus::ScopedStream::enter(second).value();
        enhance(device, right).value();
    }
    // `first` is current again and does not wait for `second` by itself.
    first.wait_stream(second).value();
    first.copy(both, 0, left, 0, size).value();
    first.copy(both, size, right, 0, size).value();

    const auto pixels = both.read_on_host().value();
    std::printf("left %d, right %d\n", pixels[0], pixels[size]);
    return pixels[0] == 41 && pixels[size] == 42 ? 0 : 1;
}
