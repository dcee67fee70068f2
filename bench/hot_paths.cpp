// SPDX-License-Identifier: Apache-2.0
// Runs one operation of the hot paths a given number of times. tools/scripts/count-instructions counts the library's
// instructions with callgrind on a simulated machine.
//   hot_paths DEED TIMES             DEED: one of those below; without arguments it lists them
//   hot_paths DEED TIMES THREADS     the same on so many threads, each with streams of its own, and what it takes: the
//                                    median of batches of 500 calls on the first thread, and all calls of all threads
#include "bench_kernels.hpp"

#include <isthmus/isthmus.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;

constexpr std::size_t count = 64;

std::vector<Buffer<int>> shared_buffers(Device& device) {
    std::vector<Buffer<int>> made;
    for (int at = 0; at < 64; ++at) made.push_back(device.allocate<int>(count, MemoryKind::pinned).value());
    return made;
}

// A chain of ten kernels, each of which may get another buffer before a replay.
struct Chain {
    static constexpr int kernels = 10;
    using Node = KernelNode<void(Index, View<int>)>;
    std::vector<Node> nodes;
    GraphInstance instance;

    Chain(Stream& stream, Buffer<int>& buffer) : instance(recorded(stream, buffer, nodes)) {}
    static GraphInstance recorded(Stream& stream, Buffer<int>& buffer, std::vector<Node>& nodes) {
        Capture capture = stream.begin_capture().value();
        for (int at = 0; at < kernels; ++at) nodes.push_back(capture.launch(bench::one_view, 1, buffer).value());
        return capture.end().value().instantiate().value();
    }
};

struct Scene {
    Device& device;
    Stream stream = device.create_stream().value();
    Buffer<int> own = device.allocate<int>(count).value();
    Buffer<int> other = device.allocate<int>(count).value();
    Buffer<int> pinned = device.allocate<int>(count, MemoryKind::pinned).value();
    Buffer<int> shared =
        device.allocate_shared<int>(count, {.host = Use::writes_often, .device = Use::reads_and_writes}).value();
    MemoryPool pool = device.create_pool().value();
    Allocator of_streams = device.allocator(MemoryKind::pool);
    Allocator of_device = device.allocator(MemoryKind::device);
    Stream beside = device.create_stream().value();
    Event event = device.create_event().value();
    Buffer<int> viewed = device.allocate<int>(count, MemoryKind::pinned).value();
    HostView<const int> open = viewed.read_on_host().value();
    std::vector<Buffer<int>> many = shared_buffers(device);
    std::vector<int> ordinary = std::vector<int>(count);
    Chain chain{stream, own};
    int turn = 0;

    explicit Scene(Device& used) : device(used) {}
};

template <class Kernel, std::size_t... at>
void launch_all(Scene& s, const Kernel& kernel, std::index_sequence<at...>) {
    s.stream.launch(kernel, 1, s.many[at]...).value();
}

// Sixteen sizes of as many classes, one after the other.
std::size_t changing_bytes(Scene& s) {
    constexpr std::size_t sizes[] = {3000,  4100,  5200,   7000,   9000,   12000,  15000,   20000,
                                     30000, 50000, 100000, 200000, 300000, 500000, 1000000, 2000000};
    return sizes[static_cast<std::size_t>(s.turn++) % std::size(sizes)];
}

