// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include "common/signals_held.hpp"
#include "latency_kernel.hpp"

#include <isthmus/concurrent/service.hpp>
#include <isthmus/stream.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace isthmus::tools::latency {
namespace {

constexpr std::size_t memory_bytes = std::size_t{64} << 20;  // of each of two threads: more than a core's caches
constexpr std::size_t file_bytes = std::size_t{32} << 20;
constexpr std::size_t copied_bytes = std::size_t{4} << 20;
constexpr std::size_t small_copied_bytes = std::size_t{64} << 10;  // where the device's work runs on this CPU
constexpr std::uint32_t disturbing_words = 1u << 18;
constexpr std::uint32_t small_disturbing_words = 256;
constexpr std::uint32_t disturbing_rounds = 256;

// A load's thread repeats its round until it is told to stop. Empty: the load goes on; otherwise the reason of its end.
using Round = std::function<std::string()>;

std::string text_of(const Error& error) {
    return error.text();
}
template <class T>
std::string problem(const Result<T>& result) {
    return result ? std::string() : text_of(result.error());
}
std::string system_problem(const char* call) {
    return fmt::format("{}: {}", call, std::error_code(errno, std::generic_category()).message());
}

std::size_t usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
}

Round compute() {
    return [value = std::uint32_t{1}]() mutable {
        for (std::uint32_t round = 0; round < 100'000; ++round) value = answer(value, round);
        const volatile std::uint32_t kept = value;  // so that the loop is not left out
        (void)kept;
        return std::string();
    };
}

Round copy_memory() {
    const auto from = std::make_shared<std::vector<char>>(memory_bytes / 2, 'a');
    const auto to = std::make_shared<std::vector<char>>(memory_bytes / 2, 'b');
    return [from, to, at = std::size_t{0}]() mutable {
        constexpr std::size_t piece = std::size_t{1} << 20;
        std::memcpy(to->data() + at, from->data() + at, piece);
        at = (at + piece) % from->size();
        return std::string();
    };
}

// A file without a name, which is gone when the last descriptor closes.
class ScratchFile {
public:
    ScratchFile() {
        const char* const folder = std::getenv("TMPDIR");
        std::string name = std::string(folder != nullptr && *folder == '/' ? folder : "/tmp") + "/isthmus-XXXXXX";
        descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
        if (descriptor_ < 0) {
            problem_ = system_problem("mkostemp");
            return;
        }
        ::unlink(name.c_str());
    }
    ~ScratchFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    int descriptor() const noexcept { return descriptor_; }
    const std::string& problem() const noexcept { return problem_; }

private:
    int descriptor_ = -1;
    std::string problem_{};
};

// Writes a piece, lets the kernel drop it, reads it back, and maps, touches and unmaps it, which faults pages in and
// makes the other CPUs of the process flush their translations.
std::string use_file(const ScratchFile& file, std::vector<char>& piece, std::size_t at) {
    const auto offset = static_cast<off_t>(at);
    const ssize_t written = ::pwrite(file.descriptor(), piece.data(), piece.size(), offset);
    if (written < 0) return system_problem("pwrite");
    // Pages behind the end of a file fault (SIGBUS).
    if (static_cast<std::size_t>(written) < piece.size()) return "pwrite: the file system is full";
    ::posix_fadvise(file.descriptor(), offset, static_cast<off_t>(piece.size()), POSIX_FADV_DONTNEED);
    if (::pread(file.descriptor(), piece.data(), piece.size(), offset) < 0) return system_problem("pread");
    void* const mapped = ::mmap(nullptr, piece.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file.descriptor(), offset);
    if (mapped == MAP_FAILED) return system_problem("mmap");
    for (std::size_t touched = 0; touched < piece.size(); touched += 4096)
        static_cast<volatile char*>(mapped)[touched] = 1;
    ::munmap(mapped, piece.size());
    return {};
}

Round churn_pages() {
    const auto file = std::make_shared<ScratchFile>();
    const auto piece = std::make_shared<std::vector<char>>(std::size_t{1} << 20, 'p');
    return [file, piece, at = std::size_t{0}]() mutable {
        if (!file->problem().empty()) return file->problem();
        std::string wrong = use_file(*file, *piece, at);
        at = (at + piece->size()) % file_bytes;
        return wrong;
    };
}

// Kernels, a few in the queue at a time.
Result<Round> other_kernels(Device& device, Wait wait, bool small) {
    const std::uint32_t items = small ? small_disturbing_words : disturbing_words;
    Result<Buffer<std::uint32_t>> words = device.allocate<std::uint32_t>(items);
    if (!words) return std::move(words).error();
    Result<Stream> stream = device.create_stream();
    if (!stream) return std::move(stream).error();
    if (Result<void> cleared = stream->fill(*words, 1); !cleared) return std::move(cleared).error();
    if (Result<void> ended = stream->synchronize(wait); !ended) return std::move(ended).error();
    if (Result<void> loaded = prepare(device, latency_disturb); !loaded) return std::move(loaded).error();
    const auto kept = std::make_shared<Buffer<std::uint32_t>>(std::move(words).value());
    return Round([kept, stream = *stream, items, wait]() mutable {
        for (int launch = 0; launch < 4; ++launch) {
            const auto launched = stream.launch(latency_disturb, items, *kept, disturbing_rounds);
            if (!launched) return text_of(launched.error());
        }
        return problem(stream.synchronize(wait));
    });
}

Result<Round> other_copies(Device& device, Wait wait, bool small) {
    const std::size_t bytes = small ? small_copied_bytes : copied_bytes;
    Result<Buffer<std::uint8_t>> near = device.allocate<std::uint8_t>(bytes);
    if (!near) return std::move(near).error();
    Result<Buffer<std::uint8_t>> far = device.allocate<std::uint8_t>(bytes, MemoryKind::pinned);
    if (!far) return std::move(far).error();
    Result<Stream> stream = device.create_stream();
    if (!stream) return std::move(stream).error();
    struct Ends {
        Buffer<std::uint8_t> near, far;
    };
    const auto ends = std::make_shared<Ends>(Ends{std::move(near).value(), std::move(far).value()});
    Round round = [ends, stream = *stream, wait]() mutable {
        if (const auto copied = stream.copy(ends->near, ends->far); !copied) return text_of(copied.error());
        if (const auto copied = stream.copy(ends->far, ends->near); !copied) return text_of(copied.error());
        return problem(stream.synchronize(wait));
    };
    // Once now: the driver prepares copies at the first one.
    if (std::string wrong = round(); !wrong.empty()) return Error(Code::driver_error, std::move(wrong));
    return round;
}

// A load, its threads, and what they did. The threads write the counts, and stop() reads them after they have ended.
struct Running {
    LoadReport report{};
    std::vector<Round> rounds{};
    std::vector<std::uint64_t> done{};
    std::vector<std::string> troubles{};
};

class ThreadLoads final : public Loads {
public:
    ThreadLoads(Device& device, const Request& request, bool small) {
        const Wait wait{std::chrono::duration<double>(request.give_up_seconds)};
        for (const LoadKind kind : request.loads) {
            Running running;
            running.report.kind = kind;
            fill(running, device, request, wait, small);
            running.report.threads = running.rounds.size();
            running.done.resize(running.rounds.size());
            running.troubles.resize(running.rounds.size());
            running_.push_back(std::move(running));
        }
    }
    ~ThreadLoads() override { end_threads(); }

    void start() override {
        stop_.store(false, std::memory_order_relaxed);  // starting a thread orders it
        // Signals are for the loop's thread.
        const SignalsHeld held;
        for (Running& running : running_) {
            for (std::size_t at = 0; at < running.rounds.size(); ++at) {
                threads_.emplace_back([this, &running, at] { repeat(running, at); });
            }
        }
    }
    std::vector<LoadReport> stop() override {
        end_threads();
        std::vector<LoadReport> reports;
        for (Running& running : running_) {
            running.report.rounds = 0;
            for (std::size_t at = 0; at < running.rounds.size(); ++at) {
                running.report.rounds += std::exchange(running.done[at], 0);
                if (running.report.trouble.empty()) running.report.trouble = running.troubles[at];
            }
            reports.push_back(running.report);
        }
        return reports;
    }

private:
    static void fill(Running& running, Device& device, const Request& request, const Wait& wait, bool small) {
        const auto take = [&](Result<Round> round) {
            if (round) {
                running.rounds.push_back(std::move(round).value());
            } else {
                running.report.trouble = text_of(round.error());
            }
        };
        const bool on_device = running.report.kind == LoadKind::stream || running.report.kind == LoadKind::copies;
        if (on_device && request.work == WorkKind::service && !device.is_cpu() &&
            !device.capabilities().has(Feature::concurrent_kernels)) {
            running.report.trouble = "this device runs one kernel at a time, and the service is one";
            return;
        }
        switch (running.report.kind) {
            case LoadKind::cpu:
                for (std::size_t cpu = 0; cpu < usable_cpus(); ++cpu) take(compute());
                break;
            case LoadKind::memory:
                for (int thread = 0; thread < 2; ++thread) take(copy_memory());
                break;
            case LoadKind::page_cache: take(churn_pages()); break;
            case LoadKind::stream: take(other_kernels(device, wait, small)); break;
            case LoadKind::copies: take(other_copies(device, wait, small)); break;
        }
    }
    void repeat(Running& running, std::size_t at) {
        while (!stop_.load(std::memory_order_relaxed)) {  // the join in end_threads() orders what was counted
            running.troubles[at] = running.rounds[at]();
            if (!running.troubles[at].empty()) return;
            ++running.done[at];
        }
    }
    void end_threads() {
        stop_.store(true, std::memory_order_relaxed);
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

    std::vector<Running> running_{};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_{};
};

}  // namespace

std::unique_ptr<Loads> Loads::make(Device& device, const Request& request, bool small) {
    return std::make_unique<ThreadLoads>(device, request, small);
}

}  // namespace isthmus::tools::latency
