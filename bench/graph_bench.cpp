// SPDX-License-Identifier: Apache-2.0
// Measures replays of graphs with 1 to 1000 kernels, also with new arguments for k of them first, beside the driver's
// own calls, and beside recording the work again.
//   bench_graph --benchmark_filter=paired
//   bench_graph --benchmark_enable_random_interleaving=true --benchmark_repetitions=15 --benchmark_min_time=0.1
//               --benchmark_report_aggregates_only=true
// "paired" alternates batches of raw calls and of isthmus' calls, and reports the medians of both and of their ratio,
// so that a temporary slowdown of the machine affects both. Times are of the calls alone; the wait after every batch is
// not timed. The figure after the last slash is the number of kernels in the graph; in "patch_k", k is the number of
// kernels whose arguments are set before each launch.
#include "bench_kernels.hpp"
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace {

using bench::driver_calls;
using isthmus::Buffer;
using isthmus::Capture;
using isthmus::Device;
using isthmus::Graph;
using isthmus::GraphInstance;
using isthmus::Stream;

constexpr std::size_t items = 64;
constexpr int batch = 16;  // replays between two waits
using Node = isthmus::KernelNode<void(isthmus::Index, isthmus::View<int>)>;

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}

// Calls `step` in batches, and `wait` after each batch, untimed.
template <class Step, class Wait>
void run(benchmark::State& state, Step step, Wait wait) {
    step();
    wait();
    long calls = 0;
    const bool counted = driver_calls() >= 0;
    while (state.KeepRunningBatch(batch)) {
        const long before = counted ? driver_calls() : 0;
        for (int i = 0; i < batch; ++i) step();
        if (counted) calls += driver_calls() - before;
        state.PauseTiming();
        wait();
        state.ResumeTiming();
    }
    if (counted) {
        state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    }
}

// A chain of kernels that use two buffers of the device.
struct Chain {
    explicit Chain(Device& device)
        : stream(device.create_stream().value()),
          buffers{device.allocate<int>(items).value(), device.allocate<int>(items).value()} {}

    Graph record(std::size_t kernels, bool with_nodes) {
        Capture capture = stream.begin_capture().value();
        nodes.clear();
        for (std::size_t at = 0; at < kernels; ++at) {
            if (with_nodes) {
                nodes.push_back(capture.launch(bench::one_view, items, buffers[0]).value());
            } else {
                (void)stream.launch(bench::one_view, items, buffers[0]);
            }
        }
        return capture.end().value();
    }

    // Sets the other of the two buffers as argument of the first `patched` kernels, and launches the graph.
    void patch_and_launch(GraphInstance& instance, std::size_t patched, std::size_t turn) {
        Buffer<int>& buffer = buffers[turn % 2];
        for (std::size_t at = 0; at < patched; ++at) (void)instance.set_arguments(nodes[at], items, buffer);
        (void)stream.launch(instance);
    }

    Stream stream;
    std::array<Buffer<int>, 2> buffers;
    std::vector<Node> nodes;
};

void replay(benchmark::State& state, Device& device, std::size_t kernels, std::size_t patched) {
    Chain chain(device);
    GraphInstance instance = chain.record(kernels, true).instantiate().value();
    std::size_t turn = 0;
    run(
        state, [&] { chain.patch_and_launch(instance, patched, ++turn); }, [&] { chain.stream.synchronize().value(); });
}

// Other ways to launch the same work with new arguments: record and instantiate again, or record again and update the
// instance.
void again(benchmark::State& state, Device& device, std::size_t kernels, bool update) {
    Chain chain(device);
    std::optional<GraphInstance> instance = chain.record(kernels, false).instantiate().value();
    run(
        state,
        [&] {
            std::swap(chain.buffers[0], chain.buffers[1]);
            const Graph graph = chain.record(kernels, false);
            if (update) {
                (void)instance->update(graph);
            } else {
                chain.stream.synchronize().value();  // the old instance must be idle before it is replaced
                instance = graph.instantiate().value();
            }
            (void)chain.stream.launch(*instance);
        },
        [&] { chain.stream.synchronize().value(); });
}

