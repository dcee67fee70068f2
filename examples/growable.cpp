// SPDX-License-Identifier: Apache-2.0
// A list of pictures that grows in place, and a ring buffer without a seam: the same program on every machine.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();

    // Reserves addresses for the largest film; they cost no memory.
    constexpr std::size_t picture = 640 * 480;
    auto film = isthmus::GrowableBuffer<std::uint8_t>::create(device, 100 * picture).value();
    film.resize(picture).value();
    stream.fill(film, std::uint8_t{10}).value();
    const auto base = film.device_address();
    for (std::size_t pictures = 2; pictures <= 20; ++pictures)
        film.resize(pictures * picture).value();  // copies nothing
    stream.launch(brighten, picture, film, 5).value();

    auto first = device.allocate_shared<std::uint8_t>(1, {.host = isthmus::Use::reads_once}).value();
    stream.copy(first, 0, film, 0, 1).value();
    const int seen = first.read_on_host().value()[0];
    const auto figures = film.figures();
    std::printf("film: %zu pictures in %zu handles of %zu MiB together; the first pixel is %d\n", film.size() / picture,
                figures.handles, figures.mapped_bytes >> 20, seen);
    std::printf("memory: %.*s\n", static_cast<int>(film.explain().size()), film.explain().data());

    // The last ten bytes and the first ten in one launch: they are consecutive in memory.
    auto ring = isthmus::MirroredBuffer<std::uint8_t>::create(device, 1 << 20).value();
    stream.fill(ring, std::uint8_t{1}).value();
    stream.launch(brighten, 20, ring.part(ring.capacity() - 10, 20).value(), 1).value();
    stream.copy(first, 0, ring, 0, 1).value();
    const int behind_the_end = first.read_on_host().value()[0];
    std::printf("ring of %zu bytes: its first is %d\n", ring.capacity(), behind_the_end);
    return seen == 15 && film.device_address() == base && behind_the_end == 2 ? 0 : 1;
}
