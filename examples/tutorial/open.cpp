// SPDX-License-Identifier: Apache-2.0
// Step 1: open the runtime and print its devices.
#include <isthmus/isthmus.hpp>

#include <cstdio>
#include <string>

int main() {
    auto opened = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked});
    if (!opened) {
        std::fprintf(stderr, "%s\n", opened.error().text().c_str());
        return 1;
    }
    isthmus::Runtime& runtime = *opened;

    for (std::size_t number = 0; number < runtime.device_count(); ++number) {
        isthmus::Device& device = *runtime.device(number).value();
        std::printf("device %zu: %s%s\n", number, std::string(device.name()).c_str(),
                    &device == &runtime.default_device() ? " (default)" : "");
    }
    if (runtime.cuda_absence()) std::printf("no GPU: %s\n", runtime.cuda_absence()->text().c_str());
    return 0;
}
