// SPDX-License-Identifier: Apache-2.0
// Requests whose sizes change, on several threads, and such that grow from one to the next: how often the driver is
// asked. Threads take turns in an order that is stated, so that every count is the same each time.
#include "counting.hpp"
#include "foreign_driver.hpp"
#include "keeping.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::uint64_t plenty = std::uint64_t{256} << 20;

// Sixteen sizes of as many classes.
constexpr std::array<std::size_t, 16> sizes = {3000,  4100,  5200,   7000,   9000,   12000,  15000,   20000,
                                               30000, 50000, 100000, 200000, 300000, 500000, 1000000, 2000000};
constexpr std::size_t largest = 2000000;

enum class What : std::uint8_t { block_of_stream, pinned_block, buffer_of_stream, pinned_buffer };
constexpr std::array whats = {What::block_of_stream, What::pinned_block, What::buffer_of_stream, What::pinned_buffer};

// What one thread has: nothing, or one request.
struct Owner {
    Device& device;
    Stream stream = device.create_stream().value();
    std::optional<MemoryBlock> block;
    std::optional<Buffer<std::byte>> buffer;
    std::size_t turn = 0;

    explicit Owner(Device& used) : device(used) {}
    bool has_any() const { return block || buffer; }
    Allocator allocator(What what) const {
        return device.allocator(what == What::pinned_block ? MemoryKind::pinned : MemoryKind::pool);
    }
    Code allocate(What what, std::size_t bytes) {
        if (what == What::block_of_stream || what == What::pinned_block) {
            Stream* const order = what == What::block_of_stream ? &stream : nullptr;
            const Result<MemoryBlock> made = allocator(what).allocate({bytes, 256, order});
            if (made) block = *made;
            return made.code();
        }
        auto made = what == What::buffer_of_stream ? stream.allocate<std::byte>(bytes)
                                                   : device.allocate<std::byte>(bytes, MemoryKind::pinned);
        if (!made) return made.code();
        buffer.emplace(std::move(made).value());
        return Code::ok;
    }
    Code release(What what) {
        buffer.reset();
        if (!block) return Code::ok;
        return allocator(what)
            .release(*std::exchange(block, {}), what == What::block_of_stream ? &stream : nullptr)
            .code();
    }
    Code step(What what) { return has_any() ? release(what) : allocate(what, sizes[turn++ % sizes.size()]); }
};

// The order of steps, each of which allocates, or releases, where the thread has something.
enum class Order : std::uint8_t { pair_by_pair, cycle_by_cycle, all_at_once, one_overlaps_the_next, at_random };
constexpr std::array orders = {Order::pair_by_pair, Order::cycle_by_cycle, Order::all_at_once,
                               Order::one_overlaps_the_next, Order::at_random};

std::vector<std::size_t> steps_of(Order order, std::size_t threads, std::size_t cycles) {
    std::vector<std::size_t> steps;
    const std::size_t pairs = cycles * sizes.size();
    const auto add = [&](std::size_t thread, std::size_t times) { steps.insert(steps.end(), times, thread); };
    std::uint64_t state = 7;
    const std::size_t rounds = order == Order::cycle_by_cycle ? cycles : pairs;
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t at = 0; at < threads; ++at) {
            switch (order) {
                case Order::pair_by_pair: add(at, 2); break;
                case Order::cycle_by_cycle: add(at, 2 * sizes.size()); break;
                case Order::all_at_once: add(at, 1); break;
                case Order::one_overlaps_the_next:
                    add(at, 1);
                    add((at + 1) % threads, 1);
                    break;
                case Order::at_random:
                    for (int step = 0; step < 2; ++step) {
                        state = state * 6364136223846793005u + 1442695040888963407u;
                        add(static_cast<std::size_t>(state >> 33) % threads, 1);
                    }
                    break;
            }
        }
        for (std::size_t at = 0; order == Order::all_at_once && at < threads; ++at) add(at, 1);
    }
    return steps;
}

struct Outcome {
    std::uint64_t pairs = 0;  // of an allocation and its release, in the steps that count
    std::uint64_t asked = 0;  // requests for which the driver was asked
    long driver_calls = 0;
    long mutexes = 0;  // of all threads
    bool failed = false;
};

