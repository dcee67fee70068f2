// SPDX-License-Identifier: Apache-2.0
// Measures memory that both sides use: the cost of host views when nothing is in flight, and a kernel's speed over
// every kind, beside an explicit copy and beside the kind that the policy selects.
#include "raw_driver.hpp"
#include "sharing_kernels.hpp"

#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using isthmus::Buffer;
using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::SharedUse;
using isthmus::Stream;
using isthmus::Use;

using Words = Buffer<std::uint64_t>;

isthmus::Runtime& runtime() {
    static isthmus::Runtime opened = isthmus::Runtime::open().value();
    return opened;
}

// Host access to a buffer that no device work uses.
enum class Open { read, write, read_write };

void host_view(benchmark::State& state, Device& device, MemoryKind kind, Open how) {
    Result<Words> made = device.allocate_shared<std::uint64_t>(4096, {.kind = kind});
    if (!made) return state.SkipWithError("this machine has no such shared memory");
    Words& buffer = *made;
    (void)device.stream().launch(bench::write_words, 4096, buffer, 0).value();
    (void)buffer.read_write_on_host().value();  // from here on nothing is in flight
    const long before = bench::driver_calls();
    for (auto _ : state) {
        switch (how) {
            case Open::read: benchmark::DoNotOptimize(buffer.read_on_host().value().data()); break;
            case Open::write: benchmark::DoNotOptimize(buffer.write_on_host().value().data()); break;
            case Open::read_write: benchmark::DoNotOptimize(buffer.read_write_on_host().value().data()); break;
        }
    }
    const long calls = bench::driver_calls();
    if (before >= 0) state.counters["driver_calls"] = static_cast<double>(calls - before);
}

