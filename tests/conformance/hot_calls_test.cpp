// SPDX-License-Identifier: Apache-2.0
// What each call of a hot path may do once its program runs steadily: one table for the CPU device, every simulated
// machine and real hardware. docs/performance.md has it in words.
#include "counting.hpp"
#include "gate.hpp"
#include "keeping.hpp"
#include "mailbox_kernels.hpp"

#include <isthmus/concurrent/service.hpp>
#include <isthmus/graph.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t items = 16;

std::vector<Buffer<std::int32_t>> several(Device& device, std::size_t count) {
    std::vector<Buffer<std::int32_t>> made;
    for (std::size_t at = 0; at < count; ++at) made.push_back(shared_numbers(device, items, MemoryKind::pinned));
    return made;
}

// A recorded kernel that reads one of two buffers.
struct Replayed {
    Buffer<std::int32_t> out, one, two;
    KernelNode<void(Index, Out<std::int32_t>, View<const std::int32_t>, std::int32_t)> node;
    GraphInstance instance;
    bool second = false;

    static Replayed of(Device& device, Stream& stream) {
        auto out = pinned(device, items, 0), one = pinned(device, items, 1), two = pinned(device, items, 2);
        Capture capture = stream.begin_capture().value();
        auto node = capture.launch(scale_into, items, out, one, 3).value();
        GraphInstance instance = capture.end().value().instantiate().value();
        return {std::move(out), std::move(one), std::move(two), node, instance};
    }
};

struct Scene {
    Device& device;
    Stream stream = device.create_stream().value();
    Stream beside = device.create_stream().value();
    Buffer<std::int32_t> own = device.allocate<std::int32_t>(items).value();
    Buffer<std::int32_t> of_the_host = device.allocate_shared<std::int32_t>(items).value();
    Buffer<std::int32_t> shared = pinned(device, items, 0);
    Buffer<std::int32_t> other = pinned(device, items, 0);
    Buffer<std::int32_t> copied = shared_numbers(device, items, MemoryKind::device);
    Buffer<std::int32_t> managed = managed_or_pinned(device);
    Buffer<std::int32_t> viewed = pinned(device, items, 0);
    Buffer<std::int32_t> parted = pinned(device, items, 0);
    BufferPart<std::int32_t> part = parted.part(4, 4).value();
    std::vector<Buffer<std::int32_t>> many = several(device, 24);
    Event event = device.create_event().value();
    FrameRing<std::int32_t> ring = FrameRing<std::int32_t>::create(device, items, {}).value();
    Replayed graph = Replayed::of(device, stream);
    std::uint64_t position = 0;
    std::size_t turn = 0;
    std::optional<HostView<const std::int32_t>> open = viewed.read_on_host().value();

    explicit Scene(Device& used) : device(used) { set_all(copied, 0); }
    static Buffer<std::int32_t> managed_or_pinned(Device& device) {
        SharedUse use;
        use.kind = MemoryKind::managed;
        auto made = device.allocate_shared<std::int32_t>(items, use);
        return made ? std::move(made).value() : shared_numbers(device, items, MemoryKind::pinned);
    }
};

template <class T>
Code code_of(const Result<T>& result) {
    return result.code();
}
template <std::size_t... at>
Result<LaunchReport> launch_many(Scene& s, std::index_sequence<at...>) {
    return s.stream.launch(many_views, items, s.many[at]...);
}
template <std::size_t... at>
Result<std::uint64_t> enqueue_many(Scene& s, std::index_sequence<at...>) {
    return s.stream.enqueue_native(
        "nothing", [](void*, auto*...) {}, updates(s.many[at])...);
}

Result<Buffer<std::int32_t>> shared_of(Scene& s, std::size_t count) {
    return s.device.allocate_shared<std::int32_t>(count);
}
Result<Buffer<std::int32_t>> made(Scene& s, MemoryKind kind) {
    SharedUse use;
    use.kind = kind;
    return s.device.allocate_shared<std::int32_t>(1024, use);
}

Code block_pair(const Allocator& allocator, const AllocationRequest& request) {
    const Result<MemoryBlock> block = allocator.allocate(request);
    if (!block) return block.code() == Code::unsupported ? Code::ok : block.code();  // no pools here
    return allocator.release(*block, request.stream).code();
}

// Sixteen sizes of as many classes, one after the other.
std::size_t changing_bytes(Scene& s) {
    constexpr std::array<std::size_t, 16> sizes = {3000,  4100,  5200,   7000,   9000,   12000,  15000,   20000,
                                                   30000, 50000, 100000, 200000, 300000, 500000, 1000000, 2000000};
    return sizes[s.turn++ % sizes.size()];
}
// The same of memory that shares its pages: two of each size of a place.
std::size_t changing_small_bytes(Scene& s) {
    constexpr std::array<std::size_t, 16> sizes = {40,   300,  600,  900,  1100, 1400, 1700, 2000,
                                                   1800, 1500, 1200, 1000, 700,  450,  200,  2040};
    return sizes[s.turn++ % sizes.size()];
}

struct May {
    long allocate = 0;
    long lock = 0;          // mutexes
    long enter_system = 0;  // -1: it waits, and may sleep
    long call_driver = 0;   // on a GPU; -1: it waits, and asks again and again
};
struct Row {
    const char* name;
    Code answer;
    May may;
    Code (*call)(Scene&);
};

constexpr Code ok = Code::ok;
const Row rows[] = {
#include "hot_calls.inc"
};
const Row rows_of_buffers[] = {
#include "hot_buffers.inc"
};

