// SPDX-License-Identifier: Apache-2.0
// Frames of a ring in one process to a ring in another over UCX: bandwidth, or the time from publication to
// publication. Its peers are ucx_perftest, and frames as programs without shared memory send them (`tcp`): written
// whole into a TCP connection, and read whole into fresh memory. network_bench.py runs them in turn.
//
// usage: bench_network bandwidth|latency BYTES FRAMES [SLOTS | tcp]
#include <isthmus/runtime.hpp>
#include <isthmus/ucx.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
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
    std::size_t slots = 4;
    bool tcp = false;
};

SharedRingOptions shape(const Task& task) {
    SharedRingOptions options;
    options.policy = SlowReaderPolicy::wait;
    options.reader_deadline = 60s;
    options.slots = task.slots;
    return options;
}

// Sends frames of a ring of its own.
struct Sending {
    Sending(Device& device, const Task& task, ucx::Connection connection)
        : ring(SharedFrameRing<std::uint8_t>::create(device, task.bytes, shape(task)).value()),
          sender(ucx::FrameSender::create(std::move(connection),
                                          SharedFrameReader<std::uint8_t>::open(device, ring.admit().value()).value(),
                                          {})
                     .value()) {}
    SharedFrameRing<std::uint8_t> ring;
    ucx::FrameSender sender;
};
// Receives frames into a ring of its own, which no one reads.
struct Receiving {
    Receiving(Device& device, const Task& task, ucx::Connection connection)
        : receiver(ucx::FrameReceiver::create(std::move(connection)).value()),
          ring(SharedFrameRing<std::uint8_t>::create(device, task.bytes, shape(task)).value()) {
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

// Prints the median without the first tenth.
void print_median(std::vector<double> times_us) {
    times_us.erase(times_us.begin(), times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 10));
    const auto middle = times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 2);
    std::nth_element(times_us.begin(), middle, times_us.end());
    std::printf("%.2f\n", *middle);
}

// A frame to the other process, and one back: as ucx_perftest counts, half of it is the latency.
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
    if (begins) print_median(std::move(times_us));
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

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::_Exit(EXIT_FAILURE);
}
void write_frame(int line, const std::vector<std::uint8_t>& frame) {
    for (std::size_t done = 0; done < frame.size();) {
        const ssize_t wrote = ::write(line, frame.data() + done, frame.size() - done);
        if (wrote <= 0) fail("write");
        done += static_cast<std::size_t>(wrote);
    }
}
std::vector<std::uint8_t> read_frame(int line, std::size_t bytes) {
    std::vector<std::uint8_t> frame(bytes);
    for (std::size_t done = 0; done < bytes;) {
        const ssize_t got = ::read(line, frame.data() + done, bytes - done);
        if (got <= 0) fail("read");
        done += static_cast<std::size_t>(got);
    }
    return frame;
}

// The same frames over a TCP connection alone.
void run_tcp(const Task& task, int line, bool child) {
    const std::vector<std::uint8_t> sent(task.bytes);
    if (!task.latency && child) {
        for (std::uint64_t frame = 0; frame < task.frames; ++frame) write_frame(line, sent);
        return;
    }
    const std::uint64_t warm = task.frames / 10;
    std::vector<double> times_us;
    Clock::time_point begin = Clock::now();
    for (std::uint64_t frame = 0; frame < task.frames; ++frame) {
        const Clock::time_point turn = Clock::now();
        if (!task.latency && frame == warm) begin = turn;
        if (task.latency && !child) write_frame(line, sent);
        const std::vector<std::uint8_t> got = read_frame(line, task.bytes);
        if (got[0] != sent[0]) fail("the frame");
        if (task.latency && child) write_frame(line, sent);
        times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - turn).count() / 2);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (child) return;
    if (task.latency) return print_median(std::move(times_us));
    std::printf("%.1f\n", static_cast<double>((task.frames - warm) * task.bytes) / seconds / (1 << 20));
}
void play_tcp(const Task& task) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const auto at = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener, at, length) != 0 || ::listen(listener, 1) != 0) fail("bind");
    ::getsockname(listener, at, &length);
    const pid_t child = ::fork();
    const int line = child == 0 ? ::socket(AF_INET, SOCK_STREAM, 0) : ::accept(listener, nullptr, nullptr);
    if (child == 0 && ::connect(line, at, length) != 0) fail("connect");
    const int one = 1;
    ::setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    run_tcp(task, line, child == 0);
    if (child == 0) std::_Exit(0);
    std::fflush(stdout);
    ::waitpid(child, nullptr, 0);
}

void run(const Task& task, ucx::Listener& there, ucx::Listener& back, bool child) {
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    Device& device = runtime.default_device();
    if (!task.latency && child) {
        Sending sending(device, task, accepted(there));
        send_all(task, sending);
    } else if (!task.latency) {
        Receiving receiving(device, task, connected(there));
        receive_all(task, receiving);
    } else if (child) {
        Sending sending(device, task, accepted(there));
        Receiving receiving(device, task, connected(back));
        play(task, sending, receiving, false);
    } else {
        Receiving receiving(device, task, connected(there));
        Sending sending(device, task, accepted(back));
        play(task, sending, receiving, true);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 4 && count != 5) return 2;
    Task task{std::string_view(words[1]) == "latency", std::strtoull(words[2], nullptr, 10),
              std::strtoull(words[3], nullptr, 10)};
    task.tcp = count == 5 && std::string_view(words[4]) == "tcp";
    if (count == 5 && !task.tcp) task.slots = std::strtoull(words[4], nullptr, 10);
    if (task.tcp) {
        play_tcp(task);
        return 0;
    }
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
