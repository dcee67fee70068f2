// SPDX-License-Identifier: Apache-2.0
// The installed camera kernels, used by a program outside the project: a constant picture stays as it is.
#include <isthmus/isthmus.hpp>
#include <isthmus/kernels/camera.hpp>

#include <cstdio>

int main() {
    isthmus::RuntimeOptions options;
    options.use_cuda = false;
    auto runtime = isthmus::Runtime::open(options);
    if (!runtime) return 1;
    isthmus::Device& cpu = runtime->cpu();
    const isthmus::kernels::Plane plane{3, 3, 3};
    auto gray = cpu.allocate_shared<std::uint8_t>(size_of(plane));
    auto smoothed = cpu.allocate_shared<std::uint8_t>(size_of(plane));
    if (!gray || !smoothed) return 2;
    {
        auto pixels = gray->write_on_host();
        if (!pixels) return 3;
        for (std::size_t i = 0; i < size_of(plane); ++i) (*pixels)[i] = 10;
    }
    const isthmus::Extent2 extent{plane.width, plane.height};
    if (!cpu.stream().launch(isthmus::kernels::smooth, extent, *smoothed, *gray, plane)) return 4;
    auto pixels = smoothed->read_on_host();
    if (!pixels) return 5;
    int sum = 0;
    for (std::size_t i = 0; i < size_of(plane); ++i) sum += (*pixels)[i];
    std::printf("sum %d\n", sum);
    return sum == 90 ? 0 : 6;
}
