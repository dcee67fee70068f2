// SPDX-License-Identifier: Apache-2.0
// Measures growth of device memory: in doubling steps, in place against allocate + copy + free and against the driver's
// own three calls; and by 64 MiB at sizes from 64 MiB to 8 GiB, where the cost should not depend on the size.
// growth_torch.py measures torch's growth; plot_growth.py draws the second measurement.
//   bench_growth --benchmark_repetitions=7 --benchmark_report_aggregates_only=true
// Only the growth is timed, without the initial memory and the final release. The memory that a copy frees on the way
// is included. Every growth is followed by a synchronisation, so that work deferred by the device or the driver is
// included.
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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
    if (!device.allocate<std::byte>(bytes)) {  // and frees it again
        state.SkipWithError("this device has less memory");
        return false;
    }
    return true;
}

// From 2 MiB to range(0) MiB by doubling. The content is kept; the new bytes are not touched.
void doubling_in_place(benchmark::State& state) {
    const std::size_t most = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, most)) return;
    Device& device = runtime().default_device();
    for (auto _ : state) {
        state.PauseTiming();
        auto buffer = GrowableBuffer<std::byte>::create(device, most).value();
        buffer.resize(2 * mebibyte).value();
        state.ResumeTiming();
        for (std::size_t bytes = 4 * mebibyte; bytes <= most; bytes *= 2) {
            buffer.resize(bytes).value();
            device.stream().synchronize().value();
        }
        state.PauseTiming();
        buffer.release().value();
        state.ResumeTiming();
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

// The same as a vector grows: a new buffer, a copy on the device, and the old buffer freed.
void doubling_by_copy(benchmark::State& state) {
    const std::size_t most = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, most + most / 2)) return;  // both buffers exist during the copy
    Device& device = runtime().default_device();
    Stream& stream = device.stream();
    for (auto _ : state) {
        state.PauseTiming();
        Buffer<std::byte> buffer = device.allocate<std::byte>(2 * mebibyte).value();
        state.ResumeTiming();
        for (std::size_t bytes = 4 * mebibyte; bytes <= most; bytes *= 2) {
            Buffer<std::byte> larger = device.allocate<std::byte>(bytes).value();
            stream.copy(larger, 0, buffer, 0, buffer.size()).value();
            buffer = std::move(larger);
            stream.synchronize().value();
        }
        state.PauseTiming();
        buffer.release().value();
        state.ResumeTiming();
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

// Growth through the driver's own calls on device 0, as in a program without isthmus.
class RawGrowth {
public:
    explicit RawGrowth(std::size_t most) : most_(most) {
        well_ = driver_.open() && driver_.find_mapping() && driver_.prepare_device() &&
                driver_.device_get(&properties_.device, 0) == 0 && driver_.stream_create(&stream_, 1) == 0 &&
                driver_.reserve_address(&base_, most, 0, 0, 0) == 0;
        access_.device = properties_.device;
    }
    RawGrowth(const RawGrowth&) = delete;
    RawGrowth& operator=(const RawGrowth&) = delete;
    ~RawGrowth() {
        while (!handles_.empty()) shrink();
        if (base_ != 0) (void)driver_.free_address(base_, most_);
        if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
    }
    bool well() const { return well_; }
    void grow(std::size_t bytes) {
        std::uint64_t memory = 0;
        if (driver_.create_memory(&memory, bytes, &properties_, 0) != 0) return fail();
        handles_.push_back({memory, bytes});
        if (driver_.map(base_ + bytes_, bytes, 0, memory, 0) != 0) return fail();
        if (driver_.set_access(base_ + bytes_, bytes, &access_, 1) != 0) return fail();
        bytes_ += bytes;
        if (driver_.stream_sync(stream_) != 0) fail();
    }
    void shrink() {
        const Handle last = handles_.back();
        handles_.pop_back();
        bytes_ -= std::min(bytes_, last.bytes);
        (void)driver_.unmap(base_ + bytes_, last.bytes);
        (void)driver_.release_memory(last.memory);
    }

private:
    struct Handle {
        std::uint64_t memory;
        std::size_t bytes;
    };
    void fail() { well_ = false; }
    bench::RawDriver driver_;
    bench::MemoryProperties properties_;
    bench::MemoryAccess access_;
    bench::RawDriver::Handle stream_ = nullptr;
    std::size_t most_;
    std::uint64_t base_ = 0;
    std::size_t bytes_ = 0;
    std::vector<Handle> handles_;
    bool well_ = false;
};

void doubling_by_driver(benchmark::State& state) {
    const std::size_t most = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, most)) return;
    for (auto _ : state) {
        state.PauseTiming();
        {
            RawGrowth growth(most);
            growth.grow(2 * mebibyte);
            state.ResumeTiming();
            for (std::size_t bytes = 2 * mebibyte; growth.well() && bytes < most; bytes *= 2) growth.grow(bytes);
            state.PauseTiming();
            if (!growth.well()) state.SkipWithError("the driver refused a step");
        }
        state.ResumeTiming();
    }
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

// Adds 64 MiB to range(0) MiB. Allocating the first range(0) MiB and releasing all are not timed.
void add_in_place(benchmark::State& state) {
    const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, bytes + step_bytes)) return;
    Device& device = runtime().default_device();
    auto buffer = GrowableBuffer<std::byte>::create(device, bytes + step_bytes, {.growth = Growth::exact}).value();
    for (std::size_t made = step_bytes; made <= bytes; made += step_bytes) buffer.resize(made).value();
    const bool counted = bench::driver_calls() >= 0;
    long calls = 0;
    for (auto _ : state) {
        const long before = counted ? bench::driver_calls() : 0;
        buffer.resize(bytes + step_bytes).value();
        if (counted) calls += bench::driver_calls() - before;
        device.stream().synchronize().value();
        state.PauseTiming();
        buffer.resize(bytes).value();
        buffer.trim().value();
        state.ResumeTiming();
    }
    if (counted) state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    state.counters["MiB"] = static_cast<double>(state.range(0));
}

void add_by_driver(benchmark::State& state) {
    const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * mebibyte;
    if (!has_room(state, bytes + step_bytes)) return;
    RawGrowth growth(bytes + step_bytes);
    for (std::size_t made = 0; growth.well() && made < bytes; made += step_bytes) growth.grow(step_bytes);
    for (auto _ : state) {
        growth.grow(step_bytes);
        if (!growth.well()) {
            state.SkipWithError("the driver refused a step");
            break;
        }
        state.PauseTiming();
        growth.shrink();
        state.ResumeTiming();
    }
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
BENCHMARK(doubling_by_driver)->RangeMultiplier(8)->Range(16, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(doubling_by_copy)->RangeMultiplier(8)->Range(16, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(add_in_place)->RangeMultiplier(2)->Range(64, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(add_by_driver)->RangeMultiplier(2)->Range(64, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(add_by_copy)->RangeMultiplier(2)->Range(64, 8 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