bool prints() {
    const char* const asked = std::getenv("ISTHMUS_PRINT_COUNTS");
    return asked != nullptr && *asked != 0;
}

// Keeps the simulator's queue short, so that no call waits for room in it.
void settle(Scene& scene) {
    EXPECT_TRUE(worked(scene.stream.synchronize()));
    EXPECT_TRUE(worked(scene.beside.synchronize()));
}

void count(Scene& scene, const Row& row) {
    SCOPED_TRACE(row.name);
    constexpr int warm = 160;  // beyond the 64 fences that a stream keeps, twice
    constexpr int counted = 64;
    for (int i = 0; i < warm; ++i) {
        const Code answered = row.call(scene);
        ASSERT_EQ(answered, row.answer) << name(answered);
        if (i % 16 == 15) settle(scene);
    }
    Counts sum;
    long calls_of_driver = 0;
    for (int i = 0; i < counted; ++i) {
        const long before = driver_calls();
        Counting counting;
        const Code answered = row.call(scene);
        const Counts counts = counting.end();
        calls_of_driver += driver_calls() - before;
        ASSERT_EQ(answered, row.answer) << name(answered);
        sum.allocations += counts.allocations;
        sum.mutexes += counts.mutexes;
        sum.system_calls += counts.system_calls;
        if (sum.where.empty()) sum.where = counts.where;
        if (i % 16 == 15) settle(scene);
    }
    if (prints()) {
        std::printf("%-52s %6.2f allocations %6.2f mutexes %6.2f system calls %6.2f driver calls\n", row.name,
                    static_cast<double>(sum.allocations) / counted, static_cast<double>(sum.mutexes) / counted,
                    static_cast<double>(sum.system_calls) / counted, static_cast<double>(calls_of_driver) / counted);
        if (!sum.where.empty()) std::printf("%s\n", sum.where.c_str());
        return;
    }
    EXPECT_LE(sum.allocations, row.may.allocate * counted) << sum.where;
    EXPECT_LE(sum.mutexes, row.may.lock * counted);
    if (row.may.enter_system >= 0) {
        EXPECT_LE(sum.system_calls, row.may.enter_system * counted);
    }
    if (counts_calls(scene.device) && row.may.call_driver >= 0) {
        EXPECT_LE(calls_of_driver, row.may.call_driver * counted);
    }
}

TEST(HotCalls, DoWhatTheTableSaysAndNoMore) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_every_device([](Device& device) {
        Scene scene(device);
        for (const Row& row : rows) count(scene, row);
    });
}

// A buffer comes and goes without the heap, the system and the driver where its memory is kept.
TEST(HotCalls, MakeAndEndBuffersAsTheTableSays) {  // keeps M2
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device) {
        Scene scene(device);
        for (const Row& row : rows_of_buffers) count(scene, row);
    });
}

// Messages of any size, one at a time: once the largest has been there, kept memory serves every size.
TEST(HotCalls, ServeSizesThatChangeAtRandom) {  // keeps M2, M8
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    constexpr std::size_t largest = std::size_t{8} << 20;
    constexpr long turns = 256;
    struct Case {
        const char* name;
        double mutexes;  // of a turn, on the average
        Code (*turn)(Device&, Stream&, std::size_t);
    };
    constexpr Case cases[] = {
        {"blocks", 1.8,
         [](Device& device, Stream&, std::size_t bytes) {
             return block_pair(device.allocator(MemoryKind::pinned), {bytes});
         }},
        {"blocks of a stream", 1.8,
         [](Device& device, Stream& stream, std::size_t bytes) {
             return block_pair(device.allocator(MemoryKind::pool), {bytes, 256, device.is_cpu() ? nullptr : &stream});
         }},
        {"buffers of a stream", 1.8,
         [](Device&, Stream& stream, std::size_t bytes) {
             const Code answer = code_of(stream.allocate<std::byte>(bytes));
             return answer == Code::unsupported ? ok : answer;
         }},
        {"shared buffers", 1.8,
         [](Device& device, Stream&, std::size_t bytes) {
             return code_of(device.allocate_shared<std::byte>(bytes, {.prefer = Prefer::latency}));
         }},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        on_each_device_that_keeps(std::uint64_t{256} << 20, [&](Device& device) {
            Stream stream = device.create_stream().value();
            std::uint64_t state = 1;
            const auto draw = [&] {  // as many of each power of two, from 64 bytes to 8 MiB
                state = state * 6364136223846793005u + 1442695040888963407u;
                const std::size_t below = largest >> ((state >> 33) % 18);
                return std::max<std::size_t>(64, below - (state >> 40) % (below / 2 + 1));
            };
            ASSERT_EQ(one.turn(device, stream, largest), ok);
            for (long at = 0; at < 4 * turns; ++at) ASSERT_EQ(one.turn(device, stream, draw()), ok);
            Counts sum;
            const long calls = driver_calls();
            for (long at = 0; at < turns; ++at) {
                const std::size_t bytes = draw();
                Counting counting;
                const Code answered = one.turn(device, stream, bytes);
                const Counts counts = counting.end();
                ASSERT_EQ(answered, ok);
                sum.allocations += counts.allocations;
                sum.mutexes += counts.mutexes;
                sum.system_calls += counts.system_calls;
                if (sum.where.empty()) sum.where = counts.where;
            }
            if (prints()) {
                std::printf("%-24s %5.2f allocations %5.2f mutexes %5.2f system calls %5.2f driver calls\n", one.name,
                            static_cast<double>(sum.allocations) / turns, static_cast<double>(sum.mutexes) / turns,
                            static_cast<double>(sum.system_calls) / turns,
                            static_cast<double>(driver_calls() - calls) / turns);
                return;
            }
            EXPECT_EQ(driver_calls(), calls);
            EXPECT_EQ(sum.allocations, 0) << sum.where;
            EXPECT_EQ(sum.system_calls, 0);
            EXPECT_LE(static_cast<double>(sum.mutexes), one.mutexes * turns);
            const CacheUsage usage = device.cache_usage();
            EXPECT_LE(usage.kept_bytes, largest + largest / 16) << "nothing lives, and 17/16 of the peak are kept";
        });
    }
}

