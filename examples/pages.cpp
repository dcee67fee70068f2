// SPDX-License-Identifier: Apache-2.0
// Excerpts of several pages, as a program that runs on every machine. What a machine lacks is left out there.
#include <isthmus/isthmus.hpp>

#include "pages_kernels.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using isthmus::AtomicSet;
using isthmus::Channel;
using isthmus::Device;
using isthmus::Feature;
using isthmus::Runtime;
using isthmus::Stream;

constexpr std::uint32_t memory_comes = 1;
constexpr std::uint32_t your_turn = 2;

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}
void say(const char* what, std::string_view text) {
    std::printf("%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
}

void kernels(Device& device) {
    Stream& stream = device.stream();
    auto in = device.allocate_shared<float>(64).value();
    auto out = device.allocate_shared<float>(64).value();
    stream.fill(in, 3.0f).value();
    // show: scale
    stream.launch(scale, out.size(), out, in, 0.5f).value();
    // end
    expect(out.read_on_host().value()[63] == 1.5f, "scale");
    const std::size_t count = out.size();
    // show: strict
    stream.launch({.mode = isthmus::LaunchMode::strict}, scale, count, out, in, 2.0f).value();
    // end
    expect(out.read_on_host().value()[0] == 6.0f, "a strict launch");
    auto numbers = device.allocate_shared<int>(128).value();
    auto sum = device.allocate_shared<int>(2).value();
    stream.fill(numbers, 2).value();
    stream.launch(sums, 2, sum, numbers).value();
    expect(sum.read_on_host().value()[1] == 128, "sums of blocks");

    auto framed = device.allocate_shared<float>(68 * 36).value();
    auto means = device.allocate_shared<float>(64 * 32).value();
    stream.fill(framed, 3.0f).value();
    stream.launch(mean, isthmus::Blocks(2, 2), means, framed, 64).value();
    expect(means.read_on_host().value()[64 * 32 - 1] == 3, "means by tiles");
}

void copies(Device& device) {
    Stream& stream = device.stream();
    auto to = device.allocate_shared<float>(640 * 480).value();
    auto from = device.allocate_shared<float>(1920 * 480).value();
    auto same = device.allocate_shared<float>(640 * 480).value();
    const std::vector<float> samples(100, 4.0f);
    std::vector<float> results(100);
    stream.fill(from, 2.0f).value();
    stream.fill(same, 1.0f).value();
    stream.copy(to, same).value();
    // show: copies
    stream.copy(to, 100, from, 0, 50).value();  // 50 elements
    stream
        .copy_region(to, {.offset = 0, .row_pitch = 640}, from, {.offset = 8, .row_pitch = 1920},
                     {.width = 640, .height = 480})
        .value();
    stream.copy_from_host(to, std::span<const float>(samples)).value();  // the caller's memory
    stream.copy_to_host(std::span<float>(results), from).value();
    stream.fill(to, 1.5f).value();
    // end
    stream.synchronize().value();
    expect(results[99] == 2.0f && to.read_on_host().value()[7] == 1.5f, "copies and fills");
}

void parts(Device& device) {
    constexpr std::size_t half = 512;
    Stream& stream = device.stream();
    auto frame = device.allocate_shared<float>(2 * half).value();
    stream.fill(frame, 1.0f).value();
    // show: parts
    auto upper = frame.part(0, half).value();
    auto lower = frame.part(half, half).value();
    stream.launch(negate, half, upper).value();
    auto rows = lower.write_on_host().value();  // does not wait for the launch, and does not hinder it
    // end
    for (float& element : rows) element = 5.0f;
    { const auto closed = std::move(rows); }
    const auto seen = frame.read_on_host().value();
    expect(seen[0] == -1.0f && seen[half] == 5.0f, "parts");
}

void atomics(Device& device) {
    Stream& stream = device.stream();
    // show: atomics
    // Memory in which both may add and take maxima, or a refusal that says why this machine has none and what works.
    auto buffer = device.allocate_shared<std::uint32_t>(256, {.updates = AtomicSet::add | AtomicSet::max});
    if (!buffer) return say("no common words", buffer.error().text());
    {
        // On the host: a concurrent view, of these operations and no others.
        auto words = buffer->atomics_on_host<AtomicSet::add | AtomicSet::max>().value();
        words[0].add_relaxed(1);  // an AtomicRef: the order is part of the name
        stream.launch(count_one, 100, *buffer).value();
    }
    // end
    expect(buffer->read_on_host().value()[0] >= 101, "updates of both sides");
}

void counters(Device& device) {
    Stream& stream = device.stream();
    auto values = device.allocate_shared<std::uint8_t>(1000).value();
    stream.fill(values, std::uint8_t{7}).value();
    // show: counter
    auto counter = isthmus::ShardedCounter::create(device, 256).value();  // 256 slots
    stream.launch(count_apart, values.size(), values, counter).value();
    counter.add(7, 1);                                  // at once, from any thread
    const std::uint64_t sum = counter.read(7).value();  // waits for the kernels that were given it
    // end
    expect(sum == 1001, "a sharded counter");
}

void services(Device& device) {
    if (device.is_cpu() || device.capabilities().has(Feature::kernel_timeout)) return;
    // show: service
    auto service = isthmus::Service<std::uint32_t, std::uint64_t>::start(device, squares).value();
    const std::uint64_t answer = service.call(7).value();  // no driver call; gives up after the runtime's wait timeout
    service.stop().value();                                // answers what was sent, ends the kernel, frees what waited
    // end
    expect(answer == 49, "a service");
}

void findings(Device& gpu) {
    const std::vector<isthmus::LitmusFinding> my_findings;
    {
        // show: litmus
        isthmus::RuntimeOptions options;
        options.litmus_findings = my_findings;  // isthmus caps --litmus FILE shows what is left, and why
        auto runtime = isthmus::Runtime::open(options).value();
        // end
        expect(runtime.device_count() > 0, "a runtime with findings");
    }
    if (!gpu.capabilities().has(Feature::export_fabric)) return;
    // show: probe
    const isthmus::ExportFinding fabric = isthmus::probe_export(gpu, isthmus::ExportKinds::fabric).value();
    if (!fabric.works) std::printf("%s: %s\n", fabric.call.c_str(), fabric.message.c_str());

    isthmus::RuntimeOptions options;
    options.export_findings = {fabric};  // of this device and driver: yes becomes probed, or no with the reason
    isthmus::Runtime runtime = isthmus::Runtime::open(options).value();
    // end
}

// Both ends of a channel, in one process.
template <class Offer, class Receive>
void over_a_channel(Offer&& offer, Receive&& receive) {
    isthmus::ChannelPair ends = isthmus::create_channel_pair().value();
    isthmus::ChannelOptions patient;
    patient.step_timeout = std::chrono::seconds(20);  // one end waits while the other allocates
    std::thread other([&] {
        constexpr std::uint32_t video = 44;
        isthmus::ChannelOptions options = patient;
        // show: allow
        options.allow = [](const isthmus::PeerCredentials& peer) { return peer.uid == 0 || peer.gid == video; };
        // end
        options.allow = nullptr;
        offer(Channel::adopt(std::move(ends.ours), isthmus::ChannelSide::offering, options).value());
    });
    receive(Channel::adopt(std::move(ends.childs), isthmus::ChannelSide::receiving, patient).value());
    other.join();
}

void exported(Runtime& runtime, Device& gpu) {
    constexpr std::size_t count = 1024;
    if (gpu.is_cpu() || !gpu.capabilities().has(Feature::export_posix_fd)) return;
    over_a_channel(
        [&](Channel channel) {
            // show: export
            auto volume = isthmus::ExportableBuffer<float>::create(gpu, count).value();  // zero, and from no pool
            const isthmus::SharedMemoryDescriptor descriptor = export_memory(volume).value();
            channel.send(memory_comes, descriptor.bytes(), descriptor.fds()).value();
            // end
            channel.wait_received().value();
        },
        [&](Channel channel) {
            // show: import
            isthmus::ChannelMessage message = channel.receive().value();
            auto descriptor = isthmus::SharedMemoryDescriptor::received(message.bytes, std::move(message.fds)).value();
            isthmus::Device& its_gpu = *runtime.device(descriptor.facts().device).value();  // by its UUID
            isthmus::Buffer<float> volume = isthmus::import_memory<float>(its_gpu, std::move(descriptor)).value();
            // end
            its_gpu.launch(negate, count, volume).value();
            expect(volume.size() == count, "imported memory");
        });
}

void for_cameras(Device& gpu) {
    if (gpu.is_cpu() || !gpu.capabilities().has(Feature::host_dma_buf)) return;
    constexpr std::size_t bytes = 4096;
    // show: camera
    auto frame = isthmus::ExportableBuffer<std::uint8_t>::create(
                     gpu, bytes, {.seen_by = isthmus::SeenBy::cpus_and_gpus, .dma_buf = true})
                     .value();
    const isthmus::FileDescriptor file = frame.export_dma_buf().value();
    // end
    expect(static_cast<bool>(file), "a descriptor of a dma-buf");
}

void turns(Device& device) {
    constexpr std::size_t count = 1024;
    // show: seen
    auto counts =
        isthmus::ExportableBuffer<float>::create(device, count, {.seen_by = isthmus::SeenBy::cpus_and_gpus}).value();
    // end
    device.launch(negate, count, counts).value();
    over_a_channel(
        [&](Channel channel) {
            // show: flush
            flush_shared(counts).value();  // ends a turn: this process's device work is done, and in the shared memory
            channel.send(your_turn, {}).value();
            // end
            channel.wait_received().value();
        },
        [&](Channel channel) {
            // show: invalidate
            channel.receive().value();          // the other process, which said the same
            invalidate_shared(counts).value();  // begins one: what this device has of a copied buffer is old
            // end
            expect(counts.read_on_host().value()[0] == 0.0f, "turns");
        });
}

void by_hand(Device& gpu) {
    if (!gpu.capabilities().has(Feature::virtual_memory)) return;
    constexpr std::size_t n = 1024;
    constexpr std::size_t bytes = n * sizeof(float);
    // show: by_hand
    auto reservation = isthmus::AddressReservation::reserve(gpu, bytes).value();  // addresses
    auto memory = isthmus::PhysicalMemory::create(gpu, bytes).value();            // memory
    auto mapping = reservation.map(0, memory).value();                            // the one at the other
    mapping.set_access({&gpu}).value();                                           // one call for all devices
    gpu.stream().launch({.mode = isthmus::LaunchMode::checked}, negate, n, mapping.view<float>(0, n)).value();
    gpu.stream().synchronize().value();  // nothing here waits for kernels
    // end
}

void over_two(Device& gpu, Device& other) {
    constexpr std::size_t most = 1 << 24;
    constexpr std::size_t rows = 1 << 20;
    if (!isthmus::GrowableBuffer<float>::create(gpu, most, {.stripe = {&gpu, &other}})) return;
    // show: stripe
    auto table = isthmus::GrowableBuffer<float>::create(gpu, most, {.stripe = {&gpu, &other}}).value();
    table.resize(rows).value();
    other.stream().launch(negate, rows, table).value();  // any of the devices, over all of it
    // end
}

void multicast(Device& gpu, Device& other) {
    // Proven on the simulator only.
    if (std::getenv("ISTHMUS_SIM") == nullptr || !isthmus::can_multicast(gpu) || !isthmus::can_multicast(other)) return;
    const std::size_t bytes = isthmus::multicast_granularity(gpu, 2).value().recommended_bytes;
    auto reservation = isthmus::AddressReservation::reserve(gpu, bytes, bytes).value();
    const auto memory_of_gpu = isthmus::PhysicalMemory::create(gpu, bytes).value();
    const auto memory_of_other = isthmus::PhysicalMemory::create(other, bytes).value();
    // show: multicast
    auto group = isthmus::MulticastGroup::create(gpu, 2, bytes).value();  // for two devices
    group.add(gpu).value();
    group.add(other).value();
    auto object = std::move(group).complete().value();  // refused until both were added
    object.bind(0, memory_of_gpu).value();              // PhysicalMemory of each device
    object.bind(0, memory_of_other).value();
    auto mapping = reservation.map(0, object).value();  // reserved with the object's granularity
    mapping.set_access({&gpu, &other}).value();         // its devices, for multimem instructions
    // end
}

}  // namespace

int main() {
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    kernels(device);
    copies(device);
    parts(device);
    atomics(device);
    counters(device);
    services(device);
    findings(device);
    exported(runtime, device);
    for_cameras(device);
    turns(device);
    by_hand(device);
    if (runtime.device_count() > 2) {  // two GPUs, and the CPU
        over_two(*runtime.device(0).value(), *runtime.device(1).value());
        multicast(*runtime.device(0).value(), *runtime.device(1).value());
    }
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
