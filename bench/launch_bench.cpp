// SPDX-License-Identifier: Apache-2.0
// Measures launches: relaxed and checked, on the CPU device and on the GPU, beside the driver's own call.
//   bench_launch --benchmark_enable_random_interleaving=true --benchmark_repetitions=15 --benchmark_min_time=0.1
//                --benchmark_report_aggregates_only=true
// Random interleaving mixes the repetitions of all benchmarks, so that drift of the machine affects all alike; it has
// no effect without repetitions. The checked_minus_relaxed benchmarks also alternate both modes batch by batch: read
// their counters, which are medians over pairs of batches, and not their times.
#include "bench_kernels.hpp"
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::driver_calls;
using isthmus::Buffer;
using isthmus::Device;
using isthmus::LaunchMode;
using isthmus::MemoryKind;
using isthmus::Stream;

constexpr std::size_t items = 64;
// Launches between two synchronisations: the driver's queue must not fill, or its back-pressure is measured.
constexpr int batch = 512;

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}

// Skips the benchmark where the launch is refused, or where its arguments could not be checked.
template <class Launch>
bool works(benchmark::State& state, Stream& stream, Launch& launch) {
    const isthmus::Result<isthmus::LaunchReport> launched = launch();
    if (!launched) {
        state.SkipWithError(launched.error().text().c_str());
        return false;
    }
    if (launched->unverified_arguments != 0) state.SkipWithError("unverified arguments");
    stream.synchronize().value();
    return launched->unverified_arguments == 0;
}

// Runs `launch` in batches; only the calls are timed, not the wait behind each batch.
template <class Launch>
void run(benchmark::State& state, Stream& stream, Launch launch) {
    if (!works(state, stream, launch)) return;
    long calls = 0;
    const bool counted = driver_calls() >= 0;
    while (state.KeepRunningBatch(batch)) {
        const long before = counted ? driver_calls() : 0;
        for (int i = 0; i < batch; ++i) (void)launch();
        if (counted) calls += driver_calls() - before;
        state.PauseTiming();
        stream.synchronize().value();
        state.ResumeTiming();
    }
    if (counted) {
        state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    }
}

Device& device_of(bool gpu) {
    return gpu ? runtime().default_device() : runtime().cpu();
}

std::vector<Buffer<int>> buffers(Device& device, MemoryKind kind, std::size_t count) {
    std::vector<Buffer<int>> made;
    for (std::size_t i = 0; i < count; ++i) {
        isthmus::SharedUse use;
        use.kind = kind;
        made.push_back(kind == MemoryKind::device ? device.allocate<int>(items).value()
                                                  : device.allocate_shared<int>(items, use).value());
    }
    return made;
}

// The launch to measure: a kernel with `arguments` arguments, each a buffer or a raw view of its memory; a checked
// launch has to look up a raw view.
enum class By { handle, raw_view };
struct What {
    int arguments = 0;
    By by = By::handle;
    MemoryKind kind = MemoryKind::device;
};

template <class Kernel, std::size_t... at>
auto launch_all(Stream& stream, const Kernel& kernel, std::vector<Buffer<int>>& b, std::index_sequence<at...>) {
    return stream.launch(kernel, items, b[at]...);
}

// Calls use(stream, launch), where `launch` makes one launch.
template <class Use>
void with_launch(bool gpu, What what, Use use) {
    Device& device = device_of(gpu);
    Stream stream = device.create_stream().value();
    const auto most = static_cast<std::size_t>(std::max(what.arguments, 4));
    std::vector<Buffer<int>> b = buffers(device, gpu ? what.kind : MemoryKind::host, most);
    std::array<isthmus::View<int>, 4> v;
    // Converts device addresses to pointers, as programs that pass raw views do.
    for (std::size_t i = 0; i < 4; ++i) v[i] = {reinterpret_cast<int*>(b[i].device_address()), items};
    if (what.arguments == 0) {
        use(stream, [&] { return stream.launch(bench::no_arguments, items); });
    } else if (what.arguments == 1 && what.by == By::handle) {
        use(stream, [&] { return stream.launch(bench::one_view, items, b[0]); });
    } else if (what.arguments == 1) {
        use(stream, [&] { return stream.launch(bench::one_view, items, v[0]); });
    } else if (what.arguments == 16) {
        use(stream, [&] { return launch_all(stream, bench::views_16, b, std::make_index_sequence<16>{}); });
    } else if (what.arguments == 64) {
        use(stream, [&] { return launch_all(stream, bench::views_64, b, std::make_index_sequence<64>{}); });
    } else if (what.by == By::handle) {
        use(stream, [&] { return stream.launch(bench::four_views, items, b[0], b[1], b[2], b[3]); });
    } else {
        use(stream, [&] { return stream.launch(bench::four_views, items, v[0], v[1], v[2], v[3]); });
    }
}

