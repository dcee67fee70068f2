// What it costs to grow device memory: in doubling steps, in place against allocate + copy + free, and by 64 MiB at
// sizes from 64 MiB to 8 GiB, which should cost the same at all of them. torch's growth is measured beside it by hand.
//
//   bench_growth --benchmark_repetitions=7 --benchmark_report_aggregates_only=true
//
// Every growth is followed by a synchronisation, so that what the driver or the device put off is counted.
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>

namespace {

using isthmus::Buffer;
using isthmus::Device;
using isthmus::Feature;
using isthmus::GrowableBuffer;
using isthmus::Growth;
using isthmus::Stream;

constexpr std::size_t mebibyte = 1 << 20;
constexpr std::size_t step_bytes = 64 * mebibyte;

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}

bool has_room(benchmark::State& state, std::size_t bytes) {
    Device& device = runtime().default_device();
    if (!device.capabilities().has(Feature::virtual_memory)) {
        state.SkipWithError("this device maps no memory");
        return false;
    }
    if (!device.allocate<std::byte>(bytes)) {  // and gone again
        state.SkipWithError("this device has less memory");
        return false;
    }
    return true;
}

// From 2 MiB to range(0) MiB by doubling. The content is kept, and new bytes are touched by nobody.
void doubling_in_place(benchmark::State& state) {
    const std::size_t most = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, most)) return;
    Device& device = runtime().default_device();
    for (auto _ : state) {
        auto buffer = GrowableBuffer<std::byte>::make(device, most).value();
        for (std::size_t bytes = 2 * mebibyte; bytes <= most; bytes *= 2) {
            buffer.resize(bytes).value();
            device.stream().synchronize().value();
        }
        benchmark::DoNotOptimize(buffer.device_address());
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

// The same with what a vector does: a new buffer, a copy on the device, and the old one freed.
void doubling_by_copy(benchmark::State& state) {
    const std::size_t most = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, most + most / 2)) return;  // both live during the copy
    Device& device = runtime().default_device();
    Stream& stream = device.stream();
    for (auto _ : state) {
        Buffer<std::byte> buffer = device.allocate<std::byte>(2 * mebibyte).value();
        for (std::size_t bytes = 4 * mebibyte; bytes <= most; bytes *= 2) {
            Buffer<std::byte> larger = device.allocate<std::byte>(bytes).value();
            stream.copy(larger, 0, buffer, 0, buffer.size()).value();
            buffer = std::move(larger);
            stream.synchronize().value();
        }
        benchmark::DoNotOptimize(buffer.device_address());
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

// 64 MiB more at range(0) MiB. Making the first range(0) and giving them back is not timed.
void add_in_place(benchmark::State& state) {
    const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, bytes + step_bytes)) return;
    Device& device = runtime().default_device();
    auto buffer = GrowableBuffer<std::byte>::make(device, bytes + step_bytes, {.growth = Growth::exact}).value();
    for (std::size_t made = step_bytes; made <= bytes; made += step_bytes) buffer.resize(made).value();
    const bool counted = bench::driver_calls() >= 0;
    long calls = 0;
    for (auto _ : state) {
        const long before = counted ? bench::driver_calls() : 0;
        buffer.resize(bytes + step_bytes).value();
        if (counted) calls += bench::driver_calls() - before;
        state.PauseTiming();
        buffer.resize(bytes).value();
        buffer.trim().value();
        state.ResumeTiming();
    }
    if (counted) state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

void add_by_copy(benchmark::State& state) {
    const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, 2 * bytes + step_bytes)) return;
    Device& device = runtime().default_device();
    Stream& stream = device.stream();
    for (auto _ : state) {
        state.PauseTiming();
        Buffer<std::byte> buffer = device.allocate<std::byte>(bytes).value();
        state.ResumeTiming();
        Buffer<std::byte> larger = device.allocate<std::byte>(bytes + step_bytes).value();
        stream.copy(larger, 0, buffer, 0, bytes).value();
        buffer = std::move(larger);
        stream.synchronize().value();
        state.PauseTiming();
        buffer.release().value();
        state.ResumeTiming();
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

BENCHMARK(doubling_in_place)->RangeMultiplier(8)->Range(16, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(doubling_by_copy)->RangeMultiplier(8)->Range(16, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(add_in_place)->RangeMultiplier(2)->Range(64, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(add_by_copy)->RangeMultiplier(2)->Range(64, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
