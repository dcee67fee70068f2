// SPDX-License-Identifier: Apache-2.0
// Measures messages between two processes: a frame there and a frame back, over shared rings (spinning, sleeping and
// adaptive), a pipe and a UNIX socket; and the CPU time that a process spends on it.
//   bench_process_ring [--rounds N] [--bytes N]...
// Prints for each way the median and the 99th percentile of one message (half of a round trip) in µs, and the CPU time
// that one of the two processes spends on it. The sender writes each frame whole; the receiver reads it whole.
#include <isthmus/ipc/channel.hpp>
#include <isthmus/isthmus.hpp>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using Clock = std::chrono::steady_clock;
using Ring = SharedFrameRing<std::uint8_t>;
using Reader = SharedFrameReader<std::uint8_t>;

constexpr std::uint64_t warm_rounds = 100;

double us(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}
double cpu_us(int who) {
    rusage usage{};
    ::getrusage(who, &usage);
    const auto of = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}
std::uint64_t sum_of(const std::uint8_t* bytes, std::size_t count) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at + 8 <= count; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + at, 8);
        sum += word;
    }
    return sum;
}
volatile std::uint64_t kept;  // keeps the compiler from removing the reads

// One end of a connection: sends a frame, receives a frame.
struct End {
    virtual ~End() = default;
    virtual void send(std::uint8_t value) = 0;
    virtual void receive() = 0;
};

class RingEnd : public End {
public:
    RingEnd(Device& device, Channel channel, std::size_t bytes, WaitPolicy waiting, bool first)
        : ring_(Ring::create(device, bytes, options_of(waiting)).value()),
          reader_(exchange(device, channel, waiting, first)) {}
    void send(std::uint8_t value) override {
        auto frame = ring_.begin_frame().value();
        {
            auto view = frame.buffer().write_on_host().value();
            std::memset(view.data(), value, view.size());
        }
        frame.publish().value();
    }
    void receive() override {
        auto frame = reader_.next_frame().value();
        {
            auto view = frame.buffer().read_on_host().value();
            kept = sum_of(view.data(), view.size());
        }
        frame.finish().value();
    }

private:
    static SharedRingOptions options_of(WaitPolicy waiting) {
        SharedRingOptions options;
        options.policy = SlowReaderPolicy::wait;
        options.waiting = waiting;
        return options;
    }
    Reader exchange(Device& device, Channel& channel, WaitPolicy waiting, bool first) {
        if (first) give(channel);
        ChannelMessage message = channel.receive().value();
        if (!first) give(channel);
        SharedReaderOptions options;
        options.waiting = waiting;
        return Reader::open(device, SharedRingDescriptor::received(message.bytes, std::move(message.fds)).value(),
                            options)
            .value();
    }
    void give(Channel& channel) {
        SharedRingDescriptor descriptor = ring_.admit().value();
        channel.send(1, descriptor.bytes(), descriptor.fds()).value();
        channel.wait_received().value();
    }
    Ring ring_;
    Reader reader_;
};

class StreamEnd : public End {
public:
    StreamEnd(int in, int out, std::size_t bytes) : in_(in), out_(out), frame_(bytes) {}
    void send(std::uint8_t value) override {
        std::memset(frame_.data(), value, frame_.size());
        for (std::size_t at = 0; at < frame_.size();) {
            const ssize_t sent = ::write(out_, frame_.data() + at, frame_.size() - at);
            if (sent <= 0) std::exit(1);
            at += static_cast<std::size_t>(sent);
        }
    }
    void receive() override {
        for (std::size_t at = 0; at < frame_.size();) {
            const ssize_t got = ::read(in_, frame_.data() + at, frame_.size() - at);
            if (got <= 0) std::exit(1);
            at += static_cast<std::size_t>(got);
        }
        kept = sum_of(frame_.data(), frame_.size());
    }

private:
    int in_, out_;
    std::vector<std::uint8_t> frame_;
};

enum class Way { ring_spin, ring_adaptive, ring_sleep, pipe, socket };