using Deed = std::pair<const char*, void (*)(Scene&)>;
constexpr Deed deeds[] = {
    {"launch_no_argument", [](Scene& s) { s.stream.launch(bench::no_arguments, 1).value(); }},
    {"launch_device_buffer", [](Scene& s) { s.stream.launch(bench::one_view, 1, s.own).value(); }},
    {"launch_shared_buffer", [](Scene& s) { s.stream.launch(bench::one_view, 1, s.shared).value(); }},
    {"launch_four_buffers",
     [](Scene& s) { s.stream.launch(bench::four_views, 1, s.own, s.other, s.other, s.other).value(); }},
    {"launch_16_shared_buffers", [](Scene& s) { launch_all(s, bench::views_16, std::make_index_sequence<16>{}); }},
    {"launch_64_shared_buffers", [](Scene& s) { launch_all(s, bench::views_64, std::make_index_sequence<64>{}); }},
    {"event_fresh", [](Scene& s) { (void)s.stream.record().value(); }},
    {"event_recorded_and_waited_for",
     [](Scene& s) {
         s.stream.record(s.event).value();
         s.beside.wait(s.event).value();
     }},
    {"graph_replayed", [](Scene& s) { s.stream.launch(s.chain.instance).value(); }},
    {"graph_with_10_patched_nodes",
     [](Scene& s) {
         Buffer<int>& next = ++s.turn % 2 == 0 ? s.own : s.other;
         for (const Chain::Node& node : s.chain.nodes) s.chain.instance.set_arguments(node, 1, next).value();
         s.stream.launch(s.chain.instance).value();
     }},
    {"refused_view", [](Scene& s) { (void)s.viewed.write_on_host(); }},
    {"view_for_reading", [](Scene& s) { (void)s.pinned.read_on_host().value(); }},
    {"view_for_writing", [](Scene& s) { (void)s.pinned.write_on_host().value(); }},
    {"launch_and_view",
     [](Scene& s) {
         s.stream.launch(bench::one_view, 1, s.shared).value();
         (void)s.shared.read_on_host().value();
     }},
    {"pool_allocate_and_release",
     [](Scene& s) {
         const auto block = s.pool.allocator().allocate({4096, 256, &s.stream}).value();
         s.pool.allocator().release(block, &s.stream).value();
     }},
    {"block_of_stream",
     [](Scene& s) {
         const auto block = s.of_streams.allocate({4096, 256, &s.stream}).value();
         s.of_streams.release(block, &s.stream).value();
     }},
    {"block_released_behind_another",
     [](Scene& s) {
         Stream& first = s.turn++ % 2 == 0 ? s.stream : s.beside;
         const auto block = s.of_streams.allocate({4096, 256, &first}).value();
         s.of_streams.release(block, &first == &s.stream ? &s.beside : &s.stream).value();
     }},
    {"block_of_device",
     [](Scene& s) {
         const auto block = s.of_device.allocate({4096}).value();
         s.of_device.release(block).value();
     }},
    {"block_of_stream_sizes_change",
     [](Scene& s) {
         AllocationRequest request;
         request.bytes = changing_bytes(s);
         request.stream = &s.stream;
         s.of_streams.release(s.of_streams.allocate(request).value(), &s.stream).value();
     }},
    {"buffer_of_stream_sizes_change", [](Scene& s) { (void)s.stream.allocate<std::byte>(changing_bytes(s)).value(); }},
    {"buffer_pinned_sizes_change",
     [](Scene& s) { (void)s.device.allocate<std::byte>(changing_bytes(s), MemoryKind::pinned).value(); }},
    {"buffer_of_stream", [](Scene& s) { (void)s.stream.allocate<int>(count).value(); }},
    {"buffer_pinned", [](Scene& s) { (void)s.device.allocate<int>(count, MemoryKind::pinned).value(); }},
    {"buffer_of_device", [](Scene& s) { (void)s.device.allocate<int>(count).value(); }},
    {"buffer_shared",
     [](Scene& s) { (void)s.device.allocate_shared<int>(count, {.device = Use::reads_and_writes}).value(); }},
    {"copy_between_buffers", [](Scene& s) { s.stream.copy(s.own, s.other).value(); }},
    {"copy_pageable_to_device",
     [](Scene& s) { s.stream.copy_from_host(s.own, std::span<const int>(s.ordinary)).value(); }},
};

void settle(Scene& scene) {
    scene.stream.synchronize().value();
}

void run(Scene& scene, void (*deed)(Scene&), long times) {
    for (long i = 0; i < times; ++i) {
        deed(scene);
        // Keeps the simulator's queue short, so that no launch waits for room in it.
        if (i % 16 == 15) settle(scene);
    }
    settle(scene);
}

constexpr long batch = 500;
using Clock = std::chrono::steady_clock;

// ns a call of each batch.
std::vector<double> timed(Scene& scene, void (*deed)(Scene&), long times) {
    std::vector<double> batches;
    for (long done = 0; done < times; done += batch) {
        const Clock::time_point begin = Clock::now();
        for (long i = 0; i < batch; ++i) deed(scene);
        const Clock::time_point end = Clock::now();
        batches.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / batch);
        settle(scene);
    }
    return batches;
}

void time(Device& device, void (*deed)(Scene&), long times, long threads) {
    std::vector<std::unique_ptr<Scene>> scenes;
    for (long at = 0; at < threads; ++at) scenes.push_back(std::make_unique<Scene>(device));
    for (const auto& scene : scenes) run(*scene, deed, batch);
    std::vector<double> batches;
    std::atomic<bool> go{false};
    std::vector<std::thread> others;
    for (long at = 1; at < threads; ++at) {
        others.emplace_back([&, at] {
            while (!go.load()) std::this_thread::yield();
            (void)timed(*scenes[static_cast<std::size_t>(at)], deed, times);
        });
    }
    const Clock::time_point begin = Clock::now();
    go.store(true);
    batches = timed(*scenes.front(), deed, times);
    for (std::thread& other : others) other.join();
    const double all = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    std::sort(batches.begin(), batches.end());
    std::printf("%.1f ns a call; of the fastest batch %.1f; from one call to the next of any of %ld threads %.1f\n",
                batches[batches.size() / 2], batches.front(), threads,
                all / static_cast<double>(static_cast<long>(batches.size()) * batch * threads));
}

}  // namespace

int main(int arguments, char** argument) {
    if (arguments != 3 && arguments != 4) {
        for (const auto& [name, deed] : deeds) std::puts(name);
        return arguments == 1 ? 0 : 2;
    }
    for (const auto& [name, deed] : deeds) {
        if (std::strcmp(name, argument[1]) != 0) continue;
        Runtime runtime = Runtime::open().value();
        const long times = std::strtol(argument[2], nullptr, 10);
        if (arguments == 4) {
            time(runtime.default_device(), deed, times, std::max(1L, std::strtol(argument[3], nullptr, 10)));
            return 0;
        }
        Scene scene(runtime.default_device());
        run(scene, deed, times);
        return 0;
    }
    std::fprintf(stderr, "hot_paths: no deed '%s'\n", argument[1]);
    return 2;
}
