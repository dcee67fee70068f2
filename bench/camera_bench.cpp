// SPDX-License-Identifier: Apache-2.0
// Measures the camera pipeline, from a frame that the CPU writes to a list of corners that it reads, beside peers that
// do the same.
//   bench_camera [--benchmark_filter=384x288] [--benchmark_repetitions=5 --benchmark_report_aggregates_only=true]
// camera/SIZE/WAY: one frame at a time (latency), then with two in flight (frames a second). ratio/SIZE/…: all ways of
// a kind by turns, batch by batch, so that drift of the machine affects all alike; read the counters. kernels/SIZE:
// each kernel alone, as one of many in a graph, which is what the GPU spends on it. Ways: isthmus_cpu (one thread),
// isthmus_cpu_all (all CPUs), opencv (one thread, where libopencv was found when this was built), isthmus (a graph
// whose first kernel takes each frame's buffer), isthmus_copied (the same over buffers that the machine copies), raw
// (the same kernels by cuLaunchKernel over pinned memory in place), raw_graph (by a graph of the raw driver with a
// patched node), raw_copied (frames copied to the device, lists back), npp (Harris alone, with copies, where the
// toolkit has NPP).
#include "camera_raw.hpp"
#include "camera_ways.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using bench::Way;
using isthmus::kernels::Plane;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration took) {
    return std::chrono::duration<double, std::micro>(took).count();
}
double percentile(std::vector<double>& of, double part) {
    if (of.empty()) return 0;
    std::sort(of.begin(), of.end());
    return of[std::min(of.size() - 1, static_cast<std::size_t>(part * static_cast<double>(of.size())))];
}

// Frames of a scene that moves, with corners: rectangles of random brightness, and noise.
std::vector<std::vector<std::uint8_t>> scene(const Plane& plane) {
    std::vector<std::vector<std::uint8_t>> frames;
    std::uint32_t noise = 1;
    for (std::uint32_t number = 0; number < 4; ++number) {
        std::vector<std::uint8_t> frame(isthmus::kernels::size_of(plane));
        for (std::uint32_t y = 0; y < plane.height; ++y) {
            for (std::uint32_t x = 0; x < plane.width; ++x) {
                const std::uint32_t tile = ((x + 2 * number) / 23 * 2654435761u) ^ ((y + number) / 17 * 40503u * 97u);
                noise = noise * 1664525u + 1013904223u;
                frame[std::size_t{y} * plane.pitch + x] = static_cast<std::uint8_t>(20 + tile % 200 + (noise >> 30));
            }
        }
        frames.push_back(std::move(frame));
    }
    return frames;
}

// Waits spin, as those of the raw driver do: the adaptive ones sleep after 100 µs, for a tenth of the time waited.
isthmus::Runtime& runtime(bool all_cpus = false) {
    const auto opened = [](unsigned cpu_threads) {
        isthmus::RuntimeOptions options;
        options.wait_policy = isthmus::WaitPolicy::spin;
        options.cpu_threads = cpu_threads;
        return isthmus::Runtime::open(options).value();
    };
    static isthmus::Runtime one = opened(isthmus::RuntimeOptions{}.cpu_threads);
    static isthmus::Runtime all = opened(std::thread::hardware_concurrency());
    return all_cpus ? all : one;
}

struct Maker {
    std::string name;
    bool on_gpu;
    std::function<std::unique_ptr<Way>(const Plane&)> make;
};