// Also a lane that is full, and whose oldest buffers go into a cache that has kept none of their size before.
TEST(HotCalls, EndBuffersOfManySizesWithoutTheHeap) {  // keeps M2
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device) {
        Stream stream = device.create_stream().value();
        std::vector<Buffer<std::int32_t>> buffers;
        for (std::size_t at = 1; at <= 20; ++at) {
            buffers.push_back(shared_numbers(device, 1000 * at, MemoryKind::pinned));
            buffers.push_back(device.allocate<std::int32_t>(700 * at).value());
            auto ordered = stream.allocate<std::int32_t>(500 * at);
            if (ordered) buffers.push_back(std::move(ordered).value());  // not everywhere are there pools
        }
        EXPECT_TRUE(worked(device.synchronize()));
        Counting counting;
        while (!buffers.empty()) buffers.pop_back();
        const Counts counts = counting.end();
        EXPECT_EQ(counts.allocations, 0) << counts.where;
    });
}

// Work that has not ended refuses a view that does not wait, and is asked about as often as the program likes.
TEST(HotCalls, AskAboutWorkThatRunsWithoutTheHeap) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, items, 7);
        Event event = device.create_event().value();
        Gate gate(device);
        ASSERT_TRUE(worked(stream.launch(when_raised, 1, gate.words(), data, 10)));
        ASSERT_TRUE(worked(stream.record(event)));
        if (!gate.holds()) return;
        const auto ask = [&] {
            EXPECT_EQ(data.read_on_host(Wait::never()).code(), Code::not_ready);
            EXPECT_EQ(data.write_on_host(Wait::never()).code(), Code::not_ready);
            EXPECT_EQ(data.read_on_host(Wait::at_most(std::chrono::microseconds(1))).code(), Code::timed_out);
            EXPECT_FALSE(event.finished().value());
            EXPECT_EQ(event.synchronize(Wait::never()).code(), Code::not_ready);
            EXPECT_FALSE(stream.finished().value());
            EXPECT_EQ(stream.synchronize(Wait::never()).code(), Code::not_ready);
            EXPECT_TRUE(stream.poll().ok());
        };
        for (int i = 0; i < 16; ++i) ask();
        Counting counting;
        for (int i = 0; i < 16; ++i) ask();
        const Counts counts = counting.end();
        EXPECT_EQ(counts.allocations, 0) << counts.where;
        EXPECT_EQ(counts.system_calls, 0);
        gate.raise();
        EXPECT_EQ((*data.read_on_host())[0], 17);
    });
}

// A launch over a buffer that the stream used before stores its position without the buffer's lock: views see it all
// the same, and by the use that was stored.
TEST(HotCalls, AViewWaitsForALaunchThatTookNoLock) {  // keeps G8
    on_every_device([](Device& device, Stream stream, Stream first) {
        Buffer<std::int32_t> written = pinned(device, items, 1);
        Buffer<std::int32_t> read = pinned(device, items, 5);
        Buffer<std::int32_t> beside = pinned(device, items, 0);
        const auto launch = [&] { return stream.launch(scale_into, items, written, read, 3); };
        ASSERT_TRUE(worked(launch()));
        ASSERT_TRUE(worked(stream.synchronize()));
        Gate gate(device);
        ASSERT_TRUE(worked(first.launch(when_raised, 1, gate.words(), beside, 10)));
        ASSERT_TRUE(worked(stream.wait_stream(first)));
        ASSERT_TRUE(worked(launch()));
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(written.read_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(read.write_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(worked(read.read_on_host(Wait::never()))) << "both read";
            gate.raise();
        }
        expect_all(written, 15);
        set_all(read, 6);  // waits
        ASSERT_TRUE(worked(launch()));
        expect_all(written, 18);
    });
}

// The stream that claims without a lock is forgotten when nothing but buffers holds it.
TEST(HotCalls, AnotherStreamTakesThePlaceOfOneThatIsGone) {  // keeps G8
    on_every_device([](Device& device) {
        Buffer<std::int32_t> shared = pinned(device, items, 0);
        for (int round = 1; round <= 6; ++round) {
            Stream stream = device.create_stream().value();
            for (int times = 0; times < 3; ++times) ASSERT_TRUE(worked(stream.launch(add_one, items, shared)));
            expect_all(shared, 3 * round);
        }
    });
}

// Memory that is kept for the next allocation: the same piece serves requests of several sizes.
TEST(HotCalls, APairOfAllocationAndReleaseByBlockTouchesNoHeap) {  // keeps M2, M4
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    constexpr std::array kinds = {MemoryKind::device,  MemoryKind::pinned,     MemoryKind::write_combined,
                                  MemoryKind::managed, MemoryKind::registered, MemoryKind::host};
    constexpr int pairs = 20;
    on_each_device_that_keeps(std::uint64_t{256} << 20, [&](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const Allocator allocator = device.allocator(kind);
            for (const std::size_t bytes : {std::size_t{64}, std::size_t{5000}, std::size_t{1} << 20}) {
                const auto pair = [&](std::size_t asked) {
                    const Result<MemoryBlock> block = allocator.allocate(request_of(asked));
                    return block ? allocator.release(*block).code() : block.code();
                };
                const Code first = pair(bytes);
                if (first == Code::unsupported) break;
                ASSERT_EQ(first, ok);
                Counts sum;
                const long calls = driver_calls();
                for (int times = 0; times < pairs; ++times) {
                    Counting counting;
                    const Code answered = pair(bytes - static_cast<std::size_t>(times));
                    const Counts counts = counting.end();
                    ASSERT_EQ(answered, ok);
                    sum.allocations += counts.allocations;
                    sum.mutexes += counts.mutexes;
                    sum.system_calls += counts.system_calls;
                    if (sum.where.empty()) sum.where = counts.where;
                }
                EXPECT_EQ(driver_calls(), calls);
                EXPECT_EQ(sum.allocations, 0) << sum.where;
                EXPECT_EQ(sum.system_calls, 0);
                EXPECT_LE(sum.mutexes, 5 * pairs) << "the cache's and the ledger's, twice each, and one to empty lanes";
            }
        }
        EXPECT_GT(device.cache_usage().served, 0u);
    });
}