// Small buffers. How many bytes of memory the process has now.
double resident_bytes() {
    std::ifstream file("/proc/self/statm");
    double all = 0;
    double resident = 0;
    file >> all >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Result<Words> make_small(Device& device, MemoryKind kind) {
    Result<Words> made = device.allocate_shared<std::uint64_t>(8, {.kind = kind});
    if (made) made->write_on_host().value()[0] = 1;
    return made;
}

// Resident bytes for each of 100 000 buffers of 64 bytes, with all that the runtime keeps of it; or, for "malloc", of
// as many blocks. Negative: this machine has no such memory. To be called once in a process: memory that was freed
// before is used again, and would not be counted.
constexpr std::size_t small_count = 100000;

double bytes_of_small_blocks() {
    std::vector<void*> blocks(small_count);
    const double before = resident_bytes();
    for (void*& block : blocks) {
        block = std::malloc(64);
        *static_cast<volatile char*>(block) = 1;
    }
    const double each = (resident_bytes() - before) / small_count;
    for (void* const block : blocks) std::free(block);
    return each;
}

// The first of all makes the driver's context, which takes some 100 MB of the process, and a first slab.
double bytes_of_small_buffers(Device& device, MemoryKind kind) {
    constexpr std::size_t warm = 200;
    std::vector<Words> first;
    for (std::size_t at = 0; at < warm; ++at) {
        Result<Words> made = make_small(device, kind);
        if (!made) return -1;
        first.push_back(std::move(made).value());
    }
    std::vector<Words> buffers(small_count);
    const double before = resident_bytes();
    for (Words& buffer : buffers) {
        Result<Words> made = make_small(device, kind);
        if (!made) return -1;
        buffer = std::move(made).value();
    }
    return (resident_bytes() - before) / small_count;
}

constexpr std::string_view bytes_each_option = "--bytes-each";  // what a process of its own measures
constexpr MemoryKind small_kinds[] = {MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed,
                                      MemoryKind::device};

double small_bytes_here(std::string_view what) {
    if (what == "malloc") return bytes_of_small_blocks();
    if (what == "cpu") return bytes_of_small_buffers(runtime().cpu(), MemoryKind::host);
    for (const MemoryKind kind : small_kinds) {
        if (what == isthmus::name(kind)) return bytes_of_small_buffers(runtime().default_device(), kind);
    }
    return -1;
}

// Runs this program again for each measurement.
double small_bytes_in_child(std::string what) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = "sharing_bench", option(bytes_each_option);
    char* const words[] = {program.data(), option.data(), what.data(), nullptr};
    pid_t child = 0;
    const int code = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;
    char part[256];
    for (ssize_t got = 0; code == 0 && (got = ::read(ends[0], part, sizeof part)) > 0;) {
        text.append(part, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 1;
    if (code != 0 || ::waitpid(child, &status, 0) != child || status != 0) return -1;
    return std::strtod(text.c_str(), nullptr);
}

void small_bytes(benchmark::State& state, const std::string& what) {
    double each = 0;
    for (auto _ : state) {
        each = small_bytes_in_child(what);
        if (each < 0) return state.SkipWithError("this machine has no such shared memory");
    }
    state.counters["bytes_each"] = each;
}

// A view of one of so many idle buffers at random, and beside it a chase of pointers through as many bytes as the
// buffers take (`bytes_each`): each load waits for the one before. `ratio` is the view's time divided by the chase's.
void view_of_one_of(benchmark::State& state, Device& device, MemoryKind kind) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const double before = resident_bytes();
    std::vector<Words> buffers;
    buffers.reserve(count);
    for (std::size_t at = 0; at < count; ++at) {
        Result<Words> made = make_small(device, kind);
        if (!made) return state.SkipWithError("this machine has no such shared memory");
        buffers.push_back(std::move(made).value());
    }
    const double each = std::max((resident_bytes() - before) / static_cast<double>(count), 64.0);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(18));
    const std::size_t stride = std::max<std::size_t>(static_cast<std::size_t>(each) / 64 * 8, 8);  // in words
    std::vector<std::uint64_t> chase(count * stride);
    for (std::size_t at = 0; at < count; ++at) chase[order[at] * stride] = order[(at + 1) % count] * stride;
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t steps = 20000;
    double views = 0;
    double loads = 0;
    std::size_t next = 0;
    std::uint64_t link = 0;
    for (auto _ : state) {
        const auto begin = Clock::now();
        for (std::size_t step = 0; step < steps; ++step) {
            benchmark::DoNotOptimize(buffers[order[next]].read_on_host().value()[0]);
            next = next + 1 == count ? 0 : next + 1;
        }
        const auto between = Clock::now();
        for (std::size_t step = 0; step < steps; ++step) link = chase[link];
        benchmark::DoNotOptimize(link);
        const auto end = Clock::now();
        const double taken = std::chrono::duration<double>(between - begin).count();
        views += taken;
        loads += std::chrono::duration<double>(end - between).count();
        state.SetIterationTime(taken);
    }
    const double runs = static_cast<double>(state.iterations()) * steps;
    state.counters["view_ns"] = views / runs * 1e9;
    state.counters["chase_ns"] = loads / runs * 1e9;
    state.counters["ratio"] = views / loads;
    state.counters["bytes_each"] = each;
}

// One hand-over: the host wrote (or will read) the buffer, and the device goes over it `passes` times.
enum class Direction { device_reads, device_writes };
struct Job {
    Direction direction;
    int passes;
    std::size_t bytes;
};

SharedUse use_of(const Job& job) {
    if (job.direction == Direction::device_reads) {
        return {.host = Use::writes_often, .device = Use::reads_often, .device_passes = job.passes};
    }
    return {.host = Use::reads_often, .device = Use::writes_often, .device_passes = job.passes};
}

class HandOver {
public:
    HandOver(Device& device, const Job& job, SharedUse use) : device_(device), job_(job) {
        Result<Words> made = device.allocate_shared<std::uint64_t>(job.bytes / sizeof(std::uint64_t), use);
        if (!made) return;
        buffer_ = std::move(made).value();
        sums_ = device.allocate<std::uint64_t>(bench::threads).value();
        auto view = buffer_.write_on_host().value();
        for (std::size_t i = 0; i < view.size(); ++i) view[i] = i;
    }
    explicit operator bool() const { return static_cast<bool>(buffer_); }
    const Words& buffer() const { return buffer_; }

