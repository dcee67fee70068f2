// SPDX-License-Identifier: Apache-2.0
// Frames from one process to another: the first process writes them into memory that both have mapped; the second one's
// GPU uses them in place. docs/sharing-between-processes.md has the explanation.
#include <isthmus/ipc/channel.hpp>
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace {

constexpr std::size_t size = 640 * 480;
constexpr int frames = 20;

using Ring = isthmus::SharedFrameRing<std::uint8_t>;
using Reader = isthmus::SharedFrameReader<std::uint8_t>;

// show: producing
void produce(isthmus::Channel channel) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::SharedRingOptions options;
    options.policy = isthmus::SlowReaderPolicy::wait;  // for each reader, for reader_deadline at most
    Ring ring = Ring::create(runtime.default_device(), size, options).value();
    {
        const isthmus::SharedRingDescriptor descriptor = ring.admit().value();
        channel.send(1, descriptor.bytes(), descriptor.fds()).value();
    }  // closes this process's copy of the reader's socket, so that the reader's death is noticed
    for (int number = 0; number < frames; ++number) {
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
int consume(isthmus::Channel channel) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::ChannelMessage message = channel.receive().value();
    auto descriptor = isthmus::SharedRingDescriptor::received(message.bytes, std::move(message.fds)).value();
    Reader reader = Reader::open(device, std::move(descriptor)).value();
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
    isthmus::ChannelPair pair = isthmus::create_channel_pair().value();
    const pid_t child = ::fork();  // before a runtime is opened: each process opens its own
    if (child == 0) {
        pair.ours.close();
        return consume(isthmus::Channel::adopt(std::move(pair.childs), isthmus::ChannelSide::receiving).value());
    }
    pair.childs.close();
    produce(isthmus::Channel::adopt(std::move(pair.ours), isthmus::ChannelSide::offering).value());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