// What is more than a lane's share: a copied buffer of 8 MiB, which is twice as much, and 64 MiB of a stream.
TEST(HotCalls, ServeLargeMemoryOutOfTheLane) {  // keeps M1, M2
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    struct Case {
        const char* name;
        Code (*turn)(Device&, Stream&);
    };
    constexpr Case cases[] = {
        {"copied, 8 MiB",
         [](Device& device, Stream&) {
             return code_of(device.allocate_shared<std::byte>(std::size_t{8} << 20, {.kind = MemoryKind::device}));
         }},
        {"of a stream, 64 MiB", [](Device&, Stream& stream) { return code_of(stream.allocate<std::byte>(64 << 20)); }},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        on_each_device_that_keeps(std::uint64_t{256} << 20, [&](Device& device) {
            Stream stream = device.create_stream().value();
            for (int times = 0; times < 3; ++times) {
                const Code answered = one.turn(device, stream);
                if (answered == Code::unsupported) return;  // no pools here
                ASSERT_EQ(answered, ok);
            }
            const long calls = driver_calls();
            Counting counting;
            Code answered = ok;
            for (int times = 0; times < 10 && answered == ok; ++times) answered = one.turn(device, stream);
            const Counts counts = counting.end();
            EXPECT_EQ(answered, ok);
            EXPECT_EQ(driver_calls(), calls);
            EXPECT_EQ(counts.mutexes, 0);
            EXPECT_EQ(counts.allocations, 0) << counts.where;
            EXPECT_EQ(counts.system_calls, 0);
        });
    }
}

// What a sealed scope refuses, with what it would do. Every call fails where no scope refuses it only if this machine
// lacks it (unsupported, and the like).
struct Refused {
    const char* name;
    SealedAct act;
    Code (*call)(Scene&);
};
Code allocated(Scene& s, MemoryKind kind) {
    const Allocator allocator = s.device.allocator(kind);
    const Result<MemoryBlock> block = allocator.allocate(request_of(std::size_t{3} << 20));
    return block ? allocator.release(*block).code() : block.code();
}
alignas(4096) std::byte adopted[4096];
const Refused refused_rows[] = {
    {"a stream", SealedAct::make_object, [](Scene& s) { return code_of(s.device.create_stream()); }},
    {"a pool", SealedAct::make_object, [](Scene& s) { return code_of(s.device.create_pool()); }},
    {"a capture", SealedAct::make_object, [](Scene& s) { return code_of(s.stream.begin_capture()); }},
    {"memory of the device", SealedAct::allocate_memory, [](Scene& s) { return allocated(s, MemoryKind::device); }},
    {"pinned memory", SealedAct::allocate_memory, [](Scene& s) { return allocated(s, MemoryKind::pinned); }},
    {"memory of the host", SealedAct::map_memory, [](Scene& s) { return allocated(s, MemoryKind::host); }},
    {"a shared buffer", SealedAct::allocate_memory,
     [](Scene& s) { return code_of(s.device.allocate_shared<std::int32_t>(std::size_t{1} << 20)); }},
    {"a ring", SealedAct::allocate_memory,
     [](Scene& s) { return code_of(FrameRing<std::int32_t>::create(s.device, std::size_t{1} << 18, {})); }},
    {"adopted memory", SealedAct::register_memory,
     [](Scene& s) { return code_of(s.device.adopt<std::byte>(adopted, sizeof adopted)); }},
    {"a host function", SealedAct::use_heap, [](Scene& s) { return code_of(s.stream.call_on_host([]() noexcept {})); }},
};

// Memory comes from the driver, or from the system, registered or not; a ring has more buffers than states are kept.
bool is_of_memory(SealedAct act) {
    return act == SealedAct::allocate_memory || act == SealedAct::map_memory || act == SealedAct::register_memory ||
           act == SealedAct::use_heap;
}
bool names(const std::vector<SealedPlace>& places, SealedAct act) {
    for (const SealedPlace& place : places) {
        if (place.act == act || (act == SealedAct::allocate_memory && is_of_memory(place.act))) return true;
    }
    return false;
}

