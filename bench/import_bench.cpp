// SPDX-License-Identifier: Apache-2.0
// Measures imports of another process's memory, and what avoiding them saves: import and release of 2 MiB, 64 MiB and
// 1 GiB that a separate process exported by file descriptor, against the driver's own functions; and a message that
// announces new content in memory imported before, against one that brings memory to import.
//   bench_import --benchmark_enable_random_interleaving=true --benchmark_repetitions=7
// Every import takes a new copy of the descriptor, as a transport delivers it, and releases everything. The exporter is
// forked before either process opens a driver. `imports` and `driver_calls` (per iteration) are counted in the
// simulator alone; the `_us` counters of raw_import are its parts.
#include "raw_driver.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/isthmus.hpp>

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mebibyte = 1 << 20;
constexpr std::array<std::size_t, 3> sizes_mib{2, 64, 1024};
constexpr std::uint32_t give = 100;       // + the index of a size: a request for memory, and its answer
constexpr std::uint32_t have_none = 1;    // no such memory is available
constexpr std::uint32_t new_content = 2;  // in memory that both processes have; the answer has the same kind

ChannelOptions channel_options() {
    ChannelOptions options;
    options.step_timeout = std::chrono::seconds(60);  // starting a driver takes long
    return options;
}

// The exporting process: sends its memory on request, until the channel ends.
int serve(FileDescriptor socket) {
    Result<Channel> channel = Channel::adopt(std::move(socket), ChannelSide::offering, channel_options());
    if (!channel) return 1;
    Runtime runtime = Runtime::open().value();
    std::array<ExportableBuffer<std::uint8_t>, sizes_mib.size()> memories;
    for (;;) {
        const Result<bool> asked = channel->wait_for_message(std::chrono::seconds(60));
        if (!asked) return 0;
        if (!*asked) continue;
        const Result<ChannelMessage> message = channel->receive();
        if (!message) return 0;
        if (message->kind == new_content) {
            if (!channel->send(new_content, message->bytes)) return 0;
            continue;
        }
        const std::size_t index = message->kind - give;
        if (index >= memories.size()) return 1;
        ExportableBuffer<std::uint8_t>& memory = memories[index];
        if (!memory) {
            auto made = ExportableBuffer<std::uint8_t>::create(runtime.default_device(), sizes_mib[index] * mebibyte);
            if (!made) std::fprintf(stderr, "%s\n", made.error().text().c_str());
            if (made && made->share_method() == ShareMethod::posix_fd) memory = std::move(made).value();
        }
        Result<void> sent;
        if (memory) {
            const SharedMemoryDescriptor descriptor = export_memory(memory).value();
            sent = channel->send(message->kind, descriptor.bytes(), descriptor.fds());
        } else {
            sent = channel->send(have_none, {});
        }
        if (!sent) return 0;
    }
}

// Device 0 and the driver's functions that import memory, declared as in a program without isthmus.
struct RawImport {
    struct Location {  // as CUmemLocation, CUmemAccessDesc
        int type = 1;
        int id = 0;
        int flags = 3;
    };
    int (*import)(std::uint64_t*, void*, int) = nullptr;
    int (*reserve)(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long) = nullptr;
    int (*map)(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long) = nullptr;
    int (*set_access)(std::uint64_t, std::size_t, const Location*, std::size_t) = nullptr;
    int (*unmap)(std::uint64_t, std::size_t) = nullptr;
    int (*release)(std::uint64_t) = nullptr;
    int (*free_address)(std::uint64_t, std::size_t) = nullptr;
    Location device;

    bool find() {
        bench::RawDriver driver;
        return driver.open() && driver.prepare_device() && driver.device_get(&device.id, 0) == 0 &&
               driver.find(import, "cuMemImportFromShareableHandle") && driver.find(reserve, "cuMemAddressReserve") &&
               driver.find(map, "cuMemMap") && driver.find(set_access, "cuMemSetAccess") &&
               driver.find(unmap, "cuMemUnmap") && driver.find(release, "cuMemRelease") &&
               driver.find(free_address, "cuMemAddressFree");
    }
};

// The importing side of both processes.
struct Importer {
    Runtime runtime;
    Channel channel;
    RawImport raw;
    bool has_raw = false;
    std::array<std::optional<ChannelMessage>, sizes_mib.size()> memories;
};
std::optional<Importer> importer;

// The message with the memory of this benchmark's size; null where the exporter has none.
const ChannelMessage* memory_for(benchmark::State& state) {
    std::optional<ChannelMessage>& kept = importer->memories[static_cast<std::size_t>(state.range(0))];
    if (!kept) {
        importer->channel.send(give + static_cast<std::uint32_t>(state.range(0)), {}).value();
        kept = importer->channel.receive().value();
    }
    if (kept->kind != have_none) return &*kept;
    state.SkipWithError("this device exports no such memory by file descriptors");
    return nullptr;
}

FileDescriptor copy_of(const ChannelMessage& message) {
    return FileDescriptor(::fcntl(message.fds[0].get(), F_DUPFD_CLOEXEC, 0));
}

Buffer<std::uint8_t> import_from(const ChannelMessage& message, FileDescriptor fd) {
    std::vector<FileDescriptor> fds;
    fds.push_back(std::move(fd));
    return import_memory<std::uint8_t>(importer->runtime.default_device(),
                                       SharedMemoryDescriptor::received(message.bytes, std::move(fds)).value())
        .value();
}

