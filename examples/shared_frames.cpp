// SPDX-License-Identifier: Apache-2.0
// Frames from one process to another: the first process writes them into memory that both have mapped; the second one's
// GPU uses them in place. docs/sharing-between-processes.md has the explanation.
#include <isthmus/ipc/channel.hpp>
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t size = 640 * 480;
constexpr int frames = 20;

// show: producing
constexpr std::uint32_t frames_come = 1;  // the kind of the message that brings the ring

// Gives the ring to the next process that connects within `timeout`, and waits until it has it; false: none has. Its
// first frame is the next one published.
bool admit_next(isthmus::Listener& listener, isthmus::SharedFrameRing<std::uint8_t>& ring,
                std::chrono::nanoseconds timeout) {
    if (!listener.wait_for_connection(timeout).value()) return false;
    isthmus::Result<isthmus::Channel> channel = listener.accept();
    if (!channel) return false;  // an error of this connection; the listener continues
    const isthmus::Result<isthmus::SharedRingDescriptor> descriptor = ring.admit();
    if (!descriptor) return false;  // in_use: the ring has max_readers
    return channel->send(frames_come, descriptor->bytes(), descriptor->fds()) && channel->wait_received();
}  // closes this process's copy of the reader's socket, so that the reader's death is noticed

void produce(const std::string& directory) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::SharedRingOptions options;
    options.policy = isthmus::SlowReaderPolicy::wait;  // for each reader, for reader_deadline at most
    options.reader_deadline = 20s;
    auto ring = isthmus::SharedFrameRing<std::uint8_t>::create(runtime.default_device(), size, options).value();
    isthmus::Listener listener = isthmus::Listener::create(directory, {.step_timeout = 20s}).value();
    while (!admit_next(listener, ring, 1s)) {  // where the first frame must have a reader
    }
    for (int number = 0; number < frames; ++number) {
        admit_next(listener, ring, 0ms);  // late readers; waits for none to come
        auto frame = ring.begin_frame().value();
        {
            auto pixels = frame.buffer().write_on_host().value();
            for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(number);
        }
        frame.publish().value();
    }
    ring.close();
}
// end

// show: reading
// The reader may start first: it connects until the producer listens.
isthmus::Result<isthmus::ChannelMessage> receive_ring(const std::string& directory) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    for (;;) {
        isthmus::Result<isthmus::Channel> channel = isthmus::connect_channel(directory, {.step_timeout = 20s});
        isthmus::Result<isthmus::ChannelMessage> message =
            channel ? channel->receive() : isthmus::Result<isthmus::ChannelMessage>(channel.error());
        const bool may_come =
            !message && (message.code() == isthmus::Code::peer_lost || message.code() == isthmus::Code::timed_out);
        if (!may_come || std::chrono::steady_clock::now() > until) return message;
        std::this_thread::sleep_for(20ms);
    }
}

int consume(const std::string& directory) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::ChannelMessage message = receive_ring(directory).value();
    auto descriptor = isthmus::SharedRingDescriptor::received(message.bytes, std::move(message.fds)).value();
    auto reader = isthmus::SharedFrameReader<std::uint8_t>::open(device, std::move(descriptor)).value();
    std::printf("frames: %.*s\n", static_cast<int>(reader.buffer(0).explain().size()),
                reader.buffer(0).explain().data());
    auto own = device.allocate_shared<std::uint8_t>(size).value();  // frames are read-only
    int right = 0;
    for (;;) {
        auto frame = reader.next_frame();
        if (!frame) break;  // closed and empty, or the producer failed: the error says which
        device.copy(own, frame->buffer()).value();
        device.stream().launch(brighten, size, own, 40).value();
        if (!frame->finish()) continue;  // overtaken: discard the result
        auto pixels = own.read_on_host().value();
        if (pixels[0] == frame->number() + 40 && pixels[size - 1] == pixels[0]) ++right;
    }
    std::printf("%d of %d frames were right\n", right, frames);
    return right == frames ? 0 : 1;
}
// end

}  // namespace

int main() {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("isthmus-shared-frames-" + std::to_string(::getpid()));
    const pid_t child = ::fork();  // before a runtime is opened: each process opens its own
    if (child == 0) return consume(directory);
    produce(directory);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::filesystem::remove_all(directory);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
