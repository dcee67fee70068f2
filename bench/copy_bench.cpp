// SPDX-License-Identifier: Apache-2.0
// Measures copies from host to device and back: pageable memory, also through bounce buffers alone, pinned memory,
// and the driver's own copies of both in the same run. A time is that of a whole copy, until the data has arrived.
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using isthmus::Buffer;
using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Stream;

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}

// Copies through the driver alone, without isthmus.
struct RawCopies {
    bench::RawDriver driver;
    int (*up)(std::uint64_t, const void*, std::size_t, void*) = nullptr;
    int (*down)(void*, std::uint64_t, std::size_t, void*) = nullptr;
    void* stream = nullptr;

    bool open() {
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!driver.open(library) || !driver.prepare_device() || driver.stream_create(&stream, 1) != 0) return false;
        up = reinterpret_cast<decltype(up)>(dlsym(library, "cuMemcpyHtoDAsync_v2"));
        down = reinterpret_cast<decltype(down)>(dlsym(library, "cuMemcpyDtoHAsync_v2"));
        return up != nullptr && down != nullptr;
    }
};

// bounce: on a stream whose handle other code has, where pageable memory always passes through bounce buffers. Compared
// with driver_pageable it shows from which size on the driver is faster (rules::driver_up_bytes, driver_down_bytes).
enum class Way { pageable, bounce, driver_pageable, pinned, driver_pinned };

// The source and the target of the copies. They are touched once, so that no page is new.
struct Sides {
    Sides(Device& device, std::size_t bytes)
        : there(device.allocate<std::uint8_t>(bytes).value()),
          locked(device.allocate<std::uint8_t>(bytes, MemoryKind::pinned).value()),
          pageable(bytes, 1) {
        auto view = locked.write_on_host().value();
        std::memset(view.data(), 2, bytes);
        pinned = std::span<std::uint8_t>(view.data(), bytes);  // not used elsewhere while the view is open
    }
    Buffer<std::uint8_t> there;
    Buffer<std::uint8_t> locked;
    std::vector<std::uint8_t> pageable;
    std::span<std::uint8_t> pinned;
};

void copy(benchmark::State& state, Way way, bool up) {
    Device& device = runtime().default_device();
    if (device.is_cpu()) return state.SkipWithError("there is no GPU");
    const auto bytes = static_cast<std::size_t>(state.range(0));
    Sides sides(device, bytes);
    Stream stream = device.create_stream().value();
    if (way == Way::bounce && !stream.native_handle()) return state.SkipWithError("the stream has no handle");
    RawCopies raw;
    const bool by_driver = way == Way::driver_pageable || way == Way::driver_pinned;
    if (by_driver && !raw.open()) return state.SkipWithError("the driver's functions are not to be had");
    const bool is_pinned = way == Way::pinned || way == Way::driver_pinned;
    const std::span<std::uint8_t> host = is_pinned ? sides.pinned : std::span<std::uint8_t>(sides.pageable);
    for (auto _ : state) {
        if (by_driver) {
            const int code = up ? raw.up(sides.there.device_address(), host.data(), bytes, raw.stream)
                                : raw.down(host.data(), sides.there.device_address(), bytes, raw.stream);
            if (code != 0 || raw.driver.stream_sync(raw.stream) != 0) return state.SkipWithError("the driver refused");
        } else {
            (up ? stream.copy_from_host(sides.there, host) : stream.copy_to_host(host, sides.there)).value();
            stream.synchronize().value();
        }
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Time of the upload call alone, without the wait for the data: what a small copy adds to a frame.
void upload_call(benchmark::State& state, bool by_driver) {
    Device& device = runtime().default_device();
    if (device.is_cpu()) return state.SkipWithError("there is no GPU");
    const auto bytes = static_cast<std::size_t>(state.range(0));
    Sides sides(device, bytes);
    RawCopies raw;
    if (by_driver && !raw.open()) return state.SkipWithError("the driver's functions are not to be had");
    for (auto _ : state) {
        if (by_driver) {
            (void)raw.up(sides.there.device_address(), sides.pageable.data(), bytes, raw.stream);
        } else {
            device.stream().copy_from_host(sides.there, sides.pageable).value();
        }
        state.PauseTiming();
        if (by_driver) (void)raw.driver.stream_sync(raw.stream);
        if (!by_driver) device.stream().synchronize().value();
        state.ResumeTiming();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void register_all() {
    constexpr std::pair<const char*, Way> ways[] = {{"pageable/isthmus", Way::pageable},
                                                    {"pageable/bounce", Way::bounce},
                                                    {"pageable/driver", Way::driver_pageable},
                                                    {"pinned/isthmus", Way::pinned},
                                                    {"pinned/driver", Way::driver_pinned}};
    for (const bool up : {true, false}) {
        for (const auto& [name, way] : ways) {
            benchmark::RegisterBenchmark((std::string(up ? "up/" : "down/") + name).c_str(),
                                         [way = way, up](benchmark::State& state) { copy(state, way, up); })
                ->RangeMultiplier(4)
                ->Range(4 << 10, 256 << 20)
                ->Arg(512 << 10)
                ->Arg(2 << 20)
                ->Arg(8 << 20)
                ->UseRealTime();
        }
    }
    for (const bool by_driver : {false, true}) {
        benchmark::RegisterBenchmark(by_driver ? "up_call/driver" : "up_call/isthmus",
                                     [by_driver](benchmark::State& state) { upload_call(state, by_driver); })
            ->RangeMultiplier(4)
            ->Range(64, 1 << 20)
            ->UseRealTime();
    }
}

}  // namespace

int main(int argc, char** argv) {
    register_all();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
