// SPDX-License-Identifier: Apache-2.0
// Measures events: recording and waiting, new events, queries, and tracking of many operations, beside the driver's own
// calls in the same run.
//   bench_event --benchmark_enable_random_interleaving=true --benchmark_repetitions=15 --benchmark_min_time=0.1
//               --benchmark_report_aggregates_only=true
// Each pair is `…/isthmus` and `…/raw…`. The tracking benchmarks query `outstanding` operations behind work that still
// runs, or that has ended without notice to the runtime; their result is `ns_per_operation`, a median.
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::RawDriver;
using isthmus::Buffer;
using isthmus::Device;
using isthmus::Event;
using isthmus::Stream;

// Records between two synchronisations: the driver's queue must not fill, or its back-pressure is measured.
constexpr int batch = 256;
constexpr std::size_t outstanding = 64;
constexpr int rounds = 100;  // of the tracking benchmarks, whose measured part is short and whose preparation is long
constexpr unsigned no_timing = 2;  // CU_EVENT_DISABLE_TIMING

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}
bool simulated() {
    return runtime().machine().simulated;
}
Device& gpu() {
    return runtime().default_device();
}

// Two raw streams and a few events of device 0's primary context, which is made current on this thread.
struct Raw {
    RawDriver driver;
    RawDriver::Handle first = nullptr, second = nullptr;
    std::vector<RawDriver::Handle> events;
    bool open(std::size_t count) {
        if (!driver.open() || !driver.find_events() || !driver.prepare_device()) return false;
        if (driver.stream_create(&first, 1) != 0 || driver.stream_create(&second, 1) != 0) return false;
        events.resize(count);
        for (RawDriver::Handle& event : events) {
            if (driver.event_create(&event, no_timing) != 0) return false;
        }
        return true;
    }
    ~Raw() {
        for (RawDriver::Handle event : events) (void)driver.event_destroy(event);
        if (first) (void)driver.stream_destroy(first);
        if (second) (void)driver.stream_destroy(second);
    }
};

// Runs `once` in batches; only the calls are timed, not the wait behind each batch.
template <class Once, class Settle>
void run(benchmark::State& state, Once once, Settle settle) {
    once();
    settle();
    long calls = 0;
    while (state.KeepRunningBatch(batch)) {
        const long before = bench::driver_calls();
        for (int i = 0; i < batch; ++i) once();
        calls += bench::driver_calls() - before;
        state.PauseTiming();
        settle();
        state.ResumeTiming();
    }
    if (bench::driver_calls() >= 0) {
        state.counters["driver_calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
    }
}

void record_and_wait(benchmark::State& state) {
    Stream producer = gpu().create_stream().value();
    Stream consumer = gpu().create_stream().value();
    Event event = gpu().create_event().value();
    run(
        state,
        [&] {
            (void)producer.record(event);
            (void)consumer.wait(event);
        },
        [&] { consumer.synchronize().value(); });
}

void raw_record_and_wait(benchmark::State& state) {
    Raw raw;
    if (!raw.open(1)) return state.SkipWithError("no GPU");
    run(
        state,
        [&] {
            benchmark::DoNotOptimize(raw.driver.event_record(raw.events[0], raw.first));
            benchmark::DoNotOptimize(raw.driver.stream_wait_event(raw.second, raw.events[0], 0));
        },
        [&] { raw.driver.stream_sync(raw.second); });
}

void fresh_record(benchmark::State& state) {
    Stream stream = gpu().create_stream().value();
    run(
        state, [&] { benchmark::DoNotOptimize(stream.record().ok()); }, [&] { stream.synchronize().value(); });
}

void raw_create_record_destroy(benchmark::State& state) {
    Raw raw;
    if (!raw.open(0)) return state.SkipWithError("no GPU");
    run(
        state,
        [&] {
            RawDriver::Handle event = nullptr;
            (void)raw.driver.event_create(&event, no_timing);
            (void)raw.driver.event_record(event, raw.first);
            (void)raw.driver.event_destroy(event);
        },
        [&] { raw.driver.stream_sync(raw.first); });
}

// The smallest possible pool: one thread, no lock, no owner.
void raw_pooled_record(benchmark::State& state) {
    Raw raw;
    if (!raw.open(4)) return state.SkipWithError("no GPU");
    std::vector<RawDriver::Handle> idle = raw.events;
    run(
        state,
        [&] {
            RawDriver::Handle event = idle.back();
            idle.pop_back();
            benchmark::DoNotOptimize(raw.driver.event_record(event, raw.first));
            idle.push_back(event);
        },
        [&] { raw.driver.stream_sync(raw.first); });
}

void finished_seen(benchmark::State& state) {
    const Event event = gpu().stream().record().value();
    event.synchronize().value();
    for (auto _ : state) benchmark::DoNotOptimize(event.finished().ok());
}

void completed(benchmark::State& state) {
    Stream& stream = gpu().stream();
    const std::uint64_t position = stream.mark().value();
    stream.synchronize().value();
    for (auto _ : state) benchmark::DoNotOptimize(stream.completed(position));
}

void raw_query_of_a_finished_event(benchmark::State& state) {
    Raw raw;
    if (!raw.open(1)) return state.SkipWithError("no GPU");
    (void)raw.driver.event_record(raw.events[0], raw.first);
    (void)raw.driver.stream_sync(raw.first);
    for (auto _ : state) benchmark::DoNotOptimize(raw.driver.event_query(raw.events[0]));
}

// Work that runs long enough to be queried: fills of large memory.
struct Busy {
    static constexpr int fills = 16;
    // A simulated GPU fills at the speed of a CPU, so it gets less memory.
    std::size_t bytes = std::size_t{simulated() ? 1U : 256U} << 20;
    Buffer<std::uint8_t> memory = gpu().allocate<std::uint8_t>(bytes).value();
    Buffer<int> small = gpu().allocate<int>(64).value();
    void begin(Stream& stream) {
        for (int i = 0; i < fills; ++i) stream.fill_bytes(memory, static_cast<std::uint8_t>(i)).value();
    }
};

// Times `ask` alone with a clock of its own: pausing the benchmark library's clock costs more than the call.
template <class Ask>
void timed(benchmark::State& state, std::vector<double>& taken, Ask ask) {
    const auto begin = std::chrono::steady_clock::now();
    ask();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(passed.count());
    taken.push_back(passed.count() * 1e9 / outstanding);
}

void report(benchmark::State& state, std::vector<double> taken) {
    if (taken.empty()) return;
    const auto middle = taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2);
    std::nth_element(taken.begin(), middle, taken.end());
    state.counters["ns_per_operation"] = *middle;
}

