// SPDX-License-Identifier: Apache-2.0
// A soak: threads allocate, adopt, copy, launch, view and release while driver calls fail at random and succeed when
// repeated. Errors are lawful, wrong values are not; and each owner of adopted memory gets one callback, when the
// driver has released it. ISTHMUS_SOAK_STEPS (per thread) and ISTHMUS_SOAK_SEED play it longer, or again.
#include "scenario.hpp"
#include "simulator_control.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;
constexpr std::size_t slot_bytes = 4096;
constexpr int threads = 8;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What one thread found. Only that thread writes.
struct Findings {
    std::uint64_t values = 0, wrong = 0, errors = 0, checks = 0;
    std::string first_wrong;
};

// Pages of one thread: adopted by a buffer, or ordinary memory that is the source of copies.
class Slots {
public:
    static constexpr std::size_t size = 6;
    Slots() : base_(::mmap(nullptr, size * slot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        if (base_ == MAP_FAILED) std::abort();
    }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;
    ~Slots() { (void)::munmap(base_, size * slot_bytes); }

    std::int32_t* at(std::size_t slot) const {
        return reinterpret_cast<std::int32_t*>(static_cast<char*>(base_) + slot * slot_bytes);
    }
    // A slot that no buffer has adopted, whose memory the thread may change.
    std::optional<std::size_t> free_one(std::minstd_rand& random) const {
        const std::size_t first = random() % size;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t slot = (first + i) % size;
            if (!adopted_[slot].load(std::memory_order_acquire)) return slot;
        }
        return std::nullopt;
    }
    AdoptOptions options(std::size_t slot) {
        adopted_[slot].store(true, std::memory_order_relaxed);
        AdoptOptions made;
        made.release = [this, slot](void* pointer, std::size_t) {
            if (!adopted_[slot].load(std::memory_order_relaxed) || pointer != at(slot)) told_twice_ = true;
            adopted_[slot].store(false, std::memory_order_release);  // pairs with free_one()
        };
        return made;
    }
    void not_adopted(std::size_t slot) { adopted_[slot].store(false, std::memory_order_relaxed); }
    bool all_free() const {
        bool all = true;
        for (const std::atomic<bool>& one : adopted_) all = all && !one.load(std::memory_order_acquire);
        return all;
    }
    bool told_twice() const { return told_twice_; }

private:
    void* const base_;
    std::array<std::atomic<bool>, size> adopted_{};
    std::atomic<bool> told_twice_{false};
};

class Worker {
public:
    Worker(Device& device, std::uint64_t seed)
        : device_(device), random_(static_cast<std::uint32_t>(seed % 2147483646 + 1)) {}

    void run(std::uint64_t steps) {
        for (std::uint64_t step = 0; step < steps; ++step) {
            if (!stream_ || random_() % 16 == 0) make_stream();
            if (stream_) life();
        }
        stream_.reset();
    }
    const Findings& findings() const { return findings_; }
    const Slots& slots() const { return slots_; }

private:
    void make_stream() {
        stream_.reset();
        if (Result<Stream> made = device_.create_stream()) stream_.emplace(std::move(made).value());
    }
    template <class T>
    bool worked(const Result<T>& result) {
        if (result.ok()) return true;
        ++findings_.errors;
        // Every error has a message and a remedy.
        if (result.error().message().empty() || result.error().remedy().empty()) wrong("an error without words");
        return false;
    }
    void wrong(std::string what) {
        ++findings_.wrong;
        if (findings_.first_wrong.empty()) findings_.first_wrong = std::move(what);
    }
    void compare(const std::int32_t* seen, std::int32_t expected, const char* where) {
        ++findings_.checks;
        for (std::size_t i = 0; i < count; ++i) {
            ++findings_.values;
            if (seen[i] == expected) continue;
            wrong(std::string(where) + ", " + way_ + ": " + std::to_string(seen[i]) + " at " + std::to_string(i) +
                  " instead of " + std::to_string(expected));
        }
    }

