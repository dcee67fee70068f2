// SPDX-License-Identifier: Apache-2.0
// Replays recorded allocations (tests/traces/README.md): isthmus by block and by Buffer, with kept memory, the same in
// a segment (ISTHMUS_DEVICE_SEGMENTS), and from the driver's pool; cuMemAllocAsync; cuMemAlloc; CUB's caching
// allocator. `bench/pool_torch.py --trace` replays the same in PyTorch's.
//   bench_trace --trace=FILE [--trace=FILE]... [Google Benchmark's options]
// Counters: per_event, a time; reserved, what the driver had given out at most ÷ what lived at the peak, by the
// device's free memory in a replay that is not timed; kept_served, the share of requests that a kept piece served.
#include "raw_driver.hpp"

#include <allocation_trace.hpp>

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#if defined(ISTHMUS_BENCH_CUB)
#include <cub/util_allocator.cuh>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Stream;
using traces::Event;
using traces::Trace;

isthmus::Runtime open_runtime() {
    isthmus::RuntimeOptions options;
    options.cache_bytes = std::uint64_t{1} << 40;  // the rules decide
    return isthmus::Runtime::open(options).value();
}

// Where device memory comes from.
enum class From : std::uint8_t { driver, segment };
isthmus::Runtime& runtime(From from = From::driver) {
    if (from == From::driver) {
        static isthmus::Runtime opened = open_runtime();
        return opened;
    }
    static isthmus::Runtime with_segments = [] {
        setenv("ISTHMUS_DEVICE_SEGMENTS", "1", 1);
        isthmus::Runtime opened = open_runtime();
        unsetenv("ISTHMUS_DEVICE_SEGMENTS");
        return opened;
    }();
    return with_segments;
}

// Bytes that the driver has free on the current device; 0: it does not say.
std::uint64_t free_bytes() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    const auto info = reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(dlsym(library, "cuMemGetInfo_v2"));
    std::size_t free = 0, total = 0;
    return info != nullptr && info(&free, &total) == 0 ? free : 0;
}

// A way to allocate: make(trace) prepares, allocate(event) and release(event) answer whether they succeeded, settle()
// waits for all work, give_back() returns what is kept.
template <class Way>
void replay(benchmark::State& state, const Trace& trace, Way& way) {
    if (const char* const why = way.prepare(trace)) return state.SkipWithError(why);
    const auto once = [&](auto after_each) {
        bool fine = true;
        for (const Event& event : trace.events) {
            fine = (event.bytes != 0 ? way.allocate(event) : way.release(event)) && fine;
            after_each(event);
        }
        return fine;
    };
    way.settle();
    way.give_back();
    const std::uint64_t before = free_bytes();
    std::uint64_t least = before;
    std::uint64_t live = 0;
    std::size_t at = 0;
    std::vector<std::size_t> bytes(trace.blocks);
    const bool fine = once([&](const Event& event) {
        live += event.bytes;
        if (event.bytes == 0) live -= bytes[event.block];
        bytes[event.block] = event.bytes;
        if (event.bytes != 0 && (live == trace.peak_bytes || ++at % 8 == 0)) least = std::min(least, free_bytes());
    });
    if (!fine) return state.SkipWithError("refused");
    way.settle();
    for (auto _ : state) {
        if (!once([](const Event&) {})) return state.SkipWithError("refused");
        state.PauseTiming();
        way.settle();
        state.ResumeTiming();
    }
    using benchmark::Counter;
    const auto events = static_cast<double>(trace.events.size());
    state.counters["per_event"] = Counter(events, Counter::kIsIterationInvariantRate | Counter::kInvert);
    if (before != 0) {
        state.counters["reserved"] = static_cast<double>(before - least) / static_cast<double>(trace.peak_bytes);
    }
    way.report(state);
    way.give_back();
}