// The scope refuses a call that the heap would serve, before anything is taken from there.
template <class Call>
void expect_heap_refused(Seal seal, Call call) {
    Counting counting;
    const Code answered = call();
    const Counts counts = counting.end();
    EXPECT_EQ(answered, Code::not_permitted);
    EXPECT_EQ(counts.allocations, 0) << counts.where;
    EXPECT_TRUE(names(seal.places(), SealedAct::use_heap));
    EXPECT_TRUE(worked(seal.end()));
}

TEST(SealedScopes, LetEverySteadyCallRun) {  // keeps T2, R9
    on_every_device([](Device& device) {
        Scene scene(device);
        for (const Row& row : rows) {
            SCOPED_TRACE(row.name);
            for (int i = 0; i < 160; ++i) {
                ASSERT_EQ(row.call(scene), row.answer);
                if (i % 16 == 15) settle(scene);
            }
            const Seal seal = runtime().seal().value();
            for (int i = 0; i < 64; ++i) {
                ASSERT_EQ(row.call(scene), row.answer);
                if (i % 16 == 15) settle(scene);
            }
            EXPECT_EQ(seal.count(), 0u) << (seal.count() != 0 ? seal.places().front().call : "");
        }
    });
}

TEST(SealedScopes, RefuseWhatWouldMakeSomethingBeforeItIsMade) {  // keeps T2
    on_every_device([](Device& device) {
        Scene scene(device);
        for (const Refused& row : refused_rows) {
            SCOPED_TRACE(row.name);
            (void)device.allocate_shared<std::int32_t>(1).value();  // the state of a buffer is kept
            (void)device.trim_cache().value();                      // and no memory
            const long calls = driver_calls();
            Seal seal = runtime().seal().value();
            Counting counting;
            const Code answered = row.call(scene);
            const Counts counts = counting.end();
            EXPECT_TRUE(answered == Code::not_permitted || answered == Code::unsupported) << name(answered);
            EXPECT_EQ(counts.allocations, 0) << counts.where;
            EXPECT_EQ(counts.system_calls, 0);
            EXPECT_EQ(driver_calls(), calls);
            if (answered != Code::not_permitted) continue;
            EXPECT_EQ(seal.count(), 1u);
            EXPECT_TRUE(names(seal.places(), row.act));
            ASSERT_TRUE(worked(seal.end()));
            // Behind the scope it works, and a scope that only reports counts it.
            const Seal reports = runtime().seal({SealScope::thread, SealMode::report}).value();
            const Code allowed = row.call(scene);
            EXPECT_NE(allowed, Code::not_permitted);
            EXPECT_TRUE(names(reports.places(), row.act));
        }
    });
}

// The memory is kept, and the heap would give the buffer's state.
TEST(SealedScopes, RefuseABufferWhoseStateIsNotKept) {  // keeps T2, R9
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        const MemoryBlock block = allocator.allocate(request_of(4096)).value();
        ASSERT_TRUE(worked(allocator.release(block)));
        expect_heap_refused(own.seal().value(),
                            [&] { return code_of(device.allocate<std::byte>(4096, MemoryKind::pinned)); });
        (void)device.allocate<std::byte>(4096, MemoryKind::pinned).value();
        const Seal again = own.seal().value();
        EXPECT_EQ(code_of(device.allocate<std::byte>(4096, MemoryKind::pinned)), ok) << "both are kept";
    });
}

// More than a lane keeps. Host memory that a GPU cannot reach has no second side, and so no extras.
TEST(SealedScopes, LetABufferOfKeptHostMemoryBeMade) {  // keeps T2, R9
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
        constexpr std::size_t bytes = std::size_t{4} << 20;
        (void)device.allocate_host<std::byte>(bytes).value();
        const Seal seal = own.seal().value();
        Counting counting;
        const Code answered = code_of(device.allocate_host<std::byte>(bytes));
        const Counts counts = counting.end();
        EXPECT_EQ(answered, ok);
        EXPECT_EQ(counts.allocations, 0) << counts.where;
        EXPECT_EQ(seal.count(), 0u) << (seal.count() != 0 ? seal.places().front().call : "");
    });
}

// The memory and the state are kept, and the heap would give what such a buffer has beside its state.
TEST(SealedScopes, RefuseABufferWhoseExtrasAreNotKept) {  // keeps T2, R9
    struct alignas(1024) Coarse {
        std::byte bytes[4096];
    };
    struct Case {
        const char* name;
        Code (*make)(Device&, const Allocator&);
    };
    constexpr Case cases[] = {
        {"of an allocator",
         [](Device& device, const Allocator& users) { return code_of(device.allocate<std::byte>(4096, users)); }},
        {"aligned",
         [](Device& device, const Allocator&) { return code_of(device.allocate<Coarse>(1, MemoryKind::pinned)); }},
        {"shared and aligned",
         [](Device& device, const Allocator&) {
             return code_of(device.allocate_shared<std::byte>(
                 4096, SharedUse{.kind = MemoryKind::pinned, .alignment_bytes = 1024}));
         }},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
            const Allocator allocator = device.allocator(MemoryKind::pinned);
            const Allocator users = StatisticsAllocator(allocator);
            for (const std::size_t alignment : {std::size_t{256}, std::size_t{1024}}) {
                AllocationRequest request = request_of(4096);
                request.alignment = alignment;
                const MemoryBlock block = allocator.allocate(request).value();
                ASSERT_TRUE(worked(allocator.release(block)));
            }
            (void)device.allocate<std::byte>(64, MemoryKind::pinned).value();
            expect_heap_refused(own.seal().value(), [&] { return one.make(device, users); });
            EXPECT_EQ(one.make(device, users), ok);
            const Seal again = own.seal().value();
            EXPECT_EQ(one.make(device, users), ok) << "all are kept";
            EXPECT_EQ(again.count(), 0u);
        });
    }
}

