// What a launch costs: relaxed and checked, on the CPU device and on the GPU, beside the driver's own call.
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace bench {
ISTHMUS_DECLARE_KERNEL(no_arguments, isthmus::Index);
ISTHMUS_DECLARE_KERNEL(one_view, isthmus::Index i, isthmus::View<int> a);
ISTHMUS_DECLARE_KERNEL(four_views, isthmus::Index i, isthmus::View<int> a, isthmus::View<const int> b,
                       isthmus::View<const int> c, isthmus::View<const int> d);
}  // namespace bench

namespace {

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

long driver_calls() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return -1;
    using Count = unsigned long long (*)(const char*);
    const auto count = reinterpret_cast<Count>(dlsym(library, "isthmus_sim_call_count"));
    return count == nullptr ? -1 : static_cast<long>(count(nullptr));
}

// Runs `launch` in batches; only the calls are timed, not the wait behind each batch.
template <class Launch>
void run(benchmark::State& state, Stream& stream, Launch launch) {
    launch();
    stream.synchronize().value();
    long calls = 0;
    const bool counted = driver_calls() >= 0;
    while (state.KeepRunningBatch(batch)) {
        const long before = counted ? driver_calls() : 0;
        for (int i = 0; i < batch; ++i) launch();
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

std::vector<Buffer<int>> buffers(Device& device, MemoryKind kind) {
    std::vector<Buffer<int>> made;
    for (int i = 0; i < 4; ++i) {
        isthmus::SharedUse use;
        use.kind = kind;
        made.push_back(kind == MemoryKind::device ? device.allocate<int>(items).value()
                                                  : device.allocate_shared<int>(items, use).value());
    }
    return made;
}

void launch_nothing(benchmark::State& state, bool gpu, LaunchMode mode) {
    Stream stream = device_of(gpu).create_stream().value();
    stream.set_launch_mode(mode);
    run(state, stream, [&] { (void)stream.launch(bench::no_arguments, items); });
}

void launch_four(benchmark::State& state, bool gpu, LaunchMode mode, MemoryKind kind) {
    Device& device = device_of(gpu);
    Stream stream = device.create_stream().value();
    stream.set_launch_mode(mode);
    std::vector<Buffer<int>> b = buffers(device, device.is_cpu() ? MemoryKind::host : kind);
    run(state, stream, [&] { (void)stream.launch(bench::four_views, items, b[0], b[1], b[2], b[3]); });
}

// The peer: the same kernel and the same buffers through cuLaunchKernel, arguments packed anew for each launch.
void raw_launch_four(benchmark::State& state) {
    bench::RawDriver driver;
    bench::RawDriver::Handle stream = nullptr;
    bench::RawDriver::Handle entry = nullptr;
    Device& device = device_of(true);
    if (device.is_cpu() || !driver.open() || !driver.prepare(bench::four_views.info(), stream, entry)) {
        state.SkipWithError("no GPU");
        return;
    }
    std::vector<Buffer<int>> b = buffers(device, MemoryKind::device);
    const auto launch = [&] {
        isthmus::Extent extent{items, 1, 1};
        struct {
            std::uint64_t address, count;
        } pack[4];
        for (std::size_t i = 0; i < 4; ++i) pack[i] = {b[i].device_address(), items};
        void* arguments[] = {&extent, pack};
        benchmark::DoNotOptimize(driver.launch(entry, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
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
        const std::string suffix = "/" + std::string(isthmus::name(mode));
        const auto add = [&](const std::string& name, auto body) { benchmark::RegisterBenchmark(name.c_str(), body); };
        add("cpu/launch/0_arguments" + suffix, [=](benchmark::State& s) { launch_nothing(s, false, mode); });
        add("cpu/launch/4_views" + suffix, [=](benchmark::State& s) { launch_four(s, false, mode, MemoryKind::host); });
        if (!gpu) continue;
        add("gpu/launch/0_arguments" + suffix, [=](benchmark::State& s) { launch_nothing(s, true, mode); });
        add("gpu/launch/4_device_buffers" + suffix,
            [=](benchmark::State& s) { launch_four(s, true, mode, MemoryKind::device); });
        add("gpu/launch/4_pinned_buffers" + suffix,
            [=](benchmark::State& s) { launch_four(s, true, mode, MemoryKind::pinned); });
    }
    if (gpu) benchmark::RegisterBenchmark("gpu/raw_cuLaunchKernel/4_device_buffers", raw_launch_four);
    benchmark::RegisterBenchmark("cpu/idle_view", [](benchmark::State& s) { idle_view(s, false); });
    if (gpu) benchmark::RegisterBenchmark("gpu/idle_view", [](benchmark::State& s) { idle_view(s, true); });
    benchmark::RegisterBenchmark("default/launch_then_view", launch_and_view);
    benchmark::RegisterBenchmark("runtime/open", open_runtime);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
