// SPDX-License-Identifier: Apache-2.0
// A camera at 120 Hz, and a sealed loop that uses the newest frames: it drops the oldest where it cannot keep up, so
// that what it sees is never old.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using isthmus::Result;

constexpr std::size_t pixels = 320 * 240;
constexpr int frames = 120;
constexpr int settled = 50;  // the counts are those from this frame on
constexpr auto period = std::chrono::nanoseconds(1s) / 120;
constexpr std::uint8_t brighter = 40;

using Ring = isthmus::FrameRing<std::uint8_t>;

// Ctrl-C ends the camera; the loop sees the frames that are left, and ends with the ring.
volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) {
    interrupted = 1;
}

// Stands for the camera: writes its number into each frame, and never waits for the loop.
void film(Ring& ring) {
    auto next = std::chrono::steady_clock::now();
    for (int number = 0; number < frames && interrupted == 0; ++number) {
        if (auto frame = ring.begin_frame()) {
            {
                auto written = frame->buffer().write_on_host().value();  // waits for the GPU's use of the old content
                for (std::uint8_t& pixel : written) pixel = static_cast<std::uint8_t>(number);
            }
            frame->publish();
        }
        std::this_thread::sleep_until(next += period);
    }
    ring.close();
}

// One turn: takes the oldest frame that is left, brightens it, and looks at it. `last`: the number of the frame before.
Result<void> look(Ring& ring, isthmus::Stream& stream, int& last) {
    auto frame = ring.next_frame();
    if (!frame) return std::move(frame).error();
    if (auto launched = stream.launch(brighten, pixels, frame->buffer(), brighter); !launched) {
        return std::move(launched).error();
    }
    auto seen = frame->buffer().read_on_host();
    if (!seen) return std::move(seen).error();
    const int number = (*seen)[0] - brighter;
    if (number <= last || (*seen)[pixels - 1] != (*seen)[0]) std::abort();  // an old frame, or two in one
    last = number;
    return {};
}

// A ring of its own has the same steady turns.
Result<void> rehearse_turns(isthmus::Device& device, Ring& ring) {
    int last = -1;
    int number = 0;
    const auto rehearsal = isthmus::rehearse([&]() -> Result<void> {
        auto frame = ring.begin_frame();
        if (!frame) return std::move(frame).error();
        {
            auto written = frame->buffer().write_on_host();
            if (!written) return std::move(written).error();
            for (std::uint8_t& pixel : *written) pixel = static_cast<std::uint8_t>(number % 200);
        }
        frame->publish();
        last = -1;
        ++number;
        return look(ring, device.stream(), last);
    });
    return rehearsal ? Result<void>() : Result<void>(rehearsal.error());
}

}  // namespace

int main() {
    std::signal(SIGINT, interrupt);
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    isthmus::Device& device = runtime.default_device();
    isthmus::RingOptions options;
    options.frames = 4;
    options.when_full = isthmus::WhenFull::drop_oldest;
    Ring ring = Ring::create(device, pixels, options).value();
    if (auto steady = rehearse_turns(device, ring); !steady) {
        std::fprintf(stderr, "the loop never gets steady: %s\n", steady.error().text().c_str());
        return EXIT_FAILURE;
    }
    std::puts("the loop runs");
    std::fflush(stdout);
    const std::uint64_t before = ring.counts().produced;
    std::thread camera([&] { film(ring); });

    int seen = 0;
    int last = -1;
    std::uint64_t refused = 0;
    isthmus::ThreadCounts start = isthmus::thread_counts().value();
    isthmus::ThreadCounts used{};
    {
        const isthmus::Seal seal = runtime.seal().value();
        for (;;) {
            if (seen == settled) start = isthmus::thread_counts().value();
            auto done = look(ring, device.stream(), last);
            if (done.code() == isthmus::Code::ended) break;
            if (!done) {
                std::fprintf(stderr, "%s\n", done.error().text().c_str());
                std::abort();
            }
            ++seen;
            if (seen % 10 == 0) std::this_thread::sleep_for(6 * period);  // something else needs the thread
        }
        refused = seal.count();
        used = isthmus::thread_counts().value() - start;
    }
    camera.join();
    const isthmus::RingCounts counts = ring.counts();
    const std::uint64_t filmed = counts.produced - before;
    std::printf(
        "%d of %llu frames seen, %llu dropped; %llu calls refused; from frame %d on: %ld page faults, %ld "
        "voluntary and %ld involuntary switches\n",
        seen, static_cast<unsigned long long>(filmed), static_cast<unsigned long long>(counts.dropped),
        static_cast<unsigned long long>(refused), settled < seen ? settled : 0,
        static_cast<long>(used.minor_faults + used.major_faults), static_cast<long>(used.voluntary_switches),
        static_cast<long>(used.involuntary_switches));
    const bool all = (filmed == static_cast<std::uint64_t>(frames) || interrupted != 0) &&
                     static_cast<std::uint64_t>(seen) + counts.dropped == filmed;
    return all && refused == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