// isthmus on streams, by block or by Buffer, from the cache (device memory) or from the driver's pool.
struct OfIsthmus {
    explicit OfIsthmus(MemoryKind of_kind, From from = From::driver)
        : kind(of_kind), device(runtime(from).default_device()) {}
    const char* prepare(const Trace& trace) {
        if (kind == MemoryKind::pool && !device.pool()) return "no pools here";
        // free_bytes() asks for the current context's device.
        if (!device.is_cpu() && (!raw.open() || !raw.prepare_device())) return "refused";
        served = device.cache_usage().served;
        missed = device.cache_usage().missed;
        for (std::uint32_t at = 0; at < trace.streams; ++at) streams.push_back(device.create_stream().value());
        return nullptr;
    }
    void settle() { (void)device.synchronize(); }
    void give_back() {
        (void)device.trim_cache();
        if (auto pool = device.pool()) (void)pool->trim(0);
    }
    void report(benchmark::State& state) const {
        const isthmus::CacheUsage usage = device.cache_usage();
        const auto hits = static_cast<double>(usage.served - served),
                   misses = static_cast<double>(usage.missed - missed);
        if (hits + misses > 0) state.counters["kept_served"] = hits / (hits + misses);
    }
    const MemoryKind kind;
    Device& device;
    bench::RawDriver raw;
    std::vector<Stream> streams;
    std::uint64_t served = 0, missed = 0;
};

struct Blocks : OfIsthmus {
    using OfIsthmus::OfIsthmus;
    const char* prepare(const Trace& trace) {
        blocks.resize(trace.blocks);
        return OfIsthmus::prepare(trace);
    }
    bool allocate(const Event& event) {
        auto made = allocator.allocate({event.bytes, 256, &streams[event.stream]});
        if (!made) return false;
        blocks[event.block] = *made;
        return true;
    }
    bool release(const Event& event) {
        // Only pools free in the order of a stream; blocks of other allocators are not used here.
        const bool pooled = blocks[event.block].kind == MemoryKind::pool;
        return allocator.release(blocks[event.block], pooled ? &streams[event.stream] : nullptr).ok();
    }
    const isthmus::Allocator allocator = device.allocator(kind);
    std::vector<isthmus::MemoryBlock> blocks;
};

struct Buffers : OfIsthmus {
    using OfIsthmus::OfIsthmus;
    const char* prepare(const Trace& trace) {
        buffers.resize(trace.blocks);
        return OfIsthmus::prepare(trace);
    }
    bool allocate(const Event& event) {
        auto made = kind == MemoryKind::pool ? streams[event.stream].allocate<std::uint8_t>(event.bytes, allocator)
                                             : device.allocate<std::uint8_t>(event.bytes, kind);
        if (!made) return false;
        buffers[event.block] = std::move(made).value();
        return true;
    }
    bool release(const Event& event) {
        const bool released = buffers[event.block]->release().ok();
        buffers[event.block].reset();
        return released;
    }
    const isthmus::Allocator allocator = device.allocator(kind);
    std::vector<std::optional<isthmus::Buffer<std::uint8_t>>> buffers;
};

struct OfDriver {
    const char* prepare(const Trace& trace) {
        if (!driver.open() || !driver.prepare_device()) return "no GPU";
        addresses.resize(trace.blocks);
        streams.resize(trace.streams);
        for (bench::RawDriver::Handle& stream : streams) {
            if (driver.stream_create(&stream, 1) != 0) return "refused";
        }
        return nullptr;
    }
    ~OfDriver() {
        for (const bench::RawDriver::Handle stream : streams) driver.stream_destroy(stream);
    }
    void settle() {
        for (const bench::RawDriver::Handle stream : streams) driver.stream_sync(stream);
    }
    void give_back() {}
    void report(benchmark::State&) const {}
    bench::RawDriver driver;
    std::vector<bench::RawDriver::Handle> streams;
    std::vector<std::uint64_t> addresses;
};