std::unique_ptr<End> end_of(Way way, bool first, std::size_t bytes, Device* device, ChannelPair& pair, int (&there)[2],
                            int (&back)[2]) {
    if (way == Way::pipe || way == Way::socket) {
        return first ? std::make_unique<StreamEnd>(back[0], there[1], bytes)
                     : std::make_unique<StreamEnd>(there[0], back[1], bytes);
    }
    const WaitPolicy waiting = way == Way::ring_spin    ? WaitPolicy::spin
                               : way == Way::ring_sleep ? WaitPolicy::sleep
                                                        : WaitPolicy::adaptive;
    Channel channel = first ? Channel::adopt(std::move(pair.ours), ChannelSide::offering).value()
                            : Channel::adopt(std::move(pair.childs), ChannelSide::receiving).value();
    return std::make_unique<RingEnd>(*device, std::move(channel), bytes, waiting, first);
}

void measure(const char* name, Way way, std::size_t bytes, std::uint64_t rounds) {
    int there[2] = {-1, -1}, back[2] = {-1, -1};
    if (way == Way::pipe && (::pipe(there) != 0 || ::pipe(back) != 0)) std::exit(1);
    if (way == Way::socket) {
        int both[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) std::exit(1);
        there[1] = back[0] = both[0];
        there[0] = back[1] = both[1];
    }
    ChannelPair pair = create_channel_pair().value();
    const bool ring = way != Way::pipe && way != Way::socket;
    std::fflush(stdout);
    const pid_t child = ::fork();  // before a runtime is opened: each process opens its own
    std::optional<Runtime> runtime;
    if (ring) runtime.emplace(Runtime::open().value());
    if (child == 0) {
        pair.ours.close();
        std::unique_ptr<End> end =
            end_of(way, false, bytes, ring ? &runtime->default_device() : nullptr, pair, there, back);
        for (std::uint64_t round = 0; round < rounds + warm_rounds; ++round) {
            end->receive();
            end->send(static_cast<std::uint8_t>(round));
        }
        end.reset();
        runtime.reset();
        std::exit(0);
    }
    pair.childs.close();
    std::unique_ptr<End> end = end_of(way, true, bytes, ring ? &runtime->default_device() : nullptr, pair, there, back);
    std::vector<double> times;
    double own = 0;
    for (std::uint64_t round = 0; round < rounds + warm_rounds; ++round) {
        if (round == warm_rounds) own = cpu_us(RUSAGE_SELF);
        const Clock::time_point begin = Clock::now();
        end->send(static_cast<std::uint8_t>(round));
        end->receive();
        if (round >= warm_rounds) times.push_back(us(Clock::now() - begin) / 2);
    }
    own = cpu_us(RUSAGE_SELF) - own;
    std::sort(times.begin(), times.end());
    std::printf("%-24s %9zu bytes  median %9.2f   p99 %9.2f µs   CPU of this process %9.2f µs a message\n", name, bytes,
                times[times.size() / 2], times[times.size() * 99 / 100], own / static_cast<double>(2 * rounds));
    end.reset();
    runtime.reset();
    int status = 0;
    ::waitpid(child, &status, 0);
    for (int fd : {there[0], there[1], back[0], back[1]}) {
        if (fd >= 0) ::close(fd);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t rounds = 20000;
    std::vector<std::size_t> sizes;
    for (int at = 1; at + 1 < argc; at += 2) {
        if (std::string_view(argv[at]) == "--rounds") rounds = std::strtoull(argv[at + 1], nullptr, 10);
        if (std::string_view(argv[at]) == "--bytes") sizes.push_back(std::strtoull(argv[at + 1], nullptr, 10));
    }
    if (sizes.empty()) sizes = {64, 921600};
    for (const std::size_t bytes : sizes) {
        const std::uint64_t of_size = bytes > 65536 ? std::max<std::uint64_t>(rounds / 20, 1) : rounds;
        measure("ring, spinning", Way::ring_spin, bytes, of_size);
        measure("ring, adaptive", Way::ring_adaptive, bytes, of_size);
        measure("ring, sleeping", Way::ring_sleep, bytes, of_size);
        measure("pipe", Way::pipe, bytes, of_size);
        measure("UNIX stream socket", Way::socket, bytes, of_size);
    }
    return 0;
}
