// SPDX-License-Identifier: Apache-2.0
// Measures allocations of host memory near a device: from slabs, from libnuma, by hand, and from malloc, which promises
// no node. Each iteration frees the oldest of 16 pieces, allocates a new one and touches each of its pages.
#include <host_slabs.hpp>

#include <benchmark/benchmark.h>

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using isthmus::detail::HostSlabs;
using isthmus::detail::SlabOptions;

constexpr std::size_t out_at_once = 16;
constexpr unsigned long mask_bits = 64;

SlabOptions near_node(int node) {
    SlabOptions options;
    options.placement.locality = isthmus::Locality::near_device;
    options.near_node = node;
    options.machine = isthmus::platform::os::machine_facts();
    options.slab_bytes = std::size_t{32} << 20;
    return options;
}

// The node that the benchmark runs on, local to its thread; -1: this system has no NUMA.
int node_here() {
    return ::numa_available() < 0 ? -1 : std::max(0, isthmus::platform::os::SystemCalls::real().current_node());
}

template <class Get, class Give>
void churn(benchmark::State& state, Get get, Give give) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::size_t page = isthmus::platform::os::page_size_bytes();
    std::array<void*, out_at_once> pieces{};
    std::size_t next = 0;
    for (auto _ : state) {
        void*& piece = pieces[next++ % out_at_once];
        if (piece != nullptr) give(piece, bytes);
        piece = get(bytes);
        if (piece == nullptr || piece == MAP_FAILED) {
            piece = nullptr;
            state.SkipWithError("this system refuses it");
            break;
        }
        auto* byte = static_cast<volatile unsigned char*>(piece);
        for (std::size_t offset = 0; offset < bytes; offset += page) byte[offset] = 1;
    }
    for (void* piece : pieces) {
        if (piece != nullptr) give(piece, bytes);
    }
}

void slabs(benchmark::State& state) {
    const int node = node_here();
    if (node < 0) return state.SkipWithError("no NUMA here");
    HostSlabs memory(near_node(node));
    churn(
        state,
        [&](std::size_t bytes) -> void* {
            auto piece = memory.allocate(bytes, 256);
            return piece ? piece->data : nullptr;
        },
        [&](void* data, std::size_t) { benchmark::DoNotOptimize(memory.release(data).ok()); });
}

void numa_onnode(benchmark::State& state) {
    const int node = node_here();
    if (node < 0) return state.SkipWithError("no NUMA here");
    churn(
        state, [&](std::size_t bytes) { return ::numa_alloc_onnode(bytes, node); }, ::numa_free);
}

void numa_local(benchmark::State& state) {
    if (node_here() < 0) return state.SkipWithError("no NUMA here");
    churn(state, ::numa_alloc_local, ::numa_free);
}

void mmap_mbind(benchmark::State& state) {
    const int node = node_here();
    if (node < 0 || node >= static_cast<int>(mask_bits)) return state.SkipWithError("no NUMA here");
    const unsigned long mask = 1ul << node;
    churn(
        state,
        [&](std::size_t bytes) -> void* {
            void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (data == MAP_FAILED || ::mbind(data, bytes, MPOL_PREFERRED, &mask, mask_bits, 0) == 0) return data;
            ::munmap(data, bytes);
            return nullptr;
        },
        [](void* data, std::size_t bytes) { ::munmap(data, bytes); });
}

void plain_malloc(benchmark::State& state) {
    churn(state, ::malloc, [](void* data, std::size_t) { ::free(data); });
}

void plain_aligned_alloc(benchmark::State& state) {
    churn(
        state, [](std::size_t bytes) { return ::aligned_alloc(256, bytes); },
        [](void* data, std::size_t) { ::free(data); });
}

// One whole slab, touched by the caller alone or together with other threads.
void touch_slab(benchmark::State& state) {
    const int node = node_here();
    if (node < 0) return state.SkipWithError("no NUMA here");
    SlabOptions options = near_node(node);
    options.slab_bytes = static_cast<std::size_t>(state.range(0));
    options.touchers.count = static_cast<unsigned>(state.range(1));
    options.touchers.run = [](unsigned count, const std::function<void(unsigned)>& task) {
        std::vector<std::thread> threads;
        for (unsigned index = 1; index < count; ++index) threads.emplace_back(task, index);
        task(0);
        for (std::thread& thread : threads) thread.join();
    };
    HostSlabs memory(std::move(options));
    for (auto _ : state) {
        auto piece = memory.allocate(256, 256);
        if (!piece) return state.SkipWithError("this system refuses it");
        benchmark::DoNotOptimize(memory.release(piece->data).ok());
        memory.trim();
    }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
    benchmark->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
}
BENCHMARK(slabs)->Apply(sizes);
BENCHMARK(numa_onnode)->Apply(sizes);
BENCHMARK(numa_local)->Apply(sizes);
BENCHMARK(mmap_mbind)->Apply(sizes);
BENCHMARK(plain_malloc)->Apply(sizes);
BENCHMARK(plain_aligned_alloc)->Apply(sizes);
BENCHMARK(touch_slab)->Args({256 << 20, 1})->Args({256 << 20, 2})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