struct AsyncOfDriver : OfDriver {
    const char* prepare(const Trace& trace) {
        if (const char* const why = OfDriver::prepare(trace)) return why;
        if (!driver.find_pools() || driver.default_pool(&pool, 0) != 0) return "no pools here";
        driver.find(trim, "cuMemPoolTrimTo");
        return set_threshold(std::numeric_limits<std::uint64_t>::max()) ? nullptr : "refused";
    }
    void give_back() {
        if (trim != nullptr) trim(pool, 0);
    }
    ~AsyncOfDriver() {
        if (pool != nullptr) set_threshold(0);
    }
    bool set_threshold(std::uint64_t bytes) const {
        constexpr int release_threshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        return driver.pool_set_attribute(pool, release_threshold, &bytes) == 0;
    }
    bool allocate(const Event& event) {
        return driver.allocate_async(&addresses[event.block], event.bytes, streams[event.stream]) == 0;
    }
    bool release(const Event& event) { return driver.free_async(addresses[event.block], streams[event.stream]) == 0; }
    bench::RawDriver::Handle pool = nullptr;
    int (*trim)(bench::RawDriver::Handle, std::size_t) = nullptr;
};

struct SyncOfDriver : OfDriver {
    bool allocate(const Event& event) { return driver.allocate(&addresses[event.block], event.bytes) == 0; }
    bool release(const Event& event) { return driver.free(addresses[event.block]) == 0; }
};

#if defined(ISTHMUS_BENCH_CUB)
// Bins by powers of two from 512 B to 128 MiB; nothing is returned to the driver.
struct OfCub {
    const char* prepare(const Trace& trace) {
        if (cudaSetDevice(0) != cudaSuccess) return "the CUDA runtime finds no device";
        addresses.resize(trace.blocks);
        streams.resize(trace.streams);
        for (cudaStream_t& stream : streams) {
            if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return "refused";
        }
        return nullptr;
    }
    ~OfCub() {
        for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
    }
    bool allocate(const Event& event) {
        return allocator.DeviceAllocate(&addresses[event.block], event.bytes, streams[event.stream]) == cudaSuccess;
    }
    bool release(const Event& event) { return allocator.DeviceFree(addresses[event.block]) == cudaSuccess; }
    void settle() { cudaDeviceSynchronize(); }
    void give_back() { allocator.FreeAllCached(); }
    void report(benchmark::State&) const {}
    cub::CachingDeviceAllocator allocator{2, 9, 27, std::numeric_limits<std::size_t>::max()};
    std::vector<cudaStream_t> streams;
    std::vector<void*> addresses;
};
#endif

template <class Way, class... Arguments>
void add(const std::string& name, const Trace& trace, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [&trace, arguments...](benchmark::State& state) {
                                     Way way{arguments...};
                                     replay(state, trace, way);
                                 })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
}

void add_all(const std::string& path, const Trace& trace) {
    const std::string name = path.substr(path.rfind('/') + 1) + "/";
    add<Blocks>(name + "isthmus/device/block", trace, MemoryKind::device);
    add<Buffers>(name + "isthmus/device/buffer", trace, MemoryKind::device);
    add<Blocks>(name + "isthmus/segment/block", trace, MemoryKind::device, From::segment);
    add<Buffers>(name + "isthmus/segment/buffer", trace, MemoryKind::device, From::segment);
    add<Blocks>(name + "isthmus/pool/block", trace, MemoryKind::pool);
    add<Buffers>(name + "isthmus/pool/buffer", trace, MemoryKind::pool);
    add<AsyncOfDriver>(name + "raw/cuMemAllocAsync", trace);
    add<SyncOfDriver>(name + "raw/cuMemAlloc", trace);
#if defined(ISTHMUS_BENCH_CUB)
    add<OfCub>(name + "cub/CachingDeviceAllocator", trace);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::unique_ptr<Trace>> all;
    std::vector<char*> rest;
    runtime();
    for (int at = 0; at < argc; ++at) {
        constexpr std::size_t option = sizeof "--trace=" - 1;
        if (std::strncmp(argv[at], "--trace=", option) != 0) {
            rest.push_back(argv[at]);
            continue;
        }
        all.push_back(std::make_unique<Trace>(traces::read(argv[at] + option)));
        if (!all.back()->error.empty()) return std::fprintf(stderr, "%s\n", all.back()->error.c_str()), 2;
        add_all(argv[at] + option, *all.back());
    }
    if (all.empty()) return std::fputs("usage: bench_trace --trace=FILE... [options of Google Benchmark]\n", stderr), 2;
    int count = static_cast<int>(rest.size());
    benchmark::Initialize(&count, rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
