// SPDX-License-Identifier: Apache-2.0
// The third level of use: explicit streams, events, and a graph of two branches whose arguments change from launch to
// launch. The order checker refuses unordered uses, so that no race can occur.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    isthmus::RuntimeOptions options;
    options.launch_mode = isthmus::LaunchMode::checked;
    options.order_check = isthmus::OrderCheck::refuse;  // for development; costs nothing when off
    isthmus::Runtime runtime = isthmus::Runtime::open(options).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream main_stream = device.create_stream().value();
    isthmus::Stream side = device.create_stream().value();

    constexpr std::size_t size = 640 * 480;
    auto left = device.allocate<std::uint8_t>(size).value();
    auto right = device.allocate<std::uint8_t>(size).value();
    auto both = device.allocate_shared<std::uint8_t>(2 * size, {.host = isthmus::Use::reads_once}).value();

    // Recorded, not run: fork with an event, work on both streams, join with an event.
    isthmus::Capture capture = main_stream.begin_capture().value();
    main_stream.fill(left, 1).value();
    main_stream.fill(right, 2).value();
    side.wait(main_stream.record().value()).value();
    auto on_left = capture.launch(brighten, size, left, 40).value();  // a node whose arguments change later
    auto on_right = capture.launch(side, brighten, size, right, 40).value();
    main_stream.wait(side.record().value()).value();
    main_stream.copy(both, 0, left, 0, size).value();
    main_stream.copy(both, size, right, 0, size).value();
    isthmus::GraphInstance graph = capture.end().value().instantiate().value();

    for (int by : {40, 50, 60}) {
        graph.set_arguments(on_left, size, left, by).value();  // one driver call each, for later launches
        graph.set_arguments(on_right, size, right, by + 1).value();
        main_stream.launch(graph).value();
        const auto pixels = both.read_on_host().value();  // waits for that launch
        if (pixels[0] != 1 + by || pixels[size] != 2 + by + 1) return 1;
    }

    // Two streams use one buffer without an order between them: the checker refuses it every time, even if the first
    // fill has already finished.
    main_stream.fill(left, 7).value();
    const auto raced = side.fill(left, 8);
    if (!device.is_cpu() && raced.code() != isthmus::Code::not_ordered) return 1;
    side.wait_stream(main_stream).value();
    side.fill(left, 8).value();
    side.synchronize().value();
    std::printf("3 launches of a graph of two branches on %.*s\n", static_cast<int>(device.name().size()),
                device.name().data());
    return 0;
}