void launch(benchmark::State& state, bool gpu, LaunchMode mode, What what) {
    with_launch(gpu, what, [&](Stream& stream, auto launch_once) {
        stream.set_launch_mode(mode);
        run(state, stream, launch_once);
    });
}

double median(std::vector<double> of) {
    if (of.empty()) return 0;
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle;
}

// Alternates both modes, and their order, so that the difference does not depend on drift of the machine's speed.
void checked_minus_relaxed(benchmark::State& state, bool gpu, What what) {
    constexpr int launches = 128;
    with_launch(gpu, what, [&](Stream& stream, auto launch_once) {
        stream.set_launch_mode(LaunchMode::checked);
        if (!works(state, stream, launch_once)) return;
        std::vector<double> taken[2], differences;  // relaxed, checked
        bool checked_first = false;
        for (auto _ : state) {
            double each[2] = {};
            for (const bool checked : {checked_first, !checked_first}) {
                stream.set_launch_mode(checked ? LaunchMode::checked : LaunchMode::relaxed);
                const auto begin = std::chrono::steady_clock::now();
                for (int i = 0; i < launches; ++i) (void)launch_once();
                const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
                stream.synchronize().value();
                each[checked] = passed.count() / launches;
                taken[checked].push_back(each[checked]);
            }
            differences.push_back(each[1] - each[0]);
            checked_first = !checked_first;
        }
        state.counters["relaxed_ns"] = median(std::move(taken[0]));
        state.counters["checked_ns"] = median(std::move(taken[1]));
        state.counters["difference_ns"] = median(std::move(differences));
    });
}

// The peers: the same kernel and buffers through the driver's own calls, with arguments packed for each launch. Newer
// code uses cuLaunchKernelEx; without attributes it does the same.
enum class Peer { launch_kernel, launch_kernel_ex };