// State, book and extras are kept, and so is the memory of both sides; the heap would give the second side.
TEST(SealedScopes, RefuseACopiedBufferWhoseSecondSideIsNotKept) {  // keeps T2, R9
    constexpr std::size_t bytes = 4096;
    const SharedUse copied{.kind = MemoryKind::device};
    if (runtime().default_device().allocate_shared<std::byte>(bytes, copied).value().path() != LaunchPath::stage) {
        GTEST_SKIP() << "device memory is not copied here";
    }
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
        if (device.is_cpu()) return;
        std::vector<MemoryBlock> blocks;
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
            blocks.push_back(device.allocator(kind).allocate(request_of(bytes)).value());
        }
        for (const MemoryBlock& block : blocks) {
            ASSERT_TRUE(worked(device.allocator(block.kind).release(block)));
        }
        const Allocator users = StatisticsAllocator(device.allocator(MemoryKind::pinned));
        (void)device.allocate<std::byte>(bytes, users).value();  // has a book and extras
        expect_heap_refused(own.seal().value(),
                            [&] { return code_of(device.allocate_shared<std::byte>(bytes, copied)); });
        EXPECT_EQ(code_of(device.allocate_shared<std::byte>(bytes, copied)), ok);
        const Seal again = own.seal().value();
        EXPECT_EQ(code_of(device.allocate_shared<std::byte>(bytes, copied)), ok) << "all are kept";
        EXPECT_EQ(again.count(), 0u);
    });
}

// The first part, or the first native scope, of a buffer that lived as the scope began.
TEST(SealedScopes, RefuseAFirstPartOrNativeScopeThatTheHeapWouldGive) {  // keeps T2, R9
    struct Case {
        const char* name;
        Code (*use)(Stream&, Buffer<std::int32_t>&);
    };
    constexpr Case cases[] = {
        {"a part", [](Stream&, Buffer<std::int32_t>& buffer) { return code_of(buffer.part(2, 4)); }},
        {"a native scope",
         [](Stream& stream, Buffer<std::int32_t>& buffer) {
             auto scope = stream.open_native_scope("scope", updates(buffer));
             return !scope ? scope.code() : code_of(std::move(scope)->close());
         }},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> one_before = pinned(device, items, 0);
            Buffer<std::int32_t> other_before = pinned(device, items, 0);
            for (int times = 0; times < 4; ++times) {  // what the stream needs
                auto scope = stream.open_native_scope("before", updates(one_before), updates(other_before)).value();
                ASSERT_TRUE(worked(std::move(scope).close()));
                ASSERT_TRUE(worked(stream.synchronize()));
            }
            Buffer<std::int32_t> fresh = pinned(device, items, 0);
            ASSERT_TRUE(worked(stream.launch(add_one, items, fresh)));
            ASSERT_TRUE(worked(stream.synchronize()));
            for (const SealScope scope : {SealScope::runtime, SealScope::thread}) {
                expect_heap_refused(own.seal({scope, SealMode::refuse}).value(),
                                    [&] { return one.use(stream, fresh); });
            }
            {
                Buffer<std::int32_t> ended = pinned(device, items, 0);
                EXPECT_EQ(one.use(stream, ended), ok);
                ASSERT_TRUE(worked(stream.synchronize()));
            }
            const Seal again = own.seal().value();
            Counting counting;
            EXPECT_EQ(one.use(stream, fresh), ok) << "what the other buffer had is kept";
            const Counts counts = counting.end();
            EXPECT_EQ(counts.allocations, 0) << counts.where;
            EXPECT_EQ(again.count(), 0u);
        });
    }
}

// What a stream's first use of a buffer takes is there for each buffer that lives as the scope begins. Threads that the
// scope does not bind leave it there, however many buffers they make and use. Each scope has a runtime of its own: what
// one prepared would be there for the next.
TEST(SealedScopes, LetWorkUseBuffersForTheFirstTime) {  // keeps R9, T2
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    for (const SealScope scope : {SealScope::runtime, SealScope::thread}) {
        on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
            Stream stream = device.create_stream().value();
            const auto use = [&](std::vector<Buffer<std::int32_t>>& all) {
                for (Buffer<std::int32_t>& one : all) {
                    if (const Code code = code_of(stream.launch(add_one, items, one)); code != ok) return code;
                    if (const Code code = code_of(stream.synchronize()); code != ok) return code;
                }
                return ok;
            };
            std::vector<Buffer<std::int32_t>> warm = several(device, 24);
            EXPECT_EQ(use(warm), ok);
            std::vector<Buffer<std::int32_t>> fresh = several(device, 24);
            const Seal seal = own.seal({scope, SealMode::refuse}).value();
            std::vector<Buffer<std::int32_t>> of_others;
            Code used = ok;
            if (scope == SealScope::thread) {
                std::thread([&] {
                    of_others = several(device, 128);
                    used = use(of_others);
                }).join();
            }
            EXPECT_EQ(used, ok);
            Counting counting;
            const Code code = use(fresh);
            const Counts counts = counting.end();
            EXPECT_EQ(code, ok);
            EXPECT_EQ(counts.allocations, 0) << counts.where;
            EXPECT_EQ(seal.count(), 0u) << (seal.count() != 0 ? seal.places().front().call : "");
        });
    }
}