    Result<Buffer<std::int32_t>> make() {
        constexpr std::array<MemoryKind, 6> kinds = {MemoryKind::device, MemoryKind::pinned,     MemoryKind::managed,
                                                     MemoryKind::pool,   MemoryKind::registered, MemoryKind::host};
        const auto way = random_() % 8;
        if (way < kinds.size()) {
            way_ = name(kinds[way]);
            if (kinds[way] == MemoryKind::pool) return stream_->allocate<std::int32_t>(count);
            if (kinds[way] == MemoryKind::host) return device_.allocate_shared<std::int32_t>(count);
            return device_.allocate<std::int32_t>(count, kinds[way]);
        }
        const std::optional<std::size_t> slot = slots_.free_one(random_);
        way_ = "adopted";
        if (!slot) return device_.allocate_shared<std::int32_t>(count, {Use::reads_often, Use::writes_often});
        AdoptOptions options = slots_.options(*slot);
        if (random_() % 2 == 0 && device_.capabilities().has(Feature::host_register)) {
            options.use.kind = MemoryKind::registered;
        }
        Result<Buffer<std::int32_t>> made = device_.adopt<std::int32_t>(slots_.at(*slot), count, std::move(options));
        if (!made) slots_.not_adopted(*slot);
        return made;
    }

    // Writes one value to all elements.
    bool set(Buffer<std::int32_t>& buffer, std::int32_t value) {
        const auto way = random_() % 3;
        if (way == 0) return worked(stream_->fill(buffer, value));
        if (way == 1 && buffer.path() != LaunchPath::refuse && buffer.host_kind() != MemoryKind::unknown) {
            auto view = buffer.write_on_host();
            if (!worked(view)) return false;
            for (std::int32_t& one : *view) one = value;
            return true;
        }
        // From ordinary memory, at addresses that were adopted before; it changes as soon as the copy has returned.
        const std::optional<std::size_t> slot = slots_.free_one(random_);
        if (!slot) return worked(stream_->fill(buffer, value));
        std::int32_t* const from = slots_.at(*slot);
        for (std::size_t i = 0; i < count; ++i) from[i] = value;
        const bool copied = worked(stream_->copy_from_host(buffer, std::span<const std::int32_t>(from, count)));
        for (std::size_t i = 0; i < count; ++i) from[i] = -7;
        return copied;
    }
    void check(const Buffer<std::int32_t>& buffer, std::int32_t value) {
        if (random_() % 2 == 0 && buffer.host_kind() != MemoryKind::unknown) {
            const auto view = buffer.read_on_host();
            if (worked(view)) compare(view->data(), value, "a view");
            return;
        }
        std::vector<std::int32_t> seen(count, -1);
        if (!worked(stream_->copy_to_host(std::span<std::int32_t>(seen), buffer))) return;
        compare(seen.data(), value, "a copy to the host");
    }

    // One buffer from allocation to release. After a failed call its contents are not checked.
    void life() {
        Result<Buffer<std::int32_t>> made = make();
        if (!worked(made)) return;
        Buffer<std::int32_t> buffer = std::move(made).value();
        auto value = static_cast<std::int32_t>(random_() % 1000);
        bool known = set(buffer, value);
        for (auto more = random_() % 4; known && more > 0; --more) {
            const LaunchOptions staged{.mode = LaunchMode::staged};
            known = worked(stream_->launch(staged, add_one, count, buffer));
            ++value;
        }
        if (known && random_() % 4 == 0) known = set(buffer, ++value);
        if (known) check(buffer, value);
        if (random_() % 3 == 0) return;  // released by its destructor
        while (!worked(buffer.release())) {
            if (!buffer) return wrong("a release failed and left nothing");
            if (known) check(buffer, value);
        }
        if (buffer) wrong("a release succeeded and left something");
    }

    Device& device_;
    std::minstd_rand random_;
    Slots slots_;
    std::optional<Stream> stream_;
    Findings findings_;
    std::string way_;
};

