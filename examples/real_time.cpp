// SPDX-License-Identifier: Apache-2.0
// A loop at a period with CPU and GPU work, on a thread that is prepared for it. docs/real-time.md explains it.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;

// One turn: the CPU writes, the GPU works, the CPU reads. A call that a sealed scope refuses answers with an error.
isthmus::Result<void> turn(isthmus::Stream& stream, isthmus::Buffer<std::uint8_t>& samples, std::uint8_t value) {
    {
        auto written = samples.write_on_host();
        if (!written) return std::move(written).error();
        for (auto& sample : *written) sample = value;
    }
    if (auto launched = stream.launch(brighten, samples.size(), samples, 40); !launched) {
        return std::move(launched).error();
    }
    auto seen = samples.read_on_host();
    if (!seen) return std::move(seen).error();
    if ((*seen)[0] != value + 40) std::abort();
    return {};
}

// show: prepare
isthmus::Result<isthmus::RealTimeScope> prepare(const isthmus::Device& device) {
    isthmus::RealTimeOptions options;
    options.policy = isthmus::ThreadPolicy::fifo;
    options.priority = 80;                       // interrupts' threads of PREEMPT_RT have 50
    options.cpus = cpus_near(device)->isolated;  // near the GPU, and given to no other thread; empty: unchanged
    options.stack_bytes = 512 << 10;
    options.lock = isthmus::LockAll::present;
    return prepare_thread(options);
}
// end

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();
    auto samples = device.allocate_shared<std::uint8_t>(4096, {.prefer = isthmus::Prefer::latency}).value();
    // show: rehearse
    const auto rehearsal = isthmus::rehearse([&] { return turn(stream, samples, 0); });
    if (!rehearsal) {
        std::printf("the loop never gets steady: %s\n", rehearsal.error().text().c_str());
        return EXIT_FAILURE;
    }
    for (const isthmus::SealedPlace& place : rehearsal->places) {
        std::printf("the first turns: %.*s, %d times\n", static_cast<int>(place.call.size()), place.call.data(),
                    static_cast<int>(place.times));
    }
    // end

    // show: watchdog
    auto watchdog = isthmus::Watchdog::start(
        1s, [](std::chrono::nanoseconds) { std::fputs("the loop is silent: stop the motors\n", stderr); });
    // end
    if (!watchdog) return EXIT_FAILURE;

    // show: scope
    auto scope = prepare(device);
    if (!scope) std::printf("not prepared: %s\n", scope.error().text().c_str());  // the loop runs all the same
    // end

    // show: loop
    const isthmus::Seal seal = runtime.seal().value();  // from here on, nothing is allocated, mapped or loaded
    const isthmus::ThreadCounts start = isthmus::thread_counts().value();
    auto next = std::chrono::steady_clock::now();
    for (std::uint8_t at = 0; at < 100; ++at) {
        if (auto done = turn(stream, samples, at); !done) {
            std::printf("%s\n", done.error().text().c_str());  // names the call, and what to prepare
            return EXIT_FAILURE;
        }
        watchdog->feed();
        std::this_thread::sleep_until(next += 1ms);
    }
    const isthmus::ThreadCounts counts = isthmus::thread_counts().value() - start;
    std::printf("page faults %ld, other threads took the CPU %ld times\n",
                static_cast<long>(counts.minor_faults + counts.major_faults),
                static_cast<long>(counts.involuntary_switches));
    // end
    return EXIT_SUCCESS;
}