TEST(SealedScopes, SayWhatToPrepare) {  // keeps T2, R1
    Device& cpu = runtime().cpu();
    const Seal seal = runtime().seal().value();
    const auto made = cpu.create_stream();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().id(), "E012");
    EXPECT_NE(made.error().text().find("make an object of the driver"), std::string::npos) << made.error().text();
    const auto memory = cpu.allocate_shared<std::byte>(std::size_t{5} << 20);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.error().id(), "E013");
    EXPECT_NE(memory.error().text().find("Preparation::memory"), std::string::npos) << memory.error().text();
}

TEST(SealedScopes, OfTheRuntimeBindEveryThreadAndNoOtherRuntime) {  // keeps T2
    Runtime other = Runtime::open().value();
    Seal seal = runtime().seal({SealScope::runtime, SealMode::refuse}).value();
    EXPECT_EQ(runtime().seal({SealScope::runtime, SealMode::refuse}).code(), Code::in_use);
    Code here = ok;
    Code there = ok;
    std::thread([&] {
        here = code_of(runtime().default_device().create_stream());
        there = code_of(other.default_device().create_stream());
    }).join();
    EXPECT_EQ(here, Code::not_permitted);
    EXPECT_EQ(there, ok);
    EXPECT_EQ(seal.count(), 1u);
    ASSERT_TRUE(worked(seal.end()));
    EXPECT_EQ(seal.count(), 1u);
    EXPECT_EQ(seal.places().size(), 1u);
    EXPECT_EQ(code_of(runtime().default_device().create_stream()), ok);
    EXPECT_EQ(code_of(runtime().seal({SealScope::runtime, SealMode::refuse})), ok);
}