// The same through the driver's own functions.
struct RawGraphs : bench::RawDriver {
    struct Params {
        Handle function;
        unsigned grid[3], block[3], shared;
        void** arguments;
        void** extra;
        Handle kernel, context;
    };
    struct Told {
        int result;
        Handle node, from;
    };
    int (*begin)(Handle, int) = nullptr;
    int (*end)(Handle, Handle*) = nullptr;
    int (*info)(Handle, int*, std::uint64_t*, Handle*, const Handle**, std::size_t*) = nullptr;
    int (*instantiate)(Handle*, Handle, unsigned long long) = nullptr;
    int (*graph_launch)(Handle, Handle) = nullptr;
    int (*set_params)(Handle, Handle, const Params*) = nullptr;
    int (*update)(Handle, Handle, Told*) = nullptr;
    int (*destroy_graph)(Handle) = nullptr;
    int (*destroy_instance)(Handle) = nullptr;

    bool find_all() {
        return open() && prepare(bench::one_view.info(), stream, entry) && find(begin, "cuStreamBeginCapture_v2") &&
               find(end, "cuStreamEndCapture") && find(info, "cuStreamGetCaptureInfo_v2") &&
               find(instantiate, "cuGraphInstantiateWithFlags") && find(graph_launch, "cuGraphLaunch") &&
               find(set_params, "cuGraphExecKernelNodeSetParams_v2") && find(update, "cuGraphExecUpdate_v2") &&
               find(destroy_graph, "cuGraphDestroy") && find(destroy_instance, "cuGraphExecDestroy") &&
               allocate(&memory[0], items * sizeof(int)) == 0 && allocate(&memory[1], items * sizeof(int)) == 0;
    }
    Handle record(std::size_t kernels, std::uint64_t address, bool with_nodes) {
        Handle graph = nullptr;
        nodes.clear();
        (void)begin(stream, 1);
        for (std::size_t at = 0; at < kernels; ++at) {
            struct {
                std::uint64_t address, count;
            } pack{address, items};
            isthmus::Extent extent{items, 1, 1};
            void* arguments[] = {&extent, &pack};
            (void)launch(entry, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
            int status = 0;
            const Handle* last = nullptr;
            std::size_t count = 0;
            if (!with_nodes) continue;
            (void)info(stream, &status, nullptr, nullptr, &last, &count);
            nodes.push_back(count == 1 ? last[0] : nullptr);
        }
        (void)end(stream, &graph);
        return graph;
    }
    void patch(Handle instance, std::size_t node, std::uint64_t address) {
        struct {
            std::uint64_t address, count;
        } pack{address, items};
        isthmus::Extent extent{items, 1, 1};
        void* arguments[] = {&extent, &pack};
        // A node with a kernel and its context needs no current context, as in isthmus; a node with a function does.
        const Params params{kernel == nullptr ? entry : nullptr,  {1, 1, 1}, {256, 1, 1}, 0, arguments, nullptr, kernel,
                            kernel == nullptr ? nullptr : context};
        (void)set_params(instance, nodes[node], &params);
    }

    void patch_and_launch(Handle instance, std::size_t patched, std::size_t turn) {
        const std::uint64_t address = memory[turn % 2];
        for (std::size_t at = 0; at < patched; ++at) patch(instance, at, address);
        (void)graph_launch(instance, stream);
    }
    bool without_current_context() {
        int (*load_library)(Handle*, const void*, void*, void*, unsigned, void*, void*, unsigned) = nullptr;
        int (*get_kernel)(Handle*, Handle, const char*) = nullptr;
        int (*get_current)(Handle*) = nullptr;
        Handle library = nullptr;
        const isthmus::KernelInfo& view = bench::one_view.info();
        return find(load_library, "cuLibraryLoadData") && find(get_kernel, "cuLibraryGetKernel") &&
               find(get_current, "cuCtxGetCurrent") && get_current(&context) == 0 &&
               load_library(&library, view.image->data, nullptr, nullptr, 0, nullptr, nullptr, 0) == 0 &&
               get_kernel(&kernel, library, view.symbol) == 0;
    }

    Handle stream = nullptr, entry = nullptr, kernel = nullptr, context = nullptr;
    std::uint64_t memory[2] = {};
    std::vector<Handle> nodes;
};

void raw_replay(benchmark::State& state, std::size_t kernels, std::size_t patched) {
    RawGraphs driver;
    if (!driver.find_all()) return state.SkipWithError("no GPU, or no graphs");
    RawGraphs::Handle instance = nullptr;
    const RawGraphs::Handle graph = driver.record(kernels, driver.memory[0], true);
    (void)driver.instantiate(&instance, graph, 0);
    std::size_t turn = 0;
    run(
        state, [&] { driver.patch_and_launch(instance, patched, ++turn); },
        [&] { (void)driver.stream_sync(driver.stream); });
    (void)driver.destroy_instance(instance);
    (void)driver.destroy_graph(graph);
}

void raw_again(benchmark::State& state, std::size_t kernels, bool update) {
    RawGraphs driver;
    if (!driver.find_all()) return state.SkipWithError("no GPU, or no graphs");
    RawGraphs::Handle instance = nullptr;
    RawGraphs::Handle graph = driver.record(kernels, driver.memory[0], false);
    (void)driver.instantiate(&instance, graph, 0);
    std::size_t turn = 0;
    run(
        state,
        [&] {
            (void)driver.destroy_graph(graph);
            graph = driver.record(kernels, driver.memory[++turn % 2], false);
            if (update) {
                RawGraphs::Told told{};
                (void)driver.update(instance, graph, &told);
            } else {
                (void)driver.stream_sync(driver.stream);
                (void)driver.destroy_instance(instance);
                (void)driver.instantiate(&instance, graph, 0);
            }
            (void)driver.graph_launch(instance, driver.stream);
        },
        [&] { (void)driver.stream_sync(driver.stream); });
    (void)driver.destroy_instance(instance);
    (void)driver.destroy_graph(graph);
}

// Alternates `ours` and `theirs`; each is a timed call with its wait.
template <class Ours, class OursWait, class Theirs, class TheirsWait>
void take_turns(benchmark::State& state, Ours ours, OursWait ours_wait, Theirs theirs, TheirsWait theirs_wait) {
    const auto timed = [](auto& step, auto& wait) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < batch; ++i) step();
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        wait();
        return took.count() / batch;
    };
    const auto median = [](std::vector<double> of) {
        std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
        return of[of.size() / 2];
    };
    for (int i = 0; i < 3; ++i) (void)timed(ours, ours_wait), (void)timed(theirs, theirs_wait);
    std::vector<double> ours_ns, theirs_ns, ratios;
    for (auto _ : state) {
        // Alternates the order, so that neither always runs with the other's caches.
        const bool first = ours_ns.size() % 2 == 0;
        if (first) ours_ns.push_back(timed(ours, ours_wait));
        theirs_ns.push_back(timed(theirs, theirs_wait));
        if (!first) ours_ns.push_back(timed(ours, ours_wait));
        ratios.push_back(ours_ns.back() / theirs_ns.back());
        state.SetIterationTime(ours_ns.back() * 1e-9);
    }
    state.counters["isthmus_ns"] = median(ours_ns);
    state.counters["raw_ns"] = median(theirs_ns);
    state.counters["ratio"] = median(ratios);
}

