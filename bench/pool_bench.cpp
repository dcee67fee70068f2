// SPDX-License-Identifier: Apache-2.0
// Measures allocation and release of memory: shared buffers with and without the cache; on a stream, pools of isthmus,
// the driver's own functions, and CUB's caching allocator. pool_torch.py measures PyTorch's.
//   bench_pool --benchmark_enable_random_interleaving=true --benchmark_repetitions=7
//              --benchmark_report_aggregates_only=true
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#if defined(ISTHMUS_BENCH_CUB)
#include <cub/util_allocator.cuh>
#endif

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Stream;

constexpr std::int64_t sizes_bytes[] = {256, 4 << 10, 1 << 20, 64 << 20};
constexpr std::int64_t shared_sizes_bytes[] = {64, 4 << 10, 1 << 20, 8 << 20};
// Pairs between two synchronisations, which are not timed: the driver's records must not pile up.
constexpr int batch = 64;

isthmus::Runtime keeping(std::uint64_t cache_bytes) {
    isthmus::RuntimeOptions options;
    options.cache_bytes = cache_bytes;
    return isthmus::Runtime::open(options).value();
}
isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = keeping(std::uint64_t{256} << 20);
    return opened;
}
// Keeps no released memory: every pair is the driver's and the system's own.
isthmus::Runtime& uncached() {
    static isthmus::Runtime opened = keeping(0);
    return opened;
}

// Times `pair`, which allocates, releases and returns whether both succeeded; `settle` waits for the stream.
template <class Pair, class Settle>
void run(benchmark::State& state, Pair pair, Settle settle) {
    if (!pair()) return state.SkipWithError("refused");
    settle();
    const bool counted = bench::driver_calls() >= 0;
    long calls = 0;
    while (state.KeepRunningBatch(batch)) {
        const long before = counted ? bench::driver_calls() : 0;
        bool succeeded = true;
        for (int i = 0; i < batch; ++i) succeeded = pair() && succeeded;
        if (counted) calls += bench::driver_calls() - before;
        state.PauseTiming();
        settle();
        state.ResumeTiming();
        if (!succeeded) return state.SkipWithError("refused");
    }
    if (counted) {
        state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    }
}

std::size_t bytes_of(const benchmark::State& state) {
    return static_cast<std::size_t>(state.range(0));
}

// isthmus: plain blocks of any allocator.
void blocks(benchmark::State& state, const isthmus::Allocator& allocator) {
    Stream stream = runtime().default_device().create_stream().value();
    run(
        state,
        [&] {
            auto block = allocator.allocate({bytes_of(state), 256, &stream});
            if (!block) return false;
            benchmark::DoNotOptimize(block->device);
            // Only pools free in the order of a stream; blocks of other allocators are not used here.
            const bool pooled = block->kind == MemoryKind::pool;
            return allocator.release(*block, pooled ? &stream : nullptr).ok();
        },
        [&] { (void)stream.synchronize(); });
}

// Memory of the device's own pool is kept behind the work of its stream; that of a pool of the user's is not.
void own_pool_blocks(benchmark::State& state) {
    if (!runtime().default_device().pool()) return state.SkipWithError("no pools here");
    blocks(state, runtime().default_device().allocator(MemoryKind::pool));
}

// Each block is allocated on one of `range(1)` streams and released behind the next of them.
void blocks_released_behind_another(benchmark::State& state) {
    Device& device = runtime().default_device();
    if (!device.pool()) return state.SkipWithError("no pools here");
    std::vector<Stream> streams;
    for (std::int64_t made = 0; made < state.range(1); ++made) streams.push_back(device.create_stream().value());
    const isthmus::Allocator allocator = device.allocator(MemoryKind::pool);
    std::size_t turn = 0;
    run(
        state,
        [&] {
            Stream& first = streams[turn];
            turn = (turn + 1) % streams.size();
            const auto block = allocator.allocate({bytes_of(state), 256, &first});
            if (!block) return false;
            benchmark::DoNotOptimize(block->device);
            return allocator.release(*block, &streams[turn]).ok();
        },
        [&] { (void)device.synchronize(); });
}

void pool_blocks(benchmark::State& state) {
    const auto pool = runtime().default_device().create_pool();
    if (!pool) return state.SkipWithError("no pools here");
    blocks(state, pool->allocator());
}

