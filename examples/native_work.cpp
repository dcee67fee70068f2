// SPDX-License-Identifier: Apache-2.0
// Work of other code on shared buffers: in one call, across calls, in a graph, and behind an event. Shown in
// docs/native-work.md. The "other code" is the driver's own API, so that the program runs everywhere.
#include <isthmus/isthmus.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

// show: library
// As a library would declare it: gives its work to the CUstream, or, without one, does it at once. Returns a CUresult.
int set_bytes(void* cu_stream, std::uint8_t* data, std::size_t size, std::uint8_t value) {
    if (cu_stream == nullptr) return std::fill_n(data, size, value), 0;
    using Set = int (*)(std::uint64_t address, unsigned char value, std::size_t size, void* stream);
    static const auto set = reinterpret_cast<Set>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemsetD8Async"));
    return set(reinterpret_cast<std::uintptr_t>(data), value, size, cu_stream);
}
// end

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream stream = device.stream();
    constexpr std::size_t size = 1 << 20;

    // show: call
    auto picture = device.allocate_shared<std::uint8_t>(size).value();
    stream
        .enqueue_native(
            "set", [](void* cu_stream, std::uint8_t* data) { return set_bytes(cu_stream, data, size, 7); },
            isthmus::writes(picture))
        .value();
    const int first = picture.read_on_host().value()[size - 1];  // waits for that work; copies where that is needed
    // end

    // show: scope
    {
        auto scope = stream.open_native_scope("halves", isthmus::updates(picture)).value();
        std::uint8_t* const data = scope.get<0>();
        bool failed = set_bytes(scope.stream(), data, size / 2, 1) != 0;
        failed = set_bytes(scope.stream(), data + size / 2, size / 2, 2) != 0 || failed;
        // Meanwhile picture.read_on_host() is refused: Code::in_use, "… in the native scope 'halves'".
        scope.close().value();
        if (failed) return 1;
    }
    // end
    const int second = picture.read_on_host().value()[size - 1];

    // show: graph
    auto input = device.allocate_shared<std::uint8_t>(size, {.kind = isthmus::MemoryKind::pinned}).value();
    isthmus::Capture capture = stream.begin_capture().value();
    stream
        .enqueue_native(
            "set part", [](void* cu_stream, std::uint8_t* data) { return set_bytes(cu_stream, data, size / 2, 9); },
            isthmus::updates(input))
        .value();
    isthmus::GraphInstance graph = capture.end().value().instantiate().value();
    int sum = 0;
    for (std::uint8_t round = 1; round <= 3; ++round) {
        {
            auto pixels = input.write_on_host().value();
            std::fill(pixels.begin(), pixels.end(), round);
        }
        stream.launch(graph).value();
        const auto pixels = input.read_on_host().value();
        sum += pixels[0] + pixels[size - 1];
    }
    // end

    std::printf("%d, %d and %d on %.*s\n", first, second, sum, static_cast<int>(device.name().size()),
                device.name().data());
    return first == 7 && second == 2 && sum == 3 * 9 + 1 + 2 + 3 ? 0 : 1;
}