    // The time excludes the host's writes before, and includes copies and page migration. After device writes the host
    // reads every page.
    double seconds() {
        Stream& stream = device_.stream();
        {
            auto view = buffer_.read_write_on_host().value();
            for (std::size_t at = 0; at < view.size(); at += page_words) ++view[at];
        }
        const auto begin = std::chrono::steady_clock::now();
        for (int pass = 0; pass < job_.passes; ++pass) {
            if (job_.direction == Direction::device_reads) {
                (void)stream.launch(bench::keep_sums, bench::threads, sums_, buffer_, pass).value();
            } else {
                (void)stream.launch(bench::write_words, bench::threads, buffer_, pass).value();
            }
        }
        if (job_.direction == Direction::device_writes) {
            const auto view = buffer_.read_on_host().value();
            std::uint64_t seen = 0;
            for (std::size_t at = 0; at < view.size(); at += page_words) seen += view[at];
            benchmark::DoNotOptimize(seen);
        } else {
            (void)stream.synchronize().value();
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

private:
    static constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);
    Device& device_;
    Job job_;
    Words buffer_;
    Words sums_;
};

void report(benchmark::State& state, const Job& job) {
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(job.bytes) * job.passes);
}

// One kind in place; with MemoryKind::device the runtime copies around the kernel.
void hand_over(benchmark::State& state, MemoryKind kind, Direction direction, int passes) {
    Device& device = runtime().default_device();
    const Job job{direction, passes, static_cast<std::size_t>(state.range(0))};
    SharedUse use = use_of(job);
    use.kind = kind;
    HandOver work(device, job, use);
    if (!work) return state.SkipWithError("this machine has no such shared memory");
    (void)work.seconds();
    for (auto _ : state) state.SetIterationTime(work.seconds());
    report(state, job);
}