void raw_launch(benchmark::State& state, Peer peer, const isthmus::KernelInfo& kernel, std::size_t views) {
    bench::RawDriver driver;
    bench::RawDriver::Handle stream = nullptr;
    bench::RawDriver::Handle entry = nullptr;
    int (*launch_ex)(const bench::LaunchConfig*, bench::RawDriver::Handle, void**, void**) = nullptr;
    Device& device = device_of(true);
    if (device.is_cpu() || !driver.open() || !driver.prepare(kernel, stream, entry) ||
        (peer == Peer::launch_kernel_ex && !driver.find(launch_ex, "cuLaunchKernelEx"))) {
        state.SkipWithError("no GPU, or too old a driver");
        return;
    }
    std::vector<Buffer<int>> b = buffers(device, MemoryKind::device, views);
    struct Viewed {
        std::uint64_t address, count;
    };
    const auto launch = [&] {
        isthmus::Extent extent{items, 1, 1};
        std::array<Viewed, 64> pack;  // not initialised, as in a caller's code
        for (std::size_t i = 0; i < views; ++i) pack[i] = {b[i].device_address(), items};
        void* arguments[] = {&extent, pack.data()};
        if (peer == Peer::launch_kernel) {
            benchmark::DoNotOptimize(driver.launch(entry, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
        } else {
            const bench::LaunchConfig config{1, 1, 1, 256, 1, 1, 0, stream, nullptr, 0};
            benchmark::DoNotOptimize(launch_ex(&config, entry, arguments, nullptr));
        }
    };
    launch();
    driver.stream_sync(stream);
    while (state.KeepRunningBatch(batch)) {
        for (int i = 0; i < batch; ++i) launch();
        state.PauseTiming();
        driver.stream_sync(stream);
        state.ResumeTiming();
    }
}

// Work of other code beside a launch with the same uses, and beside the driver's own call: alternates the three, so
// that drift of the machine affects all alike. `current`: the device's context is current on the calling thread, as the
// CUDA runtime library leaves it. Read the counters: enqueue_native() around empty work is to cost at most 30 ns more
// than a launch costs beyond cuLaunchKernel (beyond_launch_ns <= 30).
void native_beside_launch(benchmark::State& state, MemoryKind kind, bool current) {
    constexpr int calls = 128;
    bench::RawDriver driver;
    bench::RawDriver::Handle stream_of_peer = nullptr;
    bench::RawDriver::Handle entry = nullptr;
    Device& device = device_of(true);
    if (device.is_cpu() || !driver.open() || !driver.prepare(bench::four_views.info(), stream_of_peer, entry)) {
        state.SkipWithError("no GPU");
        return;
    }
    if (!current) driver.set_current(nullptr);
    Stream stream = device.create_stream().value();
    std::vector<Buffer<int>> b = buffers(device, kind, 4);
    struct Viewed {
        std::uint64_t address, count;
    };
    const auto raw = [&] {
        isthmus::Extent extent{items, 1, 1};
        std::array<Viewed, 4> pack;
        for (std::size_t i = 0; i < pack.size(); ++i) pack[i] = {b[i].device_address(), items};
        void* arguments[] = {&extent, pack.data()};
        benchmark::DoNotOptimize(driver.launch(entry, 1, 1, 1, 256, 1, 1, 0, stream_of_peer, arguments, nullptr));
    };
    const auto launch = [&] { (void)stream.launch(bench::four_views, items, b[0], b[1], b[2], b[3]); };
    const auto native = [&] {
        (void)stream.enqueue_native(
            "nothing", [](void*, int*, int*, int*, int*) {}, isthmus::updates(b[0]), isthmus::updates(b[1]),
            isthmus::updates(b[2]), isthmus::updates(b[3]));
    };
    std::vector<double> taken[3], beyond;
    const auto timed = [&](int which, auto call) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) call();
        const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
        driver.stream_sync(stream_of_peer);
        stream.synchronize().value();
        taken[which].push_back(passed.count() / calls);
    };
    raw(), launch(), native();
    for (auto _ : state) {
        timed(0, raw);
        timed(1, launch);
        timed(2, native);
        beyond.push_back(taken[2].back() - (taken[1].back() - taken[0].back()));
    }
    state.counters["cuLaunchKernel_ns"] = median(std::move(taken[0]));
    state.counters["launch_ns"] = median(std::move(taken[1]));
    state.counters["enqueue_native_ns"] = median(std::move(taken[2]));
    state.counters["beyond_launch_ns"] = median(std::move(beyond));
    driver.stream_destroy(stream_of_peer);
}

void idle_view(benchmark::State& state, bool gpu) {
    Device& device = device_of(gpu);
    isthmus::SharedUse use;
    if (!device.is_cpu()) use.kind = MemoryKind::pinned;
    Buffer<int> buffer = device.allocate_shared<int>(items, use).value();
    (void)device.stream().launch(bench::one_view, items, buffer);
    (void)buffer.read_on_host().value();
    for (auto _ : state) {
        auto view = buffer.read_on_host();
        benchmark::DoNotOptimize(view->data());
    }
}

void launch_and_view(benchmark::State& state) {
    Device& device = device_of(true);
    isthmus::SharedUse use;
    if (!device.is_cpu()) use.kind = MemoryKind::pinned;
    Buffer<int> buffer = device.allocate_shared<int>(items, use).value();
    { (void)buffer.write_on_host().value(); }
    for (auto _ : state) {
        (void)device.stream().launch(bench::one_view, items, buffer);
        auto view = buffer.read_on_host();
        benchmark::DoNotOptimize(view->data());
    }
}

void open_runtime(benchmark::State& state) {
    (void)runtime();
    for (auto _ : state) {
        auto opened = isthmus::Runtime::open();
        benchmark::DoNotOptimize(opened->device_count());
    }
}

}  // namespace