// Each releasing call, and some others, fails now and then. Polled calls fail less often: at the same rate they would
// end every wait.
std::string failures(std::uint64_t seed) {
    struct Failing {
        const char* call;
        int one_in;
        int code;
    };
    constexpr Failing all[] = {
        {"cuMemHostUnregister", 2, 2},
        {"cuMemFree", 4, 2},
        {"cuMemFreeHost", 4, 999},
        {"cuMemFreeAsync", 4, 2},
        {"cuCtxPushCurrent", 20, 2},
        {"cuCtxPopCurrent", 50, 999},
        {"cuStreamDestroy", 10, 999},
        {"cuEventDestroy", 10, 999},
        {"cuMemAlloc", 30, 2},
        {"cuMemHostAlloc", 30, 2},
        {"cuMemAllocManaged", 30, 2},
        {"cuMemAllocFromPoolAsync", 30, 2},
        {"cuMemHostRegister", 30, 2},
        {"cuMemHostGetDevicePointer", 10, 999},
        {"cuPointerGetAttributes", 50, 999},
        {"cuStreamCreateWithPriority", 30, 2},
        {"cuStreamAttachMemAsync", 50, 999},
        {"cuStreamWaitEvent", 50, 999},
        {"cuEventCreate", 50, 2},
        {"cuEventRecord", 50, 999},
        {"cuEventQuery", 2000, 999},
        {"cuLaunchKernel", 50, 999},
        {"cuMemcpyHtoDAsync", 50, 999},
        {"cuMemcpyDtoHAsync", 50, 999},
        {"cuMemcpyDtoDAsync", 50, 999},
        {"cuMemsetD32Async", 50, 999},
    };
    std::string plans;
    for (const Failing& one : all) {
        plans += "call=" + std::string(one.call) + ":one_in=" + std::to_string(one.one_in) +
                 ":seed=" + std::to_string(seed) + ":code=" + std::to_string(one.code) + ";";
    }
    return plans;
}

TEST(Soak, RandomFailuresThatPassGiveNoWrongValue) {  // keeps R6, K12
    const std::uint64_t seed = number_from("ISTHMUS_SOAK_SEED", std::random_device{}());
    const std::uint64_t steps = number_from("ISTHMUS_SOAK_STEPS", 60);
    SCOPED_TRACE("ISTHMUS_SOAK_SEED=" + std::to_string(seed) + " ISTHMUS_SOAK_STEPS=" + std::to_string(steps));
    std::printf("soak: seed %llu, %llu steps for each of %d threads\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(steps), threads);
    std::fflush(stdout);
    Findings sum;
    std::vector<std::unique_ptr<Worker>> workers;
    {
        Runtime runtime = Runtime::open({}).value();
        auto* const simulated = control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan");
        if (runtime.default_device().is_cpu() || simulated == nullptr) {
            GTEST_SKIP() << "only the simulator fails a call";
        }
        std::vector<Device*> gpus;
        for (std::size_t at = 0; at < runtime.device_count(); ++at) {
            Device* const device = runtime.device(at).value();
            if (!device->is_cpu()) gpus.push_back(device);
        }
        for (int thread = 0; thread < threads; ++thread) {
            workers.push_back(std::make_unique<Worker>(*gpus[static_cast<std::size_t>(thread) % gpus.size()],
                                                       seed + static_cast<std::uint64_t>(thread)));
        }
        ASSERT_EQ(simulated(failures(seed).c_str()), 0);
        {
            std::vector<std::unique_ptr<Thread>> running;
            for (const std::unique_ptr<Worker>& worker : workers) {
                running.push_back(std::make_unique<Thread>([&worker, steps] { worker->run(steps); }));
            }
            for (const std::unique_ptr<Thread>& thread : running) thread->join();
        }
        ASSERT_EQ(simulated(""), 0);
        for (Device* const gpu : gpus) {
            EXPECT_TRUE(gpu->healthy());
            (void)gpu->allocate<std::int32_t>(count).value();  // frees what is left
        }
    }
    for (const std::unique_ptr<Worker>& worker : workers) {
        const Findings& found = worker->findings();
        EXPECT_TRUE(worker->slots().all_free()) << "an owner was not told";
        EXPECT_FALSE(worker->slots().told_twice());
        sum.values += found.values;
        sum.wrong += found.wrong;
        sum.errors += found.errors;
        sum.checks += found.checks;
        if (sum.first_wrong.empty()) sum.first_wrong = found.first_wrong;
    }
    std::printf("soak: %llu values in %llu checks, %llu errors, %llu wrong\n",
                static_cast<unsigned long long>(sum.values), static_cast<unsigned long long>(sum.checks),
                static_cast<unsigned long long>(sum.errors), static_cast<unsigned long long>(sum.wrong));
    EXPECT_EQ(sum.wrong, 0u) << sum.first_wrong;
    EXPECT_GT(sum.checks, 0u);
    EXPECT_GT(sum.errors, 0u) << "no planned failure was met";
    auto* const live = control<isthmus_sim_live_fn>("isthmus_sim_live");
    EXPECT_EQ(live("allocations"), 0);
    EXPECT_EQ(live("registered"), 0);
}

}  // namespace
}  // namespace conformance