void paired_replay(benchmark::State& state, Device& device, std::size_t kernels, std::size_t patched, bool current) {
    RawGraphs driver;
    if (!driver.find_all() || (!current && !driver.without_current_context())) {
        return state.SkipWithError("no GPU, or no graphs");
    }
    RawGraphs::Handle raw = nullptr;
    const RawGraphs::Handle graph = driver.record(kernels, driver.memory[0], true);
    (void)driver.instantiate(&raw, graph, 0);
    Chain chain(device);
    GraphInstance instance = chain.record(kernels, true).instantiate().value();
    std::size_t turn = 0;
    take_turns(
        state, [&] { chain.patch_and_launch(instance, patched, ++turn); }, [&] { chain.stream.synchronize().value(); },
        [&] { driver.patch_and_launch(raw, patched, ++turn); }, [&] { (void)driver.stream_sync(driver.stream); });
    (void)driver.destroy_instance(raw);
    (void)driver.destroy_graph(graph);
}

void add_paired(Device& device) {
    for (const std::size_t kernels : {std::size_t{1}, std::size_t{10}, std::size_t{100}, std::size_t{1000}}) {
        for (const std::size_t patched : {std::size_t{0}, std::size_t{1}, std::size_t{10}, std::size_t{100}}) {
            if (patched > kernels) continue;
            // With a function, and with a kernel: the driver's two ways to name a node's code.
            for (const bool current : {true, false}) {
                if (patched == 0 && !current) continue;
                std::string what = patched == 0 ? "replay" : "patch_" + std::to_string(patched) + "_then_replay";
                if (!current) what += "_without_context";
                benchmark::RegisterBenchmark(
                    ("paired/" + what + "/" + std::to_string(kernels)).c_str(),
                    [=, &device](benchmark::State& state) { paired_replay(state, device, kernels, patched, current); })
                    ->UseManualTime()
                    ->Iterations(kernels == 1000 ? 60 : 400);
            }
        }
    }
}

