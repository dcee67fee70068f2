// SPDX-License-Identifier: Apache-2.0
// Sends questions to a resident kernel on the GPU, without a launch for each; where no kernel may stay resident, sends
// them in batches.
#include <isthmus/isthmus.hpp>

#include "squares.hpp"

#include <cstdio>
#include <string_view>

namespace {

using Service = isthmus::Service<std::uint32_t, std::uint64_t>;

std::uint64_t by_service(Service& service) {
    std::uint64_t sum = 0;
    for (std::uint32_t number = 1; number <= 10; ++number) sum += service.call(number).value();  // no driver call
    service.stop().value();  // the kernel answers all requests, then ends
    return sum;
}

// For the CPU device and GPUs with a watchdog: the same mailbox, with one launch per batch.
std::uint64_t by_batches(isthmus::Device& device) {
    // show: batches
    auto mailbox = isthmus::Mailbox<std::uint32_t, std::uint64_t>::create(device, 16).value();  // at most 16 in flight
    for (std::uint32_t number = 1; number <= 10; ++number) mailbox.send(number).value();
    device.stream().launch(some_squares, 1, mailbox.device_end(), 10).value();
    std::uint64_t sum = 0;
    for (std::uint32_t number = 1; number <= 10; ++number) sum += mailbox.receive().value();
    device.stream().synchronize().value();
    // end
    return sum;
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Result<Service> service = Service::start(device, squares);
    if (!service) std::printf("no service: %s\n", service.error().text().c_str());
    const std::uint64_t sum = service ? by_service(*service) : by_batches(device);
    const std::string_view name = device.name();
    std::printf("%.*s: the squares of 1 to 10 sum to %llu\n", static_cast<int>(name.size()), name.data(),
                static_cast<unsigned long long>(sum));
    return sum == 385 ? 0 : 1;
}