// The consumer is a process that takes no frame and is killed while the producer needs a slot.
TEST(SealedScopes, LetAProducerGoOnWhoseConsumerDies) {  // keeps T2, I6
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_every_device([](Device& device) {
        SharedRingOptions options;
        options.slots = 3;
        options.policy = SlowReaderPolicy::wait;
        options.reader_deadline = std::chrono::seconds(60);  // only its death ends it
        auto ring = SharedFrameRing<std::int32_t>::create(device, items, options).value();
        SharedRingDescriptor descriptor = ring.admit().value();
        const pid_t consumer = ::fork();
        if (consumer == 0) {
            ::alarm(60);
            for (;;) ::pause();
        }
        ASSERT_GT(consumer, 0);
        for (FileDescriptor& fd : descriptor.release_fds()) fd.close();
        const auto turn = [&](Wait wait) -> Result<void> {
            auto frame = ring.begin_frame(wait);
            if (!frame) return std::move(frame).error();
            {
                auto view = frame->buffer().write_on_host();
                if (!view) return std::move(view).error();
                view->span()[0] = 1;
            }
            return frame->publish();
        };
        Seal seal = runtime().seal().value();
        for (std::size_t slot = 0; slot < ring.slots(); ++slot) {
            EXPECT_TRUE(worked(turn(Wait::at_most(std::chrono::seconds(1)))));
        }
        EXPECT_TRUE(refused_as(turn(Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
        ::kill(consumer, SIGKILL);
        int status = 0;
        EXPECT_EQ(::waitpid(consumer, &status, 0), consumer);
        Counting counting;
        const Result<void> done = turn(Wait::at_most(std::chrono::seconds(20)));
        const Counts counts = counting.end();
        EXPECT_TRUE(worked(done));
        EXPECT_EQ(counts.allocations, 0) << counts.where;
        EXPECT_TRUE(unless_fault(seal.count() == 0));
        EXPECT_TRUE(worked(seal.end()));
        EXPECT_EQ(ring.readers().front().state, ReaderState::gone);
    });
}

TEST(SealedScopes, EndOnTheirOwnThread) {  // keeps T2
    Seal seal = runtime().seal().value();
    EXPECT_EQ(runtime().seal().code(), Code::in_use);
    std::thread([&] {
        EXPECT_EQ(seal.end().code(), Code::not_permitted);
        EXPECT_EQ(code_of(runtime().cpu().create_stream()), ok) << "the scope is of the other thread";
    }).join();
    EXPECT_EQ(code_of(runtime().cpu().create_stream()), Code::not_permitted);
    ASSERT_TRUE(worked(seal.end()));
    EXPECT_EQ(code_of(runtime().cpu().create_stream()), ok);
}

TEST(Preparations, KeepEventsAndMemoryForALoop) {  // keeps T1
    constexpr std::size_t events = 100;
    constexpr std::size_t pieces = 5;
    constexpr std::size_t bytes = std::size_t{300} << 10;
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
        const auto use = [&]() -> Code {
            std::vector<Event> made;
            made.reserve(events);
            for (std::size_t one = 0; one < events; ++one) {
                Result<Event> event = device.create_event();
                if (!event) return event.code();
                made.push_back(std::move(event).value());
            }
            std::vector<Buffer<std::byte>> memory;
            for (std::size_t one = 0; one < pieces; ++one) {
                Result<Buffer<std::byte>> shared = device.allocate_shared<std::byte>(bytes);
                if (!shared) return shared.code();
                memory.push_back(std::move(shared).value());
                Result<Buffer<std::byte>> device_only = device.allocate<std::byte>(bytes);
                if (!device_only) return device_only.code();
                memory.push_back(std::move(device_only).value());
            }
            return ok;
        };
        {
            const Seal seal = own.seal().value();
            EXPECT_EQ(use(), Code::not_permitted);
        }
        Preparation what;
        what.events = events;
        what.memory = {{bytes, pieces, SharedUse{}}, {bytes, pieces, std::nullopt}};
        what.kernels = {&add_one.info()};
        ASSERT_TRUE(worked(prepare(device, what)));
        const Seal seal = own.seal().value();
        EXPECT_EQ(use(), ok);
        EXPECT_EQ(use(), ok);
        EXPECT_EQ(seal.count(), 0u) << (seal.count() != 0 ? seal.places().front().call : "");
    });
}

// What was prepared rests as bytes, and a buffer of other elements takes its memory.
TEST(Preparations, ServeOtherElementsWithoutTheHeap) {  // keeps T1, T2
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_each_device_that_keeps(std::uint64_t{64} << 20, [&](Device& device, Runtime& own) {
        Preparation what;
        what.memory = {{4096, 2, SharedUse{}}};
        ASSERT_TRUE(worked(prepare(device, what)));
        const Seal seal = own.seal().value();
        Counting counting;
        const Code code = code_of(device.allocate_shared<std::int32_t>(1024));
        const Counts counts = counting.end();
        EXPECT_EQ(code, ok);
        EXPECT_EQ(counts.allocations, 0) << counts.where;
        EXPECT_EQ(seal.count(), 0u) << (seal.count() != 0 ? seal.places().front().call : "");
    });
}

TEST(Preparations, AreRefusedWhereTheyCannotBeKept) {  // keeps T1
    RuntimeOptions options;
    options.cache_bytes = std::uint64_t{1} << 20;
    Runtime own = Runtime::open(options).value();
    Device& device = own.default_device();
    Preparation what;
    what.memory = {{std::size_t{1} << 20, 4, SharedUse{}}};
    EXPECT_TRUE(refused_as(prepare(device, what), Code::system_limit));
    what.memory = {{0, 1, std::nullopt}};
    EXPECT_TRUE(refused_as(prepare(device, what), Code::invalid_argument));
    what.memory.clear();
    what.events = 257;
    EXPECT_TRUE(refused_as(prepare(device, what), Code::system_limit));
}

TEST(Rehearsals, EndWhenTheTurnsAreSteady) {  // keeps T1
    on_every_device([](Device& device) {
        std::optional<Stream> stream;
        Buffer<std::int32_t> data = pinned(device, items, 0);
        const auto turn = [&]() -> Result<void> {
            if (!stream) {
                Result<Stream> made = device.create_stream();
                if (!made) return std::move(made).error();
                stream = std::move(made).value();
            }
            if (auto launched = stream->launch(add_one, items, data); !launched) return std::move(launched).error();
            auto view = data.read_on_host();
            return view ? Result<void>() : Result<void>(std::move(view).error());
        };
        Result<Rehearsal> done = rehearse(turn);
        ASSERT_TRUE(worked(done));
        EXPECT_GE(done->turns, 17u);
        EXPECT_TRUE(names(done->places, SealedAct::make_object));
        const Seal seal = runtime().seal().value();
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(worked(turn()));
        EXPECT_EQ(seal.count(), 0u);
    });
}

TEST(Rehearsals, NameTheCallThatStays) {  // keeps T1
    Device& device = runtime().cpu();
    const auto turn = [&]() -> Result<void> {
        auto made = device.create_stream();
        return made ? Result<void>() : Result<void>(std::move(made).error());
    };
    const Result<Rehearsal> done = rehearse(turn, {4, 20});
    ASSERT_EQ(done.code(), Code::not_ready);
    EXPECT_NE(done.error().text().find("creating a stream"), std::string::npos) << done.error().text();
    EXPECT_EQ(rehearse(turn, {0, 20}).code(), Code::invalid_argument);
    EXPECT_EQ(rehearse(turn, {4, 3}).code(), Code::invalid_argument);
    const auto fails = [&]() -> Result<void> { return device.create_event({true, true}).error(); };
    EXPECT_EQ(rehearse(fails).code(), Code::invalid_argument) << "the turn's own error";
    const Seal seal = runtime().seal().value();
    EXPECT_EQ(rehearse(turn).code(), Code::in_use);
    EXPECT_EQ(code_of(device.create_stream()), Code::not_permitted) << "still sealed";
}

// The first reply that comes late: the service then asks the driver whether its kernel still runs, and has done so
// before, when it started.
TEST(HotCalls, AServiceThatAnswersLateForTheFirstTimeTakesNoHeap) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    on_every_gpu([](Device& device) {
        auto flag = device.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
        flag.write_on_host().value()[0] = 0;
        const auto raised = flag.concurrent_on_host().value();
        auto service = Service<Question, Answer>::start(device, answer_when_raised, flag);
        if (!service) return;  // no kernel may run for long here
        Thread late([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            protocol::SystemAtomics{}.store_release(raised.data(), 1);
        });
        Counting counting;
        const Result<Answer> answer = service->call(question_of(3), Wait::at_most(std::chrono::seconds(20)));
        const Counts counts = counting.end();
        late.join();
        EXPECT_TRUE(worked(answer));
        EXPECT_EQ(counts.allocations, 0) << counts.where;
        EXPECT_TRUE(worked(service->stop(Wait::at_most(std::chrono::seconds(20)))));
    });
}

// A counter that counts nothing would let everything pass
TEST(HotCalls, AreCountedWhereTheyAllocateAndLock) {
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    on_every_device([](Device& device) {
        Counting counting;
        (void)device.create_stream().value();
        const Counts counts = counting.end();
        EXPECT_GT(counts.allocations, 0);
        EXPECT_GT(counts.mutexes, 0);
        EXPECT_FALSE(counts.where.empty());
    });
}

}  // namespace
}  // namespace conformance