// Each step on the thread whose turn it is.
Outcome play(Device& device, What what, Order order, std::size_t threads) {
    constexpr std::size_t warm_cycles = 12;
    constexpr std::size_t cycles = 4;
    std::vector<std::unique_ptr<Owner>> owners;
    for (std::size_t at = 0; at < threads; ++at) {
        owners.push_back(std::make_unique<Owner>(device));
        EXPECT_TRUE(worked(owners.back()->stream.synchronize()));
    }
    std::vector<std::size_t> steps = steps_of(order, threads, warm_cycles);
    const std::size_t warm = steps.size();
    const std::vector<std::size_t> counted = steps_of(order, threads, cycles);
    steps.insert(steps.end(), counted.begin(), counted.end());
    Outcome outcome;
    std::uint64_t asked_before = 0;
    long calls_before = 0;
    std::atomic<std::size_t> next{0};
    const auto act = [&](std::size_t own) {
        for (std::size_t now = next.load(); now < steps.size(); now = next.load()) {
            if (steps[now] != own) {
                std::this_thread::yield();
                continue;
            }
            if (now == warm) {
                asked_before = device.cache_usage().missed;
                calls_before = driver_calls();
            }
            Counting counting;
            const Code answer = owners[own]->step(what);
            if (now >= warm) outcome.mutexes += counting.end().mutexes;
            outcome.failed = outcome.failed || answer != Code::ok;
            next.store(now + 1);
        }
    };
    std::vector<std::thread> others;
    for (std::size_t at = 0; at < threads; ++at) others.emplace_back(act, at);
    for (std::thread& other : others) other.join();
    outcome.pairs = counted.size() / 2;
    outcome.asked = device.cache_usage().missed - asked_before;
    outcome.driver_calls = driver_calls() - calls_before;
    for (const auto& owner : owners) EXPECT_EQ(owner->release(what), Code::ok);
    return outcome;
}

bool has_pools(const Device& device) {
    return !device.is_cpu() && device.capabilities().has(Feature::pools);
}
bool of_own_stream(What what) {
    return what == What::block_of_stream || what == What::buffer_of_stream;
}
bool can(const Device& device, What what) {
    return has_pools(device) || !of_own_stream(what);
}

// Threads that wait for their turn take long, under ThreadSanitizer above all.
#ifdef __SANITIZE_THREAD__
constexpr std::array thread_counts = {std::size_t{3}};
#else
constexpr std::array thread_counts = {std::size_t{3}, std::size_t{16}};
#endif

// Each thread uses one piece for all its sizes: no driver call, and of memory in the order of its stream no lock.
TEST(ThreadSizes, ThreadsWhoseRequestsChangeAskNoDriverInTheSteadyState) {  // keeps M2, M8
    for (const What what : whats) {
        for (const Order order : orders) {
            for (const std::size_t threads : thread_counts) {
                if (threads == 16 && what != What::block_of_stream) continue;  // threads that wait take long
                SCOPED_TRACE(std::to_string(static_cast<int>(what)) + " in order " +
                             std::to_string(static_cast<int>(order)) + " on " + std::to_string(threads));
                on_each_device_that_keeps(plenty, [&](Device& device) {
                    if (!can(device, what)) return;
                    const Outcome outcome = play(device, what, order, threads);
                    EXPECT_FALSE(outcome.failed);
                    if (of_own_stream(what)) {
                        EXPECT_EQ(outcome.asked, 0u);
                        EXPECT_EQ(outcome.driver_calls, 0);
                        EXPECT_EQ(outcome.mutexes, 0);
                    } else {  // what one thread released serves others: it comes from the cache now and then
                        EXPECT_LE(outcome.asked, outcome.pairs / 50);
                        EXPECT_LE(outcome.mutexes, 3 * static_cast<long>(outcome.pairs));
                    }
                    // As if each thread had a device of its own, which keeps 17/16 of its peak, of pieces that are up
                    // to a quarter larger than what was asked for.
                    const std::uint64_t most = threads * largest * 5 / 4;
                    EXPECT_LE(device.cache_usage().kept_bytes, most + most / 16);
                });
            }
        }
    }
}