// Counts the driver's calls during its lifetime, per iteration.
class Counted {
public:
    explicit Counted(benchmark::State& state) : state_(state) {}
    ~Counted() {
        if (calls_ < 0) return;
        const auto iterations = static_cast<double>(state_.iterations());
        state_.counters["driver_calls"] = static_cast<double>(bench::driver_calls() - calls_) / iterations;
        state_.counters["imports"] =
            static_cast<double>(bench::driver_calls("cuMemImportFromShareableHandle") - imports_) / iterations;
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

private:
    benchmark::State& state_;
    const long calls_ = bench::driver_calls();
    const long imports_ = bench::driver_calls("cuMemImportFromShareableHandle");
};

void import_and_release(benchmark::State& state) {
    const ChannelMessage* message = memory_for(state);
    if (message == nullptr) return;
    state.counters["MiB"] = static_cast<double>(sizes_mib[static_cast<std::size_t>(state.range(0))]);
    const Counted counted(state);
    for (auto _ : state) {
        Buffer<std::uint8_t> buffer = import_from(*message, copy_of(*message));
        benchmark::DoNotOptimize(buffer.device_address());
        buffer.release().value();
    }
}

// The sizes and the device are known here; nothing is checked.
void raw_import(benchmark::State& state) {
    const ChannelMessage* message = memory_for(state);
    if (message == nullptr) return;
    if (!importer->has_raw) return state.SkipWithError("no driver");
    const std::size_t mib = sizes_mib[static_cast<std::size_t>(state.range(0))];
    const std::size_t bytes = mib * mebibyte;
    state.counters["MiB"] = static_cast<double>(mib);
    const RawImport& driver = importer->raw;
    enum Part { importing, reserving, mapping, opening, undoing, parts };
    std::array<Clock::duration, parts> took{};
    const Counted counted(state);
    for (auto _ : state) {
        Clock::time_point at = Clock::now();
        const auto lap = [&](Part part) {
            const Clock::time_point now = Clock::now();
            took[part] += now - std::exchange(at, now);
        };
        bool fine = true;
        std::uint64_t handle = 0;
        std::uint64_t address = 0;
        {
            const FileDescriptor fd = copy_of(*message);
            fine = driver.import(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())), 1) == 0;
        }
        lap(importing);
        fine = fine && driver.reserve(&address, bytes, 0, 0, 0) == 0;
        lap(reserving);
        fine = fine && driver.map(address, bytes, 0, handle, 0) == 0;
        lap(mapping);
        fine = fine && driver.set_access(address, bytes, &driver.device, 1) == 0;
        lap(opening);
        fine = fine && driver.unmap(address, bytes) == 0 && driver.release(handle) == 0 &&
               driver.free_address(address, bytes) == 0;
        lap(undoing);
        if (!fine) {
            state.SkipWithError("the driver refused");
            break;
        }
    }
    constexpr std::array<const char*, parts> names{"import_us", "reserve_us", "map_us", "access_us", "undo_us"};
    for (std::size_t part = 0; part < parts; ++part) {
        state.counters[names[part]] =
            std::chrono::duration<double, std::micro>(took[part]).count() / static_cast<double>(state.iterations());
    }
}

void touch(Buffer<std::uint8_t>& buffer) {
    Stream& stream = importer->runtime.default_device().stream();
    stream.fill_region(buffer, {}, {4096, 1, 1}, std::uint8_t{1}).value();
    stream.synchronize().value();
}

// A message and its answer, then device work on 4 KiB of the memory, with a wait for it.
void message_without_import(benchmark::State& state) {
    const ChannelMessage* message = memory_for(state);
    if (message == nullptr) return;
    state.counters["MiB"] = static_cast<double>(sizes_mib[static_cast<std::size_t>(state.range(0))]);
    Buffer<std::uint8_t> buffer = import_from(*message, copy_of(*message));
    touch(buffer);
    const Counted counted(state);
    for (auto _ : state) {
        importer->channel.send(new_content, {}).value();
        benchmark::DoNotOptimize(importer->channel.receive().value().kind);
        touch(buffer);
    }
}

// The same, where the answer brings the memory: it is imported and released in each iteration.
void message_with_import(benchmark::State& state) {
    if (memory_for(state) == nullptr) return;
    state.counters["MiB"] = static_cast<double>(sizes_mib[static_cast<std::size_t>(state.range(0))]);
    const Counted counted(state);
    for (auto _ : state) {
        importer->channel.send(give + static_cast<std::uint32_t>(state.range(0)), {}).value();
        ChannelMessage message = importer->channel.receive().value();
        FileDescriptor fd = std::move(message.fds[0]);
        Buffer<std::uint8_t> buffer = import_from(message, std::move(fd));
        touch(buffer);
        buffer.release().value();
    }
}

BENCHMARK(import_and_release)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(raw_import)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(message_without_import)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(message_with_import)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

int main(int count, char** words) {
    benchmark::Initialize(&count, words);
    if (benchmark::ReportUnrecognizedArguments(count, words)) return 1;
    ChannelPair pair = create_channel_pair().value();
    const pid_t child = ::fork();
    if (child == 0) {
        pair.ours.close();
        ::_exit(serve(std::move(pair.childs)));
    }
    pair.childs.close();
    Channel channel = Channel::adopt(std::move(pair.ours), ChannelSide::receiving, channel_options()).value();
    importer.emplace(Importer{Runtime::open().value(), std::move(channel), {}, false, {}});
    importer->has_raw = importer->raw.find();
    benchmark::RunSpecifiedBenchmarks();
    importer.reset();  // the end of the channel ends the child
    int status = 1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
