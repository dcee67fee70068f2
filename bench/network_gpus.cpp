// SPDX-License-Identifier: Apache-2.0
// Frames from one GPU to another over UCX, in two processes: the first GPU writes each frame into a slot of a ring, the
// other process receives it into device memory of the second GPU. Says by which path, whether each frame has the right
// bytes, and how fast frames arrive that are not looked at. With one GPU both use it. The receiver's buffers are of the
// kind that is named: device (unless named), pinned, managed or host. Frames that take longer than SECONDS (20
// unless given) are not waited for.
//
// usage: bench_network_gpus BYTES FRAMES [KIND [SECONDS]]
#include <isthmus/copy.hpp>
#include <isthmus/read_back.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/ucx.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Bytes = Buffer<std::uint8_t>;

struct Task {
    std::size_t bytes;
    std::uint64_t frames;
    MemoryKind kind;
    Clock::duration most = 20s;
};

constexpr std::uint64_t checked_frames = 32;
constexpr std::size_t shift = 4099;  // of one frame's bytes in the pattern, against those of the frame before

// No two places of it within a frame look alike.
std::vector<std::uint8_t> pattern(std::size_t bytes) {
    std::vector<std::uint8_t> all(bytes + shift * checked_frames);
    std::uint64_t state = 88172645463325252u;
    for (std::uint8_t& each : all) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        each = static_cast<std::uint8_t>(state >> 32);
    }
    return all;
}

Device& gpu(Runtime& runtime, std::size_t number) {
    // The CPU is the last device.
    const std::size_t gpus = runtime.device_count() - 1;
    return gpus == 0 ? runtime.cpu() : *runtime.device(number < gpus ? number : gpus - 1).value();
}

void send(const Task& task, ucx::Listener& listener) {
    Runtime runtime = Runtime::open().value();
    Device& device = gpu(runtime, 0);
    Stream stream = device.create_stream().value();
    SharedRingOptions shape;
    shape.policy = SlowReaderPolicy::wait;
    shape.reader_deadline = 60s;
    auto ring = SharedFrameRing<std::uint8_t>::create(device, task.bytes, shape).value();
    const std::vector<std::uint8_t> source = pattern(task.bytes);
    Bytes there =
        device.allocate<std::uint8_t>(source.size(), device.is_cpu() ? MemoryKind::host : MemoryKind::device).value();
    stream.copy_from_host(there, source).value();
    Result<FileDescriptor> accepted = listener.accept();
    while (!accepted) accepted = listener.accept();
    auto sender =
        ucx::FrameSender::create(ucx::Connection::greet(std::move(accepted).value(), {}).value(),
                                 SharedFrameReader<std::uint8_t>::open(device, ring.admit().value()).value(), {})
            .value();
    for (std::uint64_t number = 0; number < checked_frames + task.frames;) {
        auto frame = ring.begin_frame(Wait::never());
        if (frame) {
            if (number < checked_frames) {
                stream.copy(frame->buffer(), 0, there, shift * number, task.bytes).value();
                stream.synchronize().value();
            }
            frame->publish().value();
            ++number;
        }
        if (!sender.step(frame ? 0us : 100us)) return;  // the receiver has seen enough, or says why not
    }
    ring.close();
    while (sender.step(10ms)) {
    }
}

int receive(const Task& task, const ucx::Listener& listener) {
    Runtime runtime = Runtime::open().value();
    Device& device = gpu(runtime, 1);
    Stream stream = device.create_stream().value();
    auto receiver =
        ucx::FrameReceiver::create(ucx::Connection::connect({"127.0.0.1", listener.port()}, {}).value()).value();
    std::vector<Bytes> buffers;
    for (int at = 0; at < 6; ++at) {
        buffers.push_back(
            device.allocate<std::uint8_t>(task.bytes, device.is_cpu() ? MemoryKind::host : task.kind).value());
    }
    receiver.begin(device, stream, std::move(buffers)).value();
    std::printf("%zu bytes to %.*s memory of %.*s; %.*s\n", task.bytes, static_cast<int>(name(task.kind).size()),
                name(task.kind).data(), static_cast<int>(device.name().size()), device.name().data(),
                static_cast<int>(ucx::name(receiver.path()).size()), ucx::name(receiver.path()).data());
    std::fflush(stdout);
    const std::vector<std::uint8_t> source = pattern(task.bytes);
    std::uint64_t right = 0;
    const Clock::time_point checks = Clock::now();
    for (std::uint64_t number = 0; number < checked_frames; ++number) {
        auto frame = receiver.next_frame(20s).value();
        const std::vector<std::uint8_t> got = read_back(frame.buffer()).value();
        if (frame.number() == number && std::memcmp(got.data(), source.data() + shift * number, task.bytes) == 0) {
            ++right;
        }
    }
    std::printf("  %llu of %llu frames right, in %.1f s\n", static_cast<unsigned long long>(right),
                static_cast<unsigned long long>(checked_frames),
                std::chrono::duration<double>(Clock::now() - checks).count());
    std::fflush(stdout);
    const std::uint64_t warm = std::clamp<std::uint64_t>(task.frames / 10, 1, 8);
    Clock::time_point begin = Clock::now(), end = begin;
    std::uint64_t seen = 0;
    Result<ucx::ReceivedFrame> last = receiver.next_frame(20s);
    for (; last; last = receiver.next_frame(20s)) {
        end = Clock::now();
        if (++seen == warm) begin = end;
        // Slow paths end, too. The sender learns it by the end of the connection.
        if (seen == task.frames || (seen > warm && end - begin > task.most)) break;
    }
    if (!last) std::printf("  %s\n", std::string(last.error().text()).c_str());
    stream.synchronize().value();
    const double seconds = std::chrono::duration<double>(end - begin).count();
    const bool whole = right == checked_frames && last && seen > warm;
    const double rate = whole ? static_cast<double>((seen - warm) * task.bytes) / seconds / (1 << 20) : 0;
    std::printf("  %llu of %llu frames in %.1f s, %.0f MiB/s%s\n", static_cast<unsigned long long>(seen),
                static_cast<unsigned long long>(task.frames), seconds, rate, whole ? "" : ", FAILED");
    if (seen < task.frames) {
        std::fflush(stdout);
        return whole ? 0 : 1;
    }
    std::fflush(stdout);
    while (receiver.step(10ms)) {
    }
    return whole ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count < 3 || count > 5) return 2;
    Task task{std::strtoull(words[1], nullptr, 10), std::strtoull(words[2], nullptr, 10), MemoryKind::device};
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::host}) {
        if (count >= 4 && std::string_view(words[3]) == name(kind)) task.kind = kind;
    }
    if (count == 5) task.most = std::chrono::seconds(std::strtoull(words[4], nullptr, 10));
    if (task.bytes == 0 || task.frames < 10) return 2;
    ucx::Listener listener = ucx::Listener::create({"127.0.0.1", 0}, {}).value();
    const pid_t child = ::fork();  // before a runtime is opened
    if (child == 0) {
        send(task, listener);
        ::_exit(0);
    }
    const int own = receive(task, listener);
    int status = 0;
    ::waitpid(child, &status, 0);
    return own != 0 ? own : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