void device_blocks(benchmark::State& state) {
    if (runtime().default_device().is_cpu()) return state.SkipWithError("no GPU");
    blocks(state, runtime().default_device().allocator(MemoryKind::device));
}

// isthmus: buffers, which track their uses and release themselves.
void pool_buffers(benchmark::State& state) {
    Device& device = runtime().default_device();
    const auto pool = device.create_pool();
    if (!pool) return state.SkipWithError("no pools here");
    Stream stream = device.create_stream().value();
    run(
        state,
        [&] {
            auto buffer = stream.allocate<std::uint8_t>(bytes_of(state), pool->allocator());
            return buffer.ok();
        },
        [&] { (void)stream.synchronize(); });
}

// Where several threads run this, each has a stream of its own.
void own_pool_buffers(benchmark::State& state) {
    Device& device = runtime().default_device();
    if (!device.pool()) return state.SkipWithError("no pools here");
    Stream stream = device.create_stream().value();
    run(
        state, [&] { return stream.allocate<std::uint8_t>(bytes_of(state)).ok(); },
        [&] { (void)stream.synchronize(); });
}

struct Raw {
    bench::RawDriver driver;
    bench::RawDriver::Handle stream = nullptr;
    bool open() { return driver.open() && driver.prepare_device() && driver.stream_create(&stream, 1) == 0; }
    ~Raw() {
        if (stream != nullptr) driver.stream_destroy(stream);
    }
};

// Unless told to keep unused memory, as pools of isthmus do, the driver's default pool returns it at every
// synchronisation.
void raw_async(benchmark::State& state, bool keeps) {
    Raw raw;
    bench::RawDriver::Handle pool = nullptr;
    if (!raw.open() || !raw.driver.find_pools() || raw.driver.default_pool(&pool, 0) != 0) {
        return state.SkipWithError("no pools here");
    }
    std::uint64_t threshold = keeps ? std::numeric_limits<std::uint64_t>::max() : 0;
    constexpr int release_threshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    if (raw.driver.pool_set_attribute(pool, release_threshold, &threshold) != 0) return state.SkipWithError("refused");
    run(
        state,
        [&] {
            std::uint64_t address = 0;
            if (raw.driver.allocate_async(&address, bytes_of(state), raw.stream) != 0) return false;
            benchmark::DoNotOptimize(address);
            return raw.driver.free_async(address, raw.stream) == 0;
        },
        [&] { raw.driver.stream_sync(raw.stream); });
    threshold = 0;
    raw.driver.pool_set_attribute(pool, release_threshold, &threshold);
}

void raw_sync(benchmark::State& state) {
    Raw raw;
    if (!raw.open()) return state.SkipWithError("no GPU");
    run(
        state,
        [&] {
            std::uint64_t address = 0;
            if (raw.driver.allocate(&address, bytes_of(state)) != 0) return false;
            benchmark::DoNotOptimize(address);
            return raw.driver.free(address) == 0;
        },
        [] {});
}

// allocate_shared and its end, where nothing else of its kind lives. The CPU device has host memory for every kind.
void shared_buffers(benchmark::State& state, Device& device, MemoryKind kind) {
    isthmus::SharedUse use;
    use.kind = kind;
    run(
        state, [&] { return device.allocate_shared<std::uint8_t>(bytes_of(state), use).ok(); }, [] {});
}

void raw_host(benchmark::State& state, unsigned flags) {
    Raw raw;
    if (!raw.open() || !raw.driver.find_host()) return state.SkipWithError("no GPU");
    run(
        state,
        [&] {
            void* memory = nullptr;
            if (raw.driver.allocate_host(&memory, bytes_of(state), flags) != 0) return false;
            benchmark::DoNotOptimize(memory);
            return raw.driver.free_host(memory) == 0;
        },
        [] {});
}

void raw_managed(benchmark::State& state) {
    Raw raw;
    if (!raw.open() || !raw.driver.find_host()) return state.SkipWithError("no GPU");
    run(
        state,
        [&] {
            std::uint64_t address = 0;
            if (raw.driver.allocate_managed(&address, bytes_of(state), 1) != 0) return false;
            benchmark::DoNotOptimize(address);
            return raw.driver.free(address) == 0;
        },
        [] {});
}