// Operations distributed over `streams` streams. `behind_work`: none has finished; otherwise all have, and the runtime
// has not noticed.
void track(benchmark::State& state, std::size_t streams, bool behind_work) {
    Busy busy;
    std::vector<Stream> on;
    for (std::size_t i = 0; i < streams; ++i) on.push_back(gpu().create_stream().value());
    Stream observer = gpu().create_stream().value();
    std::vector<std::uint64_t> finished;
    finished.reserve(outstanding);
    std::vector<double> taken;
    for (auto _ : state) {
        isthmus::CompletionQueue tracked;
        for (std::size_t i = 0; behind_work && i < streams; ++i) busy.begin(on[i]);
        for (std::size_t i = 0; i < outstanding; ++i) {
            Stream& stream = on[i % streams];
            stream.fill_bytes(busy.small, 1).value();
            tracked.add(stream, stream.mark().value(), i);
        }
        for (std::size_t i = 0; !behind_work && i < streams; ++i) observer.wait_stream(on[i]).value();
        if (!behind_work) observer.synchronize().value();
        finished.clear();
        timed(state, taken, [&] { benchmark::DoNotOptimize(tracked.collect(finished).ok()); });
        if (finished.size() != (behind_work ? 0U : outstanding))
            state.SkipWithError("the work ended too early or late");
        gpu().synchronize().value();
    }
    report(state, std::move(taken));
}

// The peer: an event for each operation, and a query of each.
void raw_track(benchmark::State& state, bool behind_work) {
    Raw raw;
    if (!raw.open(outstanding)) return state.SkipWithError("no GPU");
    Busy busy;
    std::vector<double> taken;
    for (auto _ : state) {
        for (int i = 0; behind_work && i < Busy::fills; ++i) {
            (void)raw.driver.fill(busy.memory.device_address(), 1, busy.memory.size(), raw.first);
        }
        for (RawDriver::Handle event : raw.events) {
            (void)raw.driver.fill(busy.small.device_address(), 1, busy.small.size_bytes(), raw.first);
            (void)raw.driver.event_record(event, raw.first);
        }
        if (!behind_work) (void)raw.driver.stream_sync(raw.first);
        std::size_t finished = 0;
        timed(state, taken, [&] {
            for (RawDriver::Handle event : raw.events) finished += raw.driver.event_query(event) == 0;
        });
        if (finished != (behind_work ? 0U : outstanding)) state.SkipWithError("the work ended too early or late");
        (void)raw.driver.stream_sync(raw.first);
    }
    report(state, std::move(taken));
}

}  // namespace

int main(int argc, char** argv) {
    if (!gpu().is_cpu()) {
        const auto add = [](const char* name, auto body) { return benchmark::RegisterBenchmark(name, body); };
        add("record_and_wait/isthmus", record_and_wait);
        add("record_and_wait/raw", raw_record_and_wait);
        add("fresh_record/isthmus", fresh_record);
        add("fresh_record/raw_create_record_destroy", raw_create_record_destroy);
        add("fresh_record/raw_pool", raw_pooled_record);
        add("known_to_be_done/isthmus_event", finished_seen);
        add("known_to_be_done/isthmus_position", completed);
        add("known_to_be_done/raw_query", raw_query_of_a_finished_event);
        for (const bool behind_work : {true, false}) {
            const std::string name = behind_work ? "track_64/none_done/" : "track_64/all_done/";
            const auto add_timed = [&](const std::string& who, auto body) {
                benchmark::RegisterBenchmark((name + who).c_str(), body)
                    ->UseManualTime()
                    ->Iterations(simulated() ? 3 : rounds);
            };
            for (const std::size_t streams : {std::size_t{1}, std::size_t{4}}) {
                add_timed("isthmus_on_" + std::to_string(streams),
                          [=](benchmark::State& state) { track(state, streams, behind_work); });
            }
            add_timed("raw_query_each", [=](benchmark::State& state) { raw_track(state, behind_work); });
        }
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
