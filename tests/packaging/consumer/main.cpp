// SPDX-License-Identifier: Apache-2.0
// A program outside the project: it uses the installed headers and library only.
#include <isthmus/isthmus.hpp>
#include <isthmus/version.hpp>

#include "doubled.hpp"

#include <cstdio>

int main() {
    isthmus::RuntimeOptions options;
    options.use_cuda = false;  // the machine's devices do not matter here
    auto runtime = isthmus::Runtime::open(options);
    if (!runtime) return 1;
    isthmus::Device& cpu = runtime->cpu();
    auto values = cpu.allocate_shared<int>(10);
    if (!values) return 2;
    {
        auto view = values->write_on_host();
        if (!view) return 3;
        for (int i = 0; i < 10; ++i) (*view)[static_cast<std::size_t>(i)] = i;
    }
    if (!cpu.stream().launch(consumer::doubled, values->size(), *values)) return 4;
#if defined(HAS_IMAGE)
    if (consumer::doubled.info().image == nullptr) return 7;  // built with the recipe for kernels
#endif
    auto view = values->read_on_host();
    if (!view) return 5;
    int sum = 0;
    for (std::size_t i = 0; i < 10; ++i) sum += (*view)[i];
    std::printf("isthmus %s: sum %d\n", ISTHMUS_VERSION_STRING, sum);
    return sum == 90 ? 0 : 6;
}