const std::vector<Maker>& makers() {
    static const std::vector<Maker> all = [] {
        std::vector<Maker> made;
        const auto add = [&](const char* name, bool on_gpu, auto make) { made.push_back({name, on_gpu, make}); };
        add("isthmus_cpu", false, [](const Plane& plane) { return bench::isthmus_way(runtime().cpu(), plane, false); });
        add("isthmus_cpu_all", false,
            [](const Plane& plane) { return bench::isthmus_way(runtime(true).cpu(), plane, false); });
        if (bench::with_opencv) add("opencv", false, [](const Plane& plane) { return bench::opencv_way(plane); });
        if (runtime().default_device().is_cpu()) return made;
        add("isthmus", true,
            [](const Plane& plane) { return bench::isthmus_way(runtime().default_device(), plane, false); });
        add("isthmus_copied", true,
            [](const Plane& plane) { return bench::isthmus_way(runtime().default_device(), plane, true); });
        add("raw", true, [](const Plane& plane) { return bench::raw_way(plane, bench::Raw::launches); });
        add("raw_graph", true, [](const Plane& plane) { return bench::raw_way(plane, bench::Raw::graph); });
        add("raw_copied", true, [](const Plane& plane) { return bench::raw_way(plane, bench::Raw::copies); });
        if (bench::with_npp) add("npp", true, [](const Plane& plane) { return bench::npp_way(plane); });
        return made;
    }();
    return all;
}

// All ways that give corners give the same ones: a figure of wrong results means nothing.
std::uint64_t expected(const Plane& plane) {
    static std::map<std::uint32_t, std::uint64_t> known;
    const auto found = known.find(plane.width);
    if (found != known.end()) return found->second;
    const std::unique_ptr<Way> way = bench::isthmus_way(runtime().cpu(), plane, false);
    way->give(0, scene(plane)[0].data());
    return known[plane.width] = way->take(0);
}

// A way that works on this machine, and whose first result is right; else nullptr.
std::unique_ptr<Way> checked(const Maker& maker, const Plane& plane, std::string& why) {
    std::unique_ptr<Way> way = maker.make(plane);
    if (!way || !way->ready()) {
        why = "not on this machine";
        return nullptr;
    }
    way->give(0, scene(plane)[0].data());
    const std::uint64_t digest = way->take(0);
    if (way->lists_corners() && digest != expected(plane)) {
        why = "other corners than the CPU device's";
        return nullptr;
    }
    return way;
}

// Microseconds a frame with two frames in flight.
double stream_of_frames(Way& way, const std::vector<std::vector<std::uint8_t>>& frames, int count) {
    const auto begin = Clock::now();
    for (int n = 0; n < count + 1; ++n) {
        if (n < count)
            way.give(static_cast<std::size_t>(n % 2), frames[static_cast<std::size_t>(n) % frames.size()].data());
        if (n > 0) benchmark::DoNotOptimize(way.take(static_cast<std::size_t>((n - 1) % 2)));
    }
    return microseconds(Clock::now() - begin) / count;
}

void one_way(benchmark::State& state, const Maker& maker, const Plane& plane) {
    std::string why;
    const std::unique_ptr<Way> way = checked(maker, plane, why);
    if (!way) return state.SkipWithError(why.c_str());
    const auto frames = scene(plane);
    (void)stream_of_frames(*way, frames, 8);
    const std::uint64_t copied_before = way->bytes_copied();
    std::vector<double> taken;
    std::size_t n = 0;
    for (auto _ : state) {
        const auto begin = Clock::now();
        way->give(0, frames[n++ % frames.size()].data());
        benchmark::DoNotOptimize(way->take(0));
        const auto took = Clock::now() - begin;
        state.SetIterationTime(std::chrono::duration<double>(took).count());
        taken.push_back(microseconds(took));
    }
    state.counters["bytes_copied"] =
        static_cast<double>(way->bytes_copied() - copied_before) / static_cast<double>(std::max<std::size_t>(n, 1));
    state.counters["p50_us"] = percentile(taken, 0.5);
    state.counters["p99_us"] = percentile(taken, 0.99);
    const int count = static_cast<int>(std::clamp(2e5 / std::max(percentile(taken, 0.5), 1.0), 8.0, 4000.0));
    state.counters["frames_per_s"] = 1e6 / stream_of_frames(*way, frames, count);
    if (const double gpu = way->device_us(); gpu > 0) state.counters["gpu_us"] = gpu;
}