void add_shared() {
    const auto add = [](const std::string& name, auto body) {
        auto* benchmark = benchmark::RegisterBenchmark(name.c_str(), body);
        for (const std::int64_t bytes : shared_sizes_bytes) benchmark->Arg(bytes);
    };
    for (const MemoryKind kind :
         {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed, MemoryKind::registered, MemoryKind::host}) {
        const std::string of_kind(isthmus::name(kind));
        add("shared/" + of_kind + "/kept",
            [kind](benchmark::State& state) { shared_buffers(state, runtime().default_device(), kind); });
        add("shared/" + of_kind + "/uncached",
            [kind](benchmark::State& state) { shared_buffers(state, uncached().default_device(), kind); });
    }
    add("shared/cpu_device/kept",
        [](benchmark::State& state) { shared_buffers(state, runtime().cpu(), MemoryKind::host); });
    add("shared/cpu_device/uncached",
        [](benchmark::State& state) { shared_buffers(state, uncached().cpu(), MemoryKind::host); });
    constexpr unsigned portable_mapped = 3;
    add("raw/cuMemHostAlloc", [](benchmark::State& state) { raw_host(state, portable_mapped); });
    add("raw/cuMemAllocManaged", raw_managed);
}

// 1 to 16 threads at once, each with pairs of its own: real time of a pair of one thread.
void add_threads() {
    const auto add = [](const char* name, auto body) {
        benchmark::RegisterBenchmark(name, body)->Arg(4 << 10)->ThreadRange(1, 16)->UseRealTime();
    };
    add("threads/own_pool/block", own_pool_blocks);
    add("threads/own_pool/buffer", own_pool_buffers);
    add("threads/shared/pinned",
        [](benchmark::State& state) { shared_buffers(state, runtime().default_device(), MemoryKind::pinned); });
    add("threads/shared/cpu_device",
        [](benchmark::State& state) { shared_buffers(state, runtime().cpu(), MemoryKind::host); });
    add("threads/raw/cuMemAllocAsync", [](benchmark::State& state) { raw_async(state, true); });
}

#if defined(ISTHMUS_BENCH_CUB)
// Bins by powers of two from 256 B to 128 MiB; nothing is returned to the driver. Each size here fits a bin exactly.
void cub_caching(benchmark::State& state) {
    if (cudaSetDevice(0) != cudaSuccess) return state.SkipWithError("the CUDA runtime finds no device");
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
        return state.SkipWithError("the CUDA runtime makes no stream");
    }
    {
        cub::CachingDeviceAllocator allocator(2, 8, 27, std::numeric_limits<std::size_t>::max());
        run(
            state,
            [&] {
                void* address = nullptr;
                if (allocator.DeviceAllocate(&address, bytes_of(state), stream) != cudaSuccess) return false;
                benchmark::DoNotOptimize(address);
                return allocator.DeviceFree(address) == cudaSuccess;
            },
            [&] { cudaStreamSynchronize(stream); });
    }
    cudaStreamDestroy(stream);
}
#else
void cub_caching(benchmark::State& state) {
    state.SkipWithError("built without CUB");
}
#endif

}  // namespace

int main(int argc, char** argv) {
    if (runtime().default_device().is_cpu()) std::fputs("no GPU: the driver's part is skipped\n", stderr);
    const auto add = [](const char* name, auto body) {
        auto* benchmark = benchmark::RegisterBenchmark(name, body);
        for (const std::int64_t bytes : sizes_bytes) benchmark->Arg(bytes);
    };
    add("isthmus/own_pool/block", own_pool_blocks);
    add("isthmus/own_pool/buffer", own_pool_buffers);
    for (const std::int64_t streams : {2, 32}) {
        benchmark::RegisterBenchmark("isthmus/own_pool/block_released_behind_another", blocks_released_behind_another)
            ->Args({4 << 10, streams});
    }
    add("isthmus/pool/block", pool_blocks);
    add("isthmus/pool/buffer", pool_buffers);
    add("raw/cuMemAllocAsync/kept", [](benchmark::State& state) { raw_async(state, true); });
    add("raw/cuMemAllocAsync/default_threshold", [](benchmark::State& state) { raw_async(state, false); });
    add("cub/CachingDeviceAllocator", cub_caching);
    add("isthmus/device/block", device_blocks);
    add("raw/cuMemAlloc", raw_sync);
    add_shared();
    add_threads();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