// A thread that keeps what its piece serves, and needs another: it has no such piece from then on.
TEST(ThreadSizes, WhatAThreadHoldsInItsPieceIsOneBlock) {  // keeps M8
    on_each_device_that_keeps(plenty, [](Device& device) {
        (void)play(device, What::pinned_block, Order::pair_by_pair, 2);
        const std::uint64_t kept = device.cache_usage().kept_bytes;
        std::thread([&] {
            const Allocator allocator = device.allocator(MemoryKind::pinned);
            std::vector<MemoryBlock> held;
            for (std::size_t at = 0; at < 200; ++at) {
                for (const std::size_t bytes : sizes) {
                    const Result<MemoryBlock> made = allocator.allocate(request_of(bytes + at));
                    ASSERT_TRUE(worked(made));
                    if (bytes == sizes.front()) {
                        held.push_back(*made);
                    } else {
                        EXPECT_TRUE(worked(allocator.release(*made)));
                    }
                }
            }
            for (const MemoryBlock& block : held) EXPECT_TRUE(worked(allocator.release(block)));
        }).join();
        EXPECT_LE(device.cache_usage().kept_bytes, std::max<std::uint64_t>(kept, 3 * largest) + 3 * largest)
            << "200 small blocks took no 200 large pieces";
    });
}

// Each request is a little larger than the last: the driver is asked for more than one of them needs.
TEST(ThreadSizes, RequestsThatGrowAskTheDriverNowAndThen) {  // keeps M2, M8
    for (const What what : whats) {
        SCOPED_TRACE(static_cast<int>(what));
        for (const std::uint64_t beside : {std::uint64_t{0}, std::uint64_t{64} << 20}) {
            on_each_device_that_keeps(plenty, [&](Device& device) {
                if (!can(device, what)) return;
                Owner owner(device);
                std::optional<MemoryBlock> living;
                const Allocator of_device = device.allocator(MemoryKind::device);
                if (beside != 0) living = of_device.allocate(request_of(beside)).value();
                const std::uint64_t before = device.cache_usage().missed;
                constexpr std::size_t requests = 1000;
                std::size_t bytes = 1000000;
                for (std::size_t at = 0; at < requests; ++at, bytes += 1000) {
                    ASSERT_EQ(owner.allocate(what, bytes), Code::ok);
                    ASSERT_EQ(owner.release(what), Code::ok);
                    if (beside == 0) {
                        EXPECT_LE(device.cache_usage().kept_bytes, bytes + bytes / 16 + 4096);
                    }
                }
                // The CPU device gets its pages from the system, without more than is asked for.
                const std::uint64_t asked = device.cache_usage().missed - before;
                EXPECT_LE(asked, device.is_cpu() ? requests : requests / 25);
                if (living) {
                    EXPECT_TRUE(worked(of_device.release(*living)));
                }
            });
        }
    }
}

// What the driver was asked for beyond the request, and what is unused of a thread's piece, is nobody's.
TEST(ThreadSizes, ABlockHasTheBoundsThatWereAskedFor) {  // keeps M2
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;  // a driver does not know the bounds
        const Allocator allocator = device.allocator(MemoryKind::device);
        const MemoryBlock other = allocator.allocate(request_of(4 << 20)).value();
        const ForeignContext context(device);
        const auto copies = [&](const MemoryBlock& block, std::size_t many) {
            auto* const function = driver_function<int(std::uint64_t, std::uint64_t, std::size_t)>("cuMemcpyDtoD_v2");
            return function(other.device, block.device, many) == 0;
        };
        const auto look = [&](std::size_t bytes) {
            const Result<MemoryBlock> block = allocator.allocate(request_of(bytes));
            ASSERT_TRUE(worked(block));
            EXPECT_TRUE(copies(*block, bytes));
            EXPECT_FALSE(copies(*block, bytes + 1)) << "an overrun by one byte";
            EXPECT_TRUE(worked(allocator.release(*block)));
            EXPECT_FALSE(copies(*block, bytes)) << "use after release";
        };
        for (std::size_t at = 0; at < 60; ++at) look(100000 + at * 999);
        for (int thread = 0; thread < 3; ++thread) {
            std::thread([&] {
                const ForeignContext of_thread(device);
                for (std::size_t at = 0; at < 3 * sizes.size(); ++at) look(sizes[at % sizes.size()]);
            }).join();
        }
        EXPECT_TRUE(worked(allocator.release(other)));
    });
}

}  // namespace
}  // namespace conformance
