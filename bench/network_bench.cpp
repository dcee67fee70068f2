// SPDX-License-Identifier: Apache-2.0
// Frames of a ring in one process to a ring in another over UCX: bandwidth, or the time from publication to
// publication. Its peer is ucx_perftest: network_bench.py runs both in turn.
//
// usage: bench_network bandwidth|latency BYTES FRAMES
#include <isthmus/runtime.hpp>
#include <isthmus/ucx.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Task {
    bool latency;
    std::size_t bytes;
    std::uint64_t frames;
};

SharedRingOptions shape() {
    SharedRingOptions options;
    options.policy = SlowReaderPolicy::wait;
    options.reader_deadline = 60s;
    options.slots = 4;
    return options;
}

// Sends frames of a ring of its own.
struct Sending {
    Sending(Device& device, std::size_t bytes, ucx::Connection connection)
        : ring(SharedFrameRing<std::uint8_t>::create(device, bytes, shape()).value()),
          sender(ucx::FrameSender::create(std::move(connection),
                                          SharedFrameReader<std::uint8_t>::open(device, ring.admit().value()).value(),
                                          {})
                     .value()) {}
    SharedFrameRing<std::uint8_t> ring;
    ucx::FrameSender sender;
};
// Receives frames into a ring of its own, which no one reads.
struct Receiving {
    Receiving(Device& device, std::size_t bytes, ucx::Connection connection)
        : receiver(ucx::FrameReceiver::create(std::move(connection)).value()),
          ring(SharedFrameRing<std::uint8_t>::create(device, bytes, shape()).value()) {
        receiver.begin(ring).value();
    }
    ~Receiving() { [[maybe_unused]] const ucx::FrameReceiver first = std::move(receiver); }
    ucx::FrameReceiver receiver;
    SharedFrameRing<std::uint8_t> ring;
};

ucx::Connection accepted(ucx::Listener& listener) {
    Result<FileDescriptor> connection = listener.accept();
    while (!connection) connection = listener.accept();
    return ucx::Connection::greet(std::move(connection).value(), {}).value();
}
ucx::Connection connected(const ucx::Listener& listener) {
    return ucx::Connection::connect({"127.0.0.1", listener.port()}, {}).value();
}

// A frame to the other process, and one back: as ucx_perftest counts, half of it is the latency. Median in us.
void play(const Task& task, Sending& sending, Receiving& receiving, bool begins) {
    std::vector<double> times_us;
    for (std::uint64_t frame = 0; frame < task.frames; ++frame) {
        const Clock::time_point begin = Clock::now();
        if (begins) sending.ring.begin_frame().value().publish().value();
        // At the last frame the other process may have ended.
        while (receiving.receiver.counts().frames == frame) {
            if (!sending.sender.step(0us) || !receiving.receiver.step(0us)) break;
        }
        if (!begins) sending.ring.begin_frame().value().publish().value();
        if (!sending.sender.step(0us)) break;
        times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2);
    }
    for (int round = 0; round < 1000 && sending.sender.step(0us); ++round) {  // the last frame leaves
    }
    if (!begins) return;
    times_us.erase(times_us.begin(), times_us.begin() + static_cast<std::ptrdiff_t>(task.frames / 10));
    const auto middle = times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 2);
    std::nth_element(times_us.begin(), middle, times_us.end());
    std::printf("%.2f\n", *middle);
}

void send_all(const Task& task, Sending& sending) {
    for (std::uint64_t frame = 0; frame < task.frames;) {
        auto next = sending.ring.begin_frame(Wait::never());
        if (next) {
            next->publish().value();
            ++frame;
        }
        sending.sender.step(next ? 0us : 100us).value();
    }
    sending.ring.close();
    while (sending.sender.step(10ms)) {
    }
}

void receive_all(const Task& task, Receiving& receiving) {
    const std::uint64_t warm = task.frames / 10;
    Clock::time_point begin{}, end{};
    std::uint64_t seen = 0;
    while (receiving.receiver.step(10ms)) {
        const std::uint64_t frames = receiving.receiver.counts().frames;
        if (frames == seen) continue;
        end = Clock::now();
        if (seen < warm && frames >= warm) begin = end;
        seen = frames;
    }
    const double seconds = std::chrono::duration<double>(end - begin).count();
    std::printf("%.1f\n", static_cast<double>((seen - warm) * task.bytes) / seconds / (1 << 20));
}

void run(const Task& task, ucx::Listener& there, ucx::Listener& back, bool child) {
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    Device& device = runtime.default_device();
    if (!task.latency && child) {
        Sending sending(device, task.bytes, accepted(there));
        send_all(task, sending);
    } else if (!task.latency) {
        Receiving receiving(device, task.bytes, connected(there));
        receive_all(task, receiving);
    } else if (child) {
        Sending sending(device, task.bytes, accepted(there));
        Receiving receiving(device, task.bytes, connected(back));
        play(task, sending, receiving, false);
    } else {
        Receiving receiving(device, task.bytes, connected(there));
        Sending sending(device, task.bytes, accepted(back));
        play(task, sending, receiving, true);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 4) return 2;
    const Task task{std::string_view(words[1]) == "latency", std::strtoull(words[2], nullptr, 10),
                    std::strtoull(words[3], nullptr, 10)};
    ucx::Listener there = ucx::Listener::create({"127.0.0.1", 0}, {}).value();
    ucx::Listener back = ucx::Listener::create({"127.0.0.1", 0}, {}).value();
    const pid_t child = ::fork();
    if (child == 0) {
        run(task, there, back, true);
        ::_exit(0);
    }
    run(task, there, back, false);
    std::fflush(stdout);
    ::waitpid(child, nullptr, 0);
}