int main(int argc, char** argv) {
    const bool gpu = !runtime().default_device().is_cpu();
    for (const LaunchMode mode : {LaunchMode::relaxed, LaunchMode::checked}) {
        const std::string suffix = std::string("/").append(isthmus::name(mode));
        const auto add = [&](bool on_gpu, const std::string& name, What what) {
            benchmark::RegisterBenchmark((name + suffix).c_str(),
                                         [=](benchmark::State& s) { launch(s, on_gpu, mode, what); });
        };
        add(false, "cpu/launch/0_arguments", {0});
        add(false, "cpu/launch/4_views", {4});
        add(false, "cpu/launch/4_raw_views", {4, By::raw_view});
        if (!gpu) continue;
        add(true, "gpu/launch/0_arguments", {0});
        add(true, "gpu/launch/1_device_buffer", {1});
        add(true, "gpu/launch/4_device_buffers", {4});
        add(true, "gpu/launch/16_device_buffers", {16});
        add(true, "gpu/launch/64_device_buffers", {64});
        add(true, "gpu/launch/16_pinned_buffers", {16, By::handle, MemoryKind::pinned});
        add(true, "gpu/launch/64_pinned_buffers", {64, By::handle, MemoryKind::pinned});
        add(true, "gpu/launch/4_pinned_buffers", {4, By::handle, MemoryKind::pinned});
        add(true, "gpu/launch/1_raw_view", {1, By::raw_view});
        add(true, "gpu/launch/4_raw_views", {4, By::raw_view});
    }
    const auto add_difference = [](bool on_gpu, const std::string& name, What what) {
        benchmark::RegisterBenchmark(
            ((on_gpu ? "gpu/checked_minus_relaxed/" : "cpu/checked_minus_relaxed/") + name).c_str(),
            [=](benchmark::State& s) { checked_minus_relaxed(s, on_gpu, what); });
    };
    for (const bool on_gpu : {false, true}) {
        if (on_gpu && !gpu) continue;
        add_difference(on_gpu, "0_arguments", {0});
        add_difference(on_gpu, "1_buffer", {1});
        add_difference(on_gpu, "4_buffers", {4});
        add_difference(on_gpu, "1_raw_view", {1, By::raw_view});
        add_difference(on_gpu, "4_raw_views", {4, By::raw_view});
    }
    if (gpu) {
        const auto add_peers = [](const std::string& name, const isthmus::KernelInfo& kernel, std::size_t views) {
            benchmark::RegisterBenchmark(
                ("gpu/raw_cuLaunchKernel/" + name).c_str(),
                [&kernel, views](benchmark::State& s) { raw_launch(s, Peer::launch_kernel, kernel, views); });
            benchmark::RegisterBenchmark(
                ("gpu/raw_cuLaunchKernelEx/" + name).c_str(),
                [&kernel, views](benchmark::State& s) { raw_launch(s, Peer::launch_kernel_ex, kernel, views); });
        };
        add_peers("0_arguments", bench::no_arguments.info(), 0);
        add_peers("4_device_buffers", bench::four_views.info(), 4);
        add_peers("16_device_buffers", bench::views_16.info(), 16);
        add_peers("64_device_buffers", bench::views_64.info(), 64);
    }
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
        for (const bool current : {true, false}) {
            if (!gpu) continue;
            const std::string name = std::string("gpu/native_beside_launch/4_").append(isthmus::name(kind)) +
                                     (current ? "_buffers" : "_buffers/no_context_current");
            benchmark::RegisterBenchmark(name.c_str(),
                                         [=](benchmark::State& s) { native_beside_launch(s, kind, current); });
        }
    }
    benchmark::RegisterBenchmark("cpu/idle_view", [](benchmark::State& s) { idle_view(s, false); });
    if (gpu) benchmark::RegisterBenchmark("gpu/idle_view", [](benchmark::State& s) { idle_view(s, true); });
    benchmark::RegisterBenchmark("default/launch_then_view", launch_and_view);
    benchmark::RegisterBenchmark("runtime/open", open_runtime);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
