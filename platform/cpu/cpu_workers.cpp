// SPDX-License-Identifier: Apache-2.0
// Workers take parts of a launch by a counter until none is left. The launching thread does the same.
#include "cpu_workers.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <vector>

namespace isthmus::platform::cpu {
namespace {

constexpr std::uint64_t parts_per_thread = 4;
// A few microseconds of a cheap kernel, about what it costs to wake a thread.
constexpr std::uint64_t least_items = 4096;
// A thread of a block does more than an item of a plain kernel: it runs from barrier to barrier.
constexpr std::uint64_t items_per_block_thread = 4;
// Rounds of waiting before a thread sleeps, some microseconds: the launches of a graph follow each other so fast.
constexpr int patience = 500;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// No signal of the program is delivered to a thread that starts meanwhile.
class WithoutSignals {
public:
    WithoutSignals() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

}  // namespace

std::uint64_t outermost(const KernelInfo& kernel, const Extent& extent) noexcept {
    switch (kernel.rank) {
        case 1: return extent.x;
        case 2: return extent.y;
        case 3: return extent.z;
        default: return extent.x * extent.y * extent.z;  // number of blocks
    }
}

Division divide(const KernelInfo& kernel, const Extent& extent, std::uint32_t threads) noexcept {
    const std::uint64_t size = outermost(kernel, extent);
    if (threads <= 1 || kernel.rank > 3) return {1, size};
    std::uint64_t items = 1;  // in one step of the outermost dimension
    switch (kernel.rank) {
        case 0: items = std::max<std::uint64_t>(kernel.block_threads, 1) * items_per_block_thread; break;
        case 2: items = extent.x; break;
        case 3: items = extent.x * extent.y; break;
        default: break;
    }
    const auto rounded_up = [](std::uint64_t count, std::uint64_t by) {
        return count / by + (count % by != 0 ? 1 : 0);
    };
    const std::uint64_t length = std::max(rounded_up(least_items, items), rounded_up(size, parts_per_thread * threads));
    return {rounded_up(size, length), length};
}

struct CpuWorkers::Team {
    // One launch. Written while no worker is inside.
    const LaunchRequest* request = nullptr;
    Division division{};
    std::uint64_t size = 0;
    std::fenv_t environment{};
    std::atomic<std::uint64_t> next{0};

    std::mutex mutex;
    std::condition_variable work_or_end;
    std::condition_variable left;
    std::atomic<std::uint64_t> launches{0};  // changed with the mutex held
    std::atomic<std::uint32_t> inside{0};    // likewise: workers that take parts of the launch
    bool open = false;                       // more workers may come inside
    std::atomic<bool> ending{false};
    std::vector<pthread_t> threads{};
    const pid_t process = getpid();

    void take_parts() noexcept {
        for (;;) {
            const std::uint64_t part = next.fetch_add(1, std::memory_order_relaxed);
            if (part >= division.parts) return;
            const std::uint64_t first = part * division.length;
            request->kernel->twin(request->extent, first, std::min(first + division.length, size), request->pack);
        }
    }
    // A worker's life.
    void serve() {
        std::uint64_t seen = 0;
        for (;;) {
            for (int round = 0; round < patience; ++round) {
                if (launches.load(std::memory_order_relaxed) != seen || ending.load(std::memory_order_relaxed)) break;
                pause_briefly();
            }
            {
                std::unique_lock lock(mutex);
                work_or_end.wait(lock, [&] {
                    return ending.load(std::memory_order_relaxed) || launches.load(std::memory_order_relaxed) != seen;
                });
                if (ending.load(std::memory_order_relaxed)) return;
                seen = launches.load(std::memory_order_relaxed);
                if (!open) continue;
                inside.fetch_add(1, std::memory_order_relaxed);
            }
            std::fesetenv(&environment);
            take_parts();
            const std::lock_guard lock(mutex);
            if (inside.fetch_sub(1, std::memory_order_release) == 1) left.notify_one();
        }
    }
    static void* serve(void* team) {
        static_cast<Team*>(team)->serve();
        return nullptr;
    }
    bool start(std::uint32_t workers) {
        const WithoutSignals quiet;
        for (std::uint32_t at = 0; at < workers; ++at) {
            pthread_t thread{};
            if (pthread_create(&thread, nullptr, serve, this) != 0) break;
            threads.push_back(thread);
        }
        return !threads.empty();
    }
    void end() {
        {
            const std::lock_guard lock(mutex);
            ending.store(true, std::memory_order_relaxed);
        }
        work_or_end.notify_all();
        for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    }

    void run(const LaunchRequest& given, const Division& divided) {
        {
            const std::lock_guard lock(mutex);
            request = &given;
            division = divided;
            size = outermost(*given.kernel, given.extent);
            std::fegetenv(&environment);
            next.store(0, std::memory_order_relaxed);
            open = true;
            launches.fetch_add(1, std::memory_order_relaxed);
        }
        if (divided.parts > threads.size()) {
            work_or_end.notify_all();
        } else {
            for (std::uint64_t part = 1; part < divided.parts; ++part) work_or_end.notify_one();
        }
        take_parts();
        for (int round = 0; round < patience && inside.load(std::memory_order_relaxed) != 0; ++round) pause_briefly();
        std::unique_lock lock(mutex);
        open = false;  // who has not come by now finds nothing to do
        left.wait(lock, [&] { return inside.load(std::memory_order_relaxed) == 0; });
    }
};

CpuWorkers::~CpuWorkers() {
    if (team_ == nullptr || team_->process != getpid()) return;
    team_->end();
    delete team_;
}

CpuWorkers::Team* CpuWorkers::team() {
    if (team_ == nullptr) {
        team_ = new Team;
        (void)team_->start(threads_ - 1);
    }
    return team_->threads.empty() ? nullptr : team_;
}

void CpuWorkers::run(const LaunchRequest& request) {
    const Division division = divide(*request.kernel, request.extent, threads_);
    if (division.parts > 1 && !taken_.exchange(true, std::memory_order_acquire)) {
        Team* const started = team();
        if (started != nullptr) started->run(request, division);
        taken_.store(false, std::memory_order_release);
        if (started != nullptr) return;
    }
    request.kernel->twin(request.extent, 0, outermost(*request.kernel, request.extent), request.pack);
}

}  // namespace isthmus::platform::cpu
