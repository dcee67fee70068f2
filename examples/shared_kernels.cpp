// SPDX-License-Identifier: Apache-2.0
// Kernels of two processes over the same memory of a GPU: each waits, on the device, for the other's. Messages only
// announce that work was submitted; no host waits for it. docs/sharing-between-processes.md has the explanation.
#include <isthmus/ipc/channel.hpp>
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace {

constexpr std::size_t size = 640 * 480;
constexpr int rounds = 20;
enum Kind : std::uint32_t { image, event, given, nothing };

// Whether this machine shares GPU memory and events. Elsewhere use a SharedFrameRing.
bool shares(isthmus::Device& device) {
    const auto made = isthmus::ExportableBuffer<std::uint8_t>::create(device, 1);
    const auto order = device.create_event({.interprocess = true});
    if (!made) std::printf("no memory is shared: %s\n", made.error().text().c_str());
    if (made && !order) std::printf("no events are shared: %s\n", order.error().text().c_str());
    return made && order;
}

// show: exporting
void produce(isthmus::Channel channel) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& gpu = runtime.default_device();
    isthmus::Stream& stream = gpu.stream();
    if (!shares(gpu)) return channel.send(nothing, {}).value();
    auto pixels = isthmus::ExportableBuffer<std::uint8_t>::create(gpu, size).value();
    isthmus::Event written = gpu.create_event({.interprocess = true}).value();
    {
        const isthmus::SharedMemoryDescriptor memory = export_memory(pixels).value();
        channel.send(image, memory.bytes(), memory.fds()).value();
        channel.send(event, export_event(written).value().bytes()).value();
    }
    const isthmus::ChannelMessage message = channel.receive().value();
    isthmus::Event read = import_event(gpu, isthmus::SharedEventDescriptor::received(message.bytes).value()).value();
    for (int round = 0; round < rounds; ++round) {
        stream.wait(read).value();  // the consumer's last record; none at first
        stream.launch(brighten, size, pixels, 3).value();
        stream.record(written).value();
        channel.send(given, {}).value();  // the event is recorded; the kernel may still run
        (void)channel.receive().value();  // the consumer has recorded its turn
    }
    stream.wait(read).value();
    stream.synchronize().value();
    channel.send(given, {}).value();
    channel.wait_received().value();  // `written` must outlive the consumer's use of it
}
// end

// show: importing
int consume(isthmus::Channel channel) {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::ChannelMessage first = channel.receive().value();
    if (first.kind == nothing) return 0;
    auto memory = isthmus::SharedMemoryDescriptor::received(first.bytes, std::move(first.fds)).value();
    isthmus::Device& gpu = *runtime.device(memory.facts().device).value();
    isthmus::Stream& stream = gpu.stream();
    auto pixels = isthmus::import_memory<std::uint8_t>(gpu, std::move(memory)).value();
    const isthmus::ChannelMessage second = channel.receive().value();
    isthmus::Event written = import_event(gpu, isthmus::SharedEventDescriptor::received(second.bytes).value()).value();
    isthmus::Event read = gpu.create_event({.interprocess = true}).value();
    channel.send(event, export_event(read).value().bytes()).value();
    auto seen = gpu.allocate_shared<std::uint8_t>(size).value();
    int right = 0;
    for (int round = 0; round < rounds; ++round) {
        (void)channel.receive().value();  // recorded by the producer; its kernel may still run
        stream.wait(written).value();
        stream.launch(brighten, size, pixels, 2).value();
        gpu.copy(seen, pixels).value();
        stream.record(read).value();
        channel.send(given, {}).value();
        const auto view = seen.read_on_host().value();
        if (view[0] == 5 * (round + 1) && view[size - 1] == view[0]) ++right;
    }
    std::printf("%d of %d rounds were right\n", right, rounds);
    (void)channel.receive().value();
    return right == rounds ? 0 : 1;
}
// end

}  // namespace

int main() {
    isthmus::ChannelOptions options;
    // Each process waits while the other opens its runtime, and a driver may start slowly.
    options.step_timeout = std::chrono::seconds(20);
    isthmus::ChannelPair pair = isthmus::create_channel_pair().value();
    const pid_t child = ::fork();  // before a runtime is opened: each process opens its own
    if (child == 0) {
        pair.ours.close();
        return consume(
            isthmus::Channel::adopt(std::move(pair.childs), isthmus::ChannelSide::receiving, options).value());
    }
    pair.childs.close();
    produce(isthmus::Channel::adopt(std::move(pair.ours), isthmus::ChannelSide::offering, options).value());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