// An explicit copy and a kernel over device memory, as in a program without shared buffers.
void copy_and_kernel(benchmark::State& state, Direction direction, int passes) {
    Device& device = runtime().default_device();
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::size_t words = bytes / sizeof(std::uint64_t);
    Words there = device.allocate<std::uint64_t>(words).value();
    Words here = device.allocate<std::uint64_t>(words, MemoryKind::pinned).value();
    Words sums = device.allocate<std::uint64_t>(bench::threads).value();
    Stream& stream = device.stream();
    (void)stream.fill_bytes(there, 1).value();
    const bool reads = direction == Direction::device_reads;
    for (auto _ : state) {
        const auto begin = std::chrono::steady_clock::now();
        if (reads) (void)stream.copy(there, here).value();
        for (int pass = 0; pass < passes; ++pass) {
            if (reads) (void)stream.launch(bench::keep_sums, bench::threads, sums, there, pass).value();
            if (!reads) (void)stream.launch(bench::write_words, bench::threads, there, pass).value();
        }
        if (!reads) (void)stream.copy(here, there).value();
        (void)stream.synchronize().value();
        state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    report(state, {direction, passes, bytes});
}

double median(std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

// Alternates the policy's choice with every other kind in the same loop; `ratio` is its time divided by that of the
// best.
void policy_by_best(benchmark::State& state, Direction direction, int passes) {
    Device& device = runtime().default_device();
    const Job job{direction, passes, static_cast<std::size_t>(state.range(0))};
    std::vector<HandOver> ways;
    ways.reserve(6);
    ways.emplace_back(device, job, use_of(job));
    for (const MemoryKind kind :
         {MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed, MemoryKind::host, MemoryKind::device}) {
        SharedUse use = use_of(job);
        use.kind = kind;
        HandOver work(device, job, use);
        if (work) ways.push_back(std::move(work));
    }
    std::vector<std::vector<double>> times(ways.size());
    for (HandOver& way : ways) (void)way.seconds();
    for (auto _ : state) {
        for (std::size_t way = 0; way < ways.size(); ++way) {
            const double taken = ways[way].seconds();
            times[way].push_back(taken);
            if (way == 0) state.SetIterationTime(taken);
        }
    }
    double best = median(times[0]);
    std::size_t winner = 0;
    const double chosen = best;
    for (std::size_t way = 1; way < ways.size(); ++way) {
        const double taken = median(times[way]);
        if (taken < best) best = taken, winner = way;
    }
    state.counters["ratio"] = best > 0 ? chosen / best : 0;
    const Words& buffer = ways[0].buffer();
    const Words& other = ways[winner].buffer();
    state.SetLabel(std::string(isthmus::name(buffer.kind())) + "/" + std::string(isthmus::name(buffer.path())) +
                   ", best " + std::string(isthmus::name(other.kind())) + "/" +
                   std::string(isthmus::name(other.path())));
    report(state, job);
}

constexpr std::int64_t least = 64, most = std::int64_t{256} << 20;

// Sizes around the one from which a copy pays.
template <class Body>
void over_fine_sizes(const std::string& name, Body body) {
    benchmark::RegisterBenchmark(name.c_str(), body)
        ->RangeMultiplier(2)
        ->Range(16 << 10, 512 << 10)
        ->Range(2 << 20, most)
        ->UseManualTime();
}

template <class Body>
void over_sizes(const std::string& name, Body body) {
    benchmark::RegisterBenchmark(name.c_str(), body)->RangeMultiplier(8)->Range(least, most)->UseManualTime();
}

void register_views() {
    const std::pair<const char*, Open> ways[] = {
        {"read", Open::read}, {"write", Open::write}, {"read_write", Open::read_write}};
    for (const auto& [way, how] : ways) {
        benchmark::RegisterBenchmark((std::string("view/cpu/") + way).c_str(), [how = how](benchmark::State& state) {
            host_view(state, runtime().cpu(), MemoryKind::host, how);
        });
        if (runtime().default_device().is_cpu()) continue;
        for (const MemoryKind kind :
             {MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed, MemoryKind::host, MemoryKind::device}) {
            const std::string name = "view/" + std::string(isthmus::name(kind)) + "/" + way;
            benchmark::RegisterBenchmark(name.c_str(), [kind, how = how](benchmark::State& state) {
                host_view(state, runtime().default_device(), kind, how);
            });
        }
    }
}

void register_small() {
    const auto bytes_of = [](const std::string& what) {
        benchmark::RegisterBenchmark(("small/bytes/" + what).c_str(), [what](benchmark::State& state) {
            small_bytes(state, what);
        })->Iterations(1);
    };
    bytes_of("malloc");
    const auto on = [&](Device& device, MemoryKind kind, const std::string& where) {
        bytes_of(where);
        benchmark::RegisterBenchmark(("small/view/" + where).c_str(),
                                     [&device, kind](benchmark::State& state) { view_of_one_of(state, device, kind); })
            ->Arg(100)
            ->Arg(10000)
            ->Arg(200000)
            ->UseManualTime();
    };
    on(runtime().cpu(), MemoryKind::host, "cpu");
    Device& device = runtime().default_device();
    if (device.is_cpu()) return;
    for (const MemoryKind kind : small_kinds) {
        on(device, kind, std::string(isthmus::name(kind)));
    }
}

void register_hand_overs() {
    if (runtime().default_device().is_cpu()) return;
    const std::pair<const char*, Direction> directions[] = {{"device_reads", Direction::device_reads},
                                                            {"device_writes", Direction::device_writes}};
    for (const auto& [direction_name, direction] : directions) {
        for (const int passes : {1, 4, 16}) {
            const std::string group = std::string(direction_name) + "_x" + std::to_string(passes) + "/";
            for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed,
                                          MemoryKind::host, MemoryKind::device}) {
                const std::string name =
                    group + (kind == MemoryKind::device ? "staged" : std::string(isthmus::name(kind)));
                over_sizes(name, [kind, direction = direction, passes](benchmark::State& state) {
                    hand_over(state, kind, direction, passes);
                });
            }
            over_sizes(group + "copy_and_kernel", [direction = direction, passes](benchmark::State& state) {
                copy_and_kernel(state, direction, passes);
            });
            over_sizes(group + "policy_by_best", [direction = direction, passes](benchmark::State& state) {
                policy_by_best(state, direction, passes);
            });
            over_fine_sizes(group + "policy_fine", [direction = direction, passes](benchmark::State& state) {
                policy_by_best(state, direction, passes);
            });
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && argv[1] == bytes_each_option) {
        std::printf("%.1f\n", small_bytes_here(argv[2]));
        return 0;
    }
    register_views();
    register_small();
    register_hand_overs();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