// All ways of a kind take turns. `latency`: one frame at a time; otherwise two in flight.
void by_turns(benchmark::State& state, bool on_gpu, bool latency, const Plane& plane) {
    const auto frames = scene(plane);
    std::vector<std::pair<std::string, std::unique_ptr<Way>>> ways;
    for (const Maker& maker : makers()) {
        std::string why;
        if (maker.on_gpu != on_gpu) continue;
        if (std::unique_ptr<Way> way = checked(maker, plane, why)) ways.emplace_back(maker.name, std::move(way));
    }
    if (ways.size() < 2) return state.SkipWithError("nothing to compare with");
    std::map<std::string, std::vector<double>> taken;
    const auto once = [&](Way& way) {
        if (!latency) return stream_of_frames(way, frames, on_gpu ? 100 : 10);
        std::vector<double> each;
        for (int n = 0; n < (on_gpu ? 100 : 10); ++n) {
            const auto begin = Clock::now();
            way.give(0, frames[static_cast<std::size_t>(n) % frames.size()].data());
            benchmark::DoNotOptimize(way.take(0));
            each.push_back(microseconds(Clock::now() - begin));
        }
        return percentile(each, 0.5);
    };
    for (auto& [name, way] : ways) (void)once(*way);
    std::size_t turn = 0;
    for (auto _ : state) {
        const auto begin = Clock::now();
        for (std::size_t n = 0; n < ways.size(); ++n) {
            auto& [name, way] = ways[(turn + n) % ways.size()];
            taken[name].push_back(once(*way));
        }
        ++turn;
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const std::string ours = on_gpu ? "isthmus" : "isthmus_cpu";
    double best = 0;
    for (auto& [name, way] : ways) {
        const double median = percentile(taken[name], 0.5);
        state.counters[name + "_us"] = median;
        const bool peer = name.rfind("isthmus", 0) != 0 && way->lists_corners();
        if ((peer || name == "opencv") && (best == 0 || median < best)) best = median;
    }
    if (best > 0) state.counters["ratio"] = percentile(taken[ours], 0.5) / best;
}

void kernels_alone(benchmark::State& state, const Plane& plane) {
    const std::unique_ptr<bench::RawKernels> raw = bench::raw_kernels(plane);
    if (!raw) return state.SkipWithError("no GPU");
    raw->write(scene(plane)[0].data());
    std::map<std::string, std::vector<double>> taken;
    for (auto _ : state) {
        const auto begin = Clock::now();
        for (const auto& [name, us] : raw->measure()) taken[name].push_back(us);
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    for (auto& [name, values] : taken) state.counters[name + "_us"] = percentile(values, 0.5);
}

}  // namespace

int main(int count, char** arguments) {
    const Plane sizes[] = {{384, 288, 384}, {640, 480, 640}, {1920, 1080, 1920}, {3840, 2160, 3840}};
    for (const Plane& plane : sizes) {
        const std::string size = std::to_string(plane.width) + "x" + std::to_string(plane.height);
        const auto add = [&](const std::string& name, auto run) {
            benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
        };
        for (const Maker& maker : makers()) {
            add("camera/" + size + "/" + maker.name,
                [&maker, plane](benchmark::State& state) { one_way(state, maker, plane); });
        }
        for (const bool latency : {true, false}) {
            const auto named = [&](const char* kind) {
                std::string name = "ratio/";
                name.append(size).append(kind).append(latency ? "/latency" : "/two_in_flight");
                return name;
            };
            add(named("/cpu"), [=](benchmark::State& state) { by_turns(state, false, latency, plane); });
            if (runtime().default_device().is_cpu()) continue;
            add(named("/gpu"), [=](benchmark::State& state) { by_turns(state, true, latency, plane); });
        }
        if (!runtime().default_device().is_cpu()) {
            add("kernels/" + size, [=](benchmark::State& state) { kernels_alone(state, plane); });
        }
    }
    benchmark::Initialize(&count, arguments);
    if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