template <class Body>
void add(const std::string& name, std::size_t kernels, Body body) {
    benchmark::RegisterBenchmark((name + "/" + std::to_string(kernels)).c_str(),
                                 [=](benchmark::State& state) { body(state, kernels); });
}

void add_all_of(Device& device, const std::string& prefix) {
    for (const std::size_t kernels : {std::size_t{1}, std::size_t{10}, std::size_t{100}, std::size_t{1000}}) {
        add(prefix + "/replay", kernels,
            [&device](benchmark::State& state, std::size_t size) { replay(state, device, size, 0); });
        for (const std::size_t patched : {std::size_t{1}, std::size_t{10}, std::size_t{100}}) {
            if (patched > kernels) continue;
            add(prefix + "/patch_" + std::to_string(patched) + "_then_replay", kernels,
                [&device, patched](benchmark::State& state, std::size_t size) {
                    replay(state, device, size, patched);
                });
        }
        add(prefix + "/record_and_instantiate", kernels,
            [&device](benchmark::State& state, std::size_t size) { again(state, device, size, false); });
        add(prefix + "/record_and_update", kernels,
            [&device](benchmark::State& state, std::size_t size) { again(state, device, size, true); });
    }
}

void add_raw() {
    for (const std::size_t kernels : {std::size_t{1}, std::size_t{10}, std::size_t{100}, std::size_t{1000}}) {
        add("raw/replay", kernels, [](benchmark::State& state, std::size_t size) { raw_replay(state, size, 0); });
        for (const std::size_t patched : {std::size_t{1}, std::size_t{10}, std::size_t{100}}) {
            if (patched > kernels) continue;
            add("raw/patch_" + std::to_string(patched) + "_then_replay", kernels,
                [patched](benchmark::State& state, std::size_t size) { raw_replay(state, size, patched); });
        }
        add("raw/record_and_instantiate", kernels,
            [](benchmark::State& state, std::size_t size) { raw_again(state, size, false); });
        add("raw/record_and_update", kernels,
            [](benchmark::State& state, std::size_t size) { raw_again(state, size, true); });
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (runtime().cpu().stream().begin_capture().ok()) add_all_of(runtime().cpu(), "cpu");
    if (!runtime().default_device().is_cpu()) {
        add_all_of(runtime().default_device(), "gpu");
        add_raw();
        add_paired(runtime().default_device());
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
