// SPDX-License-Identifier: Apache-2.0
// The whole backend against a working driver: the simulator or a real one. ISTHMUS_CUDA_LIBRARY (and ISTHMUS_SIM) names
// it; the tests run on every device of the machine.
#include "cuda_driver.hpp"

#include <platform/os.hpp>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <thread>

namespace isthmus::platform::cuda {
namespace {

// A kernel as PTX, which a real driver compiles, and its CPU twin: out[i] += value for every i of the extent.
const char ptx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry isthmus_test_add(.param .align 8 .b8 extent[24], .param .align 8 .b8 pack[24]) {
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %d1, %r1, %r2;
    cvt.u64.u32 %d2, %r3;
    add.u64 %d1, %d1, %d2;
    ld.param.u64 %d3, [extent];
    setp.ge.u64 %p, %d1, %d3;
    @%p ret;
    ld.param.u64 %d4, [pack];
    ld.param.u32 %r4, [pack+16];
    cvta.to.global.u64 %d4, %d4;
    shl.b64 %d5, %d1, 2;
    add.u64 %d4, %d4, %d5;
    ld.global.u32 %r5, [%d4];
    add.u32 %r5, %r5, %r4;
    st.global.u32 [%d4], %r5;
    ret;
}
)";
// Polls until the work is done, or failed.
template <class Query>
Status last_answer(const Query& query) {
    for (;;) {
        const Status status = query();
        if (status.code != Code::not_ready) return status;
        std::this_thread::yield();
    }
}
Status reached(Execution& execution, StreamHandle stream) {
    return last_answer([&] { return execution.query_stream(stream); });
}
Status reached(Execution& execution, EventHandle event) {
    return last_answer([&] { return execution.query_event(event); });
}

struct Pack {
    std::uint64_t out;
    std::uint64_t size;
    std::uint32_t value;
    std::uint32_t unused;
};
void add_twin(const Extent&, std::uint64_t first, std::uint64_t last, const void* arguments) {
    const Pack& pack = *static_cast<const Pack*>(arguments);
    auto* out = reinterpret_cast<volatile std::uint32_t*>(pack.out);
    for (std::uint64_t i = first; i < last; ++i) out[i] = out[i] + pack.value;
}
const ParameterInfo parameters[] = {{0, 16, 4, ArgumentUse::read_write}, {16, 4, 0, ArgumentUse::value}};
const KernelImage image{reinterpret_cast<const unsigned char*>(ptx), sizeof(ptx), "7e57add0", "round_trip", true};
const KernelInfo add{
    "test_add", "isthmus_test_add", "View<uint32> out, uint32 value", parameters, 2, sizeof(Pack), 1, 0,
    &image,     &add_twin};

constexpr std::uint32_t count = 1000;  // no multiple of a block
constexpr std::size_t bytes = count * sizeof(std::uint32_t);
constexpr int concurrent_managed = 89, managed_memory = 83, memory_pools = 115, host_register = 99;

struct Machine {
    Machine() {
        Result<OpenedDevices> opened = open_devices("", facts);
        if (opened.ok()) {
            drivers = std::move(opened->drivers);
        } else {
            why = opened.error().text();
            code = opened.code();
        }
    }
    MachineFacts facts;
    std::vector<std::unique_ptr<Driver>> drivers;
    std::string why;  // fails where there is no driver
    Code code = Code::ok;
};

// The thread's current context, from the driver itself.
void* current_context() {
    const std::string named = os::environment("ISTHMUS_CUDA_LIBRARY");
    void* library = ::dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_NOW);
    const auto get = reinterpret_cast<int (*)(void**)>(::dlsym(library, "cuCtxGetCurrent"));
    void* context = nullptr;
    return get && get(&context) == 0 ? context : nullptr;
}

bool yes(Driver& driver, int attribute) {
    return driver.facts().attribute(attribute).value_or(0) != 0;
}
std::uint32_t* words(void* memory) {
    return static_cast<std::uint32_t*>(memory);
}
std::uint64_t address(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

// Adds `value` to `count` words at a device address; does not wait.
Status launch_add(Driver& driver, std::uint64_t device, std::uint32_t value, StreamHandle stream) {
    LaunchRequest request;
    request.kernel = &add;
    request.extent = {count, 1, 1};
    request.stream = stream;
    const Pack pack{device, count, value, 0};
    request.pack = &pack;
    if (Status found = driver.execution().resolve(add, request.function); !found.ok()) return found;
    return driver.execution().launch(request);
}
bool all_are(const std::uint32_t* data, std::uint32_t value) {
    return std::all_of(data, data + count, [&](std::uint32_t one) { return one == value; });
}

#define EXPECT_OK(driver, status)                                              \
    do {                                                                       \
        const Status answer = (status);                                        \
        EXPECT_TRUE(answer.ok()) << (driver)->explain(answer, #status).text(); \
    } while (false)

// keeps D1
TEST(RoundTrip, EveryDeviceStatesItsFacts) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    EXPECT_GE(machine.facts.driver_version, 12000);
    for (auto& driver : machine.drivers) {
        EXPECT_FALSE(driver->facts().name.empty());
        EXPECT_GT(driver->all_facts(true).attributes.size(), 100u);
        EXPECT_EQ(driver->facts().attribute(10), 32);  // WARP_SIZE
        EXPECT_GT(driver->facts().total_memory_bytes, 0u);
        EXPECT_TRUE(driver->facts().uuid);
        EXPECT_EQ(driver->facts().host_atomics.has_value(), machine.facts.driver_version >= 13000);
    }
    EXPECT_EQ(current_context(), nullptr);
}

TEST(RoundTrip, AKernelChangesDeviceMemoryBetweenTwoCopies) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        Memory& memory = driver->memory();
        Execution& execution = driver->execution();
        StreamHandle stream{};
        EventHandle begin{}, end{};
        Allocation host, device;
        EXPECT_OK(driver, execution.create_stream(-1, stream));
        EXPECT_OK(driver, execution.create_event(EventKind::timing, begin));
        EXPECT_OK(driver, execution.create_event(EventKind::timing, end));
        EXPECT_OK(driver, memory.allocate(MemoryKind::pinned, bytes, Attachment::global, stream, host));
        EXPECT_OK(driver, memory.allocate(MemoryKind::device, bytes, Attachment::global, stream, device));
        ASSERT_NE(host.host, nullptr);
        EXPECT_EQ(device.host, nullptr);
        for (std::uint32_t i = 0; i < count; ++i) words(host.host)[i] = 40;
        EXPECT_OK(driver, execution.record_event(begin, stream));
        EXPECT_OK(driver, memory.fill(device.device, 0xFF, bytes, stream));
        EXPECT_OK(driver, memory.copy(device.device, address(host.host), bytes, CopyDirection::host_to_device, stream));
        EXPECT_OK(driver, launch_add(*driver, device.device, 2, stream));
        EXPECT_OK(driver, memory.copy(address(host.host), device.device, bytes, CopyDirection::device_to_host, stream));
        EXPECT_OK(driver, execution.record_event(end, stream));
        EXPECT_OK(driver, reached(execution, end));
        EXPECT_TRUE(all_are(words(host.host), 42));
        EXPECT_OK(driver, reached(execution, stream));
        float milliseconds = -1;
        EXPECT_OK(driver, execution.elapsed_ms(begin, end, milliseconds));
        EXPECT_GE(milliseconds, 0);
        EXPECT_OK(driver, memory.release(device, stream));
        EXPECT_OK(driver, memory.release(host, stream));
        EXPECT_OK(driver, execution.destroy_event(begin));
        EXPECT_OK(driver, execution.destroy_event(end));
        EXPECT_OK(driver, execution.destroy_stream(stream));
    }
    EXPECT_EQ(current_context(), nullptr);
}

// keeps A2: the GPU works on host memory in place, at the address that the driver states for it
TEST(RoundTrip, AKernelChangesPinnedAndRegisteredMemoryInPlace) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        Memory& memory = driver->memory();
        StreamHandle stream{};
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        Allocation pinned;
        EXPECT_OK(driver, memory.allocate(MemoryKind::pinned, bytes, Attachment::global, stream, pinned));
        std::fill_n(words(pinned.host), count, 5u);
        EXPECT_OK(driver, launch_add(*driver, pinned.device, 7, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_TRUE(all_are(words(pinned.host), 12));
        EXPECT_OK(driver, memory.release(pinned, stream));
        if (yes(*driver, host_register)) {
            void* pages = std::aligned_alloc(65536, 65536);
            std::fill_n(words(pages), count, 1u);
            std::uint64_t device = 0;
            EXPECT_OK(driver, memory.register_host(pages, 65536, false, device));
            EXPECT_OK(driver, launch_add(*driver, device, 2, stream));
            EXPECT_OK(driver, reached(driver->execution(), stream));
            EXPECT_TRUE(all_are(words(pages), 3));
            EXPECT_EQ(memory.register_host(pages, 65536, false, device).code, Code::in_use);
            EXPECT_OK(driver, memory.unregister_host(pages));
            EXPECT_EQ(memory.unregister_host(pages).code, Code::invalid_argument);
            std::free(pages);
        }
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
}

// keeps K6: attached to the stream for the kernel and back to the host after it, the CPU may touch managed memory
// on every machine
TEST(RoundTrip, ManagedMemoryIsHandedOverByAttachment) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        if (!yes(*driver, managed_memory)) continue;
        Memory& memory = driver->memory();
        const bool guarded = !yes(*driver, concurrent_managed);
        StreamHandle stream{};
        Allocation managed;
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, memory.allocate(MemoryKind::managed, bytes, guarded ? Attachment::host : Attachment::global,
                                          stream, managed));
        std::fill_n(words(managed.host), count, 100u);
        if (guarded) EXPECT_OK(driver, memory.attach(managed, Attachment::stream, stream));
        EXPECT_OK(driver, launch_add(*driver, managed.device, 11, stream));
        if (guarded) EXPECT_OK(driver, memory.attach(managed, Attachment::host, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_TRUE(all_are(words(managed.host), 111));
        EXPECT_OK(driver, memory.release(managed, stream));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
}

// keeps S3
TEST(RoundTrip, PoolMemoryFollowsItsStream) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        if (!yes(*driver, memory_pools)) continue;
        Memory& memory = driver->memory();
        StreamHandle stream{};
        Allocation pool;
        std::vector<std::uint32_t> back(count);
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, memory.allocate(MemoryKind::pool, bytes, Attachment::global, stream, pool));
        EXPECT_OK(driver, memory.fill(pool.device, 0, bytes, stream));
        EXPECT_OK(driver, launch_add(*driver, pool.device, 9, stream));
        EXPECT_OK(driver, memory.copy(address(back.data()), pool.device, bytes, CopyDirection::device_to_host, stream));
        EXPECT_OK(driver, memory.release(pool, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_TRUE(all_are(back.data(), 9));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
}

// keeps K13: memory of a pool of our own, and what the pool says of it
TEST(RoundTrip, APoolOfOurOwnGivesMemoryAndCountsIt) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        ASSERT_EQ(driver->pools() != nullptr, yes(*driver, memory_pools));
        if (!driver->pools()) continue;
        Pools& pools = *driver->pools();
        StreamHandle stream{};
        PoolHandle pool{};
        Allocation made;
        PoolUsage usage;
        std::vector<std::uint32_t> back(count);
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, pools.create({MemoryKind::pool, 64 << 20, 0}, pool));
        EXPECT_OK(driver, pools.allocate(pool, bytes, stream, made));
        EXPECT_OK(driver, pools.usage(pool, usage));
        EXPECT_GE(usage.used_bytes, bytes);
        EXPECT_GE(usage.reserved_bytes, usage.used_bytes);
        EXPECT_OK(driver, driver->transfers()->fill_elements(made.device, 30, 4, count, stream));
        EXPECT_OK(driver, launch_add(*driver, made.device, 3, stream));
        EXPECT_OK(driver, driver->memory().copy(address(back.data()), made.device, bytes, CopyDirection::device_to_host,
                                                stream));
        EXPECT_OK(driver, driver->memory().release(made, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_TRUE(all_are(back.data(), 33));
        EXPECT_OK(driver, pools.trim(pool, 0));
        EXPECT_OK(driver, pools.reset_high_marks(pool));
        EXPECT_OK(driver, pools.usage(pool, usage));
        EXPECT_EQ(usage.used_bytes, 0u);
        EXPECT_EQ(usage.used_high_bytes, 0u);
        EXPECT_OK(driver, pools.destroy(pool));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
    EXPECT_EQ(current_context(), nullptr);
}

// keeps K22: a box of a box, up with gaps and down without
TEST(RoundTrip, ShapedCopiesAndFillsKeepWhatLiesBetween) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    constexpr std::size_t pitch = 64, slice_rows = 6;
    const CopyExtent box{24, 4, 3};
    for (auto& driver : machine.drivers) {
        Transfers& transfers = *driver->transfers();
        StreamHandle stream{};
        Allocation device, host;
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, driver->memory().allocate(MemoryKind::device, pitch * slice_rows * 3, Attachment::global,
                                                    stream, device));
        EXPECT_OK(driver, driver->memory().allocate(MemoryKind::pinned, 24 * 4 * 3, Attachment::global, stream, host));
        auto* tight = static_cast<unsigned char*>(host.host);
        for (unsigned i = 0; i < 24 * 4 * 3; ++i) tight[i] = static_cast<unsigned char>(i % 251);
        const CopySide there{device.device, false, pitch, slice_rows};
        const CopySide here{address(host.host), true, 24, 4};
        EXPECT_OK(driver, driver->memory().fill(device.device, 0xEE, device.bytes, stream));
        EXPECT_OK(driver, transfers.copy_shaped(there, here, box, stream));
        EXPECT_OK(driver, transfers.fill_shaped(there, 0x1234, 2, {8, 2, 3}, stream));
        std::vector<unsigned char> all(device.bytes);
        EXPECT_OK(driver, driver->memory().copy(address(all.data()), device.device, device.bytes,
                                                CopyDirection::device_to_host, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t x = i % pitch, row = i / pitch % slice_rows, slice = i / pitch / slice_rows;
            unsigned expected = 0xEE;
            if (x < 24 && row < 4) expected = tight[(slice * 4 + row) * 24 + x];
            if (x < 8 && row < 2) expected = x % 2 == 0 ? 0x34 : 0x12;
            ASSERT_EQ(all[i], expected) << "byte " << x << " of row " << row << " of slice " << slice;
        }
        EXPECT_OK(driver, transfers.copy_shaped(here, there, {24, 4, 1}, stream));
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_EQ(tight[0], 0x34);
        EXPECT_EQ(tight[24 * 3], all[pitch * 3]);
        EXPECT_OK(driver, driver->memory().release(device, stream));
        EXPECT_OK(driver, driver->memory().release(host, stream));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
}

// keeps S14, S19, K13: what the runtime does meanwhile, on the capturing thread, does not end the capture
TEST(RoundTrip, ACaptureSurvivesAllocationsAndQueriesAndIsReplayed) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        Captures& captures = *driver->captures();
        Memory& memory = driver->memory();
        StreamHandle stream{}, other{};
        Allocation pinned, meanwhile;
        CaptureState state{};
        EventHandle event{};
        GraphHandle graph{};
        GraphInstanceHandle instance{};
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, driver->execution().create_stream(0, other));
        EXPECT_OK(driver, memory.allocate(MemoryKind::pinned, bytes, Attachment::global, stream, pinned));
        std::fill_n(words(pinned.host), count, 1u);
        EXPECT_OK(driver, launch_add(*driver, pinned.device, 0, stream));  // loads the code
        EXPECT_OK(driver, reached(driver->execution(), stream));
        EXPECT_OK(driver, captures.begin(stream));
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
            EXPECT_OK(driver, memory.allocate(kind, 4096, Attachment::global, other, meanwhile));
            EXPECT_OK(driver, memory.release(meanwhile, other));
        }
        EXPECT_OK(driver, driver->execution().create_event(EventKind::plain, event));
        EXPECT_OK(driver, driver->execution().query_event(event));
        EXPECT_OK(driver, driver->execution().query_stream(other));
        EXPECT_OK(driver, reached(driver->execution(), other));
        EXPECT_OK(driver, launch_add(*driver, pinned.device, 5, stream));
        EXPECT_OK(driver, captures.state(stream, state));
        EXPECT_EQ(state, CaptureState::open);
        EXPECT_OK(driver, captures.end(stream, graph));
        EXPECT_OK(driver, captures.state(stream, state));
        EXPECT_EQ(state, CaptureState::none);
        EXPECT_TRUE(all_are(words(pinned.host), 1));  // captured, not run
        EXPECT_OK(driver, captures.instantiate(graph, instance));
        for (int i = 0; i < 3; ++i) EXPECT_OK(driver, captures.launch(instance, other));
        EXPECT_OK(driver, reached(driver->execution(), other));
        EXPECT_TRUE(all_are(words(pinned.host), 16));
        EXPECT_OK(driver, captures.destroy(instance));
        EXPECT_OK(driver, captures.destroy(graph));
        EXPECT_OK(driver, driver->execution().destroy_event(event));
        EXPECT_OK(driver, memory.release(pinned, stream));
        EXPECT_OK(driver, driver->execution().destroy_stream(other));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
    EXPECT_EQ(current_context(), nullptr);
}

// keeps A4, K22: every ordered pair of devices; the driver stages where they do not see each other
TEST(RoundTrip, ContentGoesFromEveryDeviceToEveryOther) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& to : machine.drivers) {
        for (auto& from : machine.drivers) {
            if (to == from) continue;
            StreamHandle stream{};
            Allocation source, target;
            std::vector<std::uint32_t> back(count);
            bool reach = false;
            EXPECT_OK(to, to->execution().create_stream(0, stream));
            EXPECT_OK(from, from->memory().allocate(MemoryKind::device, bytes, Attachment::global, {}, source));
            EXPECT_OK(to, to->memory().allocate(MemoryKind::device, bytes, Attachment::global, {}, target));
            EXPECT_OK(from, from->transfers()->fill_elements(source.device, 123456, 4, count, {}));
            EXPECT_OK(from, reached(from->execution(), StreamHandle::none));
            EXPECT_OK(to, to->transfers()->copy_between(target.device, to->facts().ordinal, source.device,
                                                        from->facts().ordinal, bytes, stream));
            EXPECT_OK(to, to->memory().copy(address(back.data()), target.device, bytes, CopyDirection::device_to_host,
                                            stream));
            EXPECT_OK(to, reached(to->execution(), stream));
            EXPECT_TRUE(all_are(back.data(), 123456));
            EXPECT_OK(to, to->transfers()->can_reach(from->facts().ordinal, reach));
            if (reach) {
                for (const bool allowed : {true, true, false, false}) {  // a repetition is no error
                    EXPECT_OK(to, to->transfers()->set_peer_access(from->facts().ordinal, allowed));
                }
            }
            EXPECT_OK(from, from->memory().release(source, {}));
            EXPECT_OK(to, to->memory().release(target, {}));
            EXPECT_OK(to, to->execution().destroy_stream(stream));
        }
    }
    EXPECT_EQ(current_context(), nullptr);
}

// keeps A10
TEST(RoundTrip, TheDriverTellsTheKindOfAForeignPointer) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        Memory& memory = driver->memory();
        StreamHandle stream{};
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        std::vector<MemoryKind> kinds = {MemoryKind::device, MemoryKind::pinned, MemoryKind::write_combined};
        if (yes(*driver, managed_memory)) kinds.push_back(MemoryKind::managed);
        if (yes(*driver, memory_pools)) kinds.push_back(MemoryKind::pool);
        for (const MemoryKind kind : kinds) {
            Allocation made;
            PointerFacts facts;
            EXPECT_OK(driver, memory.allocate(kind, 1 << 20, Attachment::global, stream, made));
            EXPECT_OK(driver, memory.pointer_facts(made.device + 64, facts));
            EXPECT_EQ(facts.kind, kind) << name(facts.kind);
            EXPECT_EQ(facts.base, made.device) << name(kind);
            EXPECT_GE(facts.bytes, std::size_t{1} << 20) << name(kind);
            EXPECT_EQ(facts.ordinal, driver->facts().ordinal) << name(kind);
            EXPECT_OK(driver, memory.release(made, stream));
        }
        if (yes(*driver, host_register)) {
            void* pages = std::aligned_alloc(65536, 65536);
            std::uint64_t device = 0;
            PointerFacts facts;
            EXPECT_OK(driver, memory.register_host(pages, 65536, false, device));
            EXPECT_OK(driver, memory.pointer_facts(address(pages), facts));
            EXPECT_EQ(facts.kind, MemoryKind::pinned) << name(facts.kind);  // the driver does not distinguish them
            EXPECT_OK(driver, memory.unregister_host(pages));
            std::free(pages);
        }
        PointerFacts facts;
        int on_the_stack = 0;
        EXPECT_OK(driver, memory.pointer_facts(address(&on_the_stack), facts));
        EXPECT_EQ(facts.kind, MemoryKind::unknown);
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
    }
}

// keeps R7, S17: work may be given from any thread, whatever is current there
TEST(RoundTrip, AnyThreadMayUseAStreamAndKeepsItsContext) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        StreamHandle stream{};
        Allocation pinned;
        EXPECT_OK(driver, driver->execution().create_stream(0, stream));
        EXPECT_OK(driver, driver->memory().allocate(MemoryKind::pinned, bytes, Attachment::global, stream, pinned));
        std::fill_n(words(pinned.host), count, 0u);
        std::thread([&] {
            EXPECT_OK(driver, launch_add(*driver, pinned.device, 1, stream));
            EXPECT_OK(driver, reached(driver->execution(), stream));
            EXPECT_EQ(current_context(), nullptr);
        }).join();
        EXPECT_TRUE(all_are(words(pinned.host), 1));
        EXPECT_OK(driver, driver->execution().destroy_stream(stream));
        EXPECT_OK(driver, driver->memory().release(pinned, StreamHandle::none));
    }
}

// keeps K12: the first use of a device and of an image may come from many threads at once
TEST(RoundTrip, ManyThreadsMayBeTheFirst) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    for (auto& driver : machine.drivers) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                StreamHandle stream{};
                Allocation pinned;
                EXPECT_OK(driver, driver->execution().create_stream(0, stream));
                EXPECT_OK(driver,
                          driver->memory().allocate(MemoryKind::pinned, bytes, Attachment::global, stream, pinned));
                std::fill_n(words(pinned.host), count, 1u);
                EXPECT_OK(driver, launch_add(*driver, pinned.device, 1, stream));
                EXPECT_OK(driver, reached(driver->execution(), stream));
                EXPECT_TRUE(all_are(words(pinned.host), 2));
                EXPECT_OK(driver, driver->memory().release(pinned, stream));
                EXPECT_OK(driver, driver->execution().destroy_stream(stream));
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
}

// keeps D9, on the machines that have no usable driver
TEST(Absence, AMachineWithoutGpuSaysSo) {
    const Machine machine;
    EXPECT_TRUE(machine.drivers.empty());
    EXPECT_EQ(machine.code, Code::no_device) << machine.why;
    EXPECT_GT(machine.facts.driver_version, 0);
}
TEST(Absence, AnOldDriverSaysWhichVersionIsNeeded) {
    const Machine machine;
    EXPECT_TRUE(machine.drivers.empty());
    EXPECT_EQ(machine.code, Code::driver_too_old) << machine.why;
    EXPECT_NE(machine.why.find("CUDA 12.0"), std::string::npos) << machine.why;
}

// keeps R2, L8, R7. Ends the process's use of the device: a process of its own.
TEST(Fault, AKernelOutOfBoundsLosesTheDeviceAndIsExplained) {
    Machine machine;
    ASSERT_FALSE(machine.drivers.empty()) << machine.why;
    Driver* driver = machine.drivers[0].get();
    StreamHandle stream{};
    Allocation pinned;
    EXPECT_OK(driver, driver->execution().create_stream(0, stream));
    EXPECT_OK(driver, driver->memory().allocate(MemoryKind::pinned, bytes, Attachment::global, stream, pinned));
    words(pinned.host)[0] = 77;
    EXPECT_OK(driver, launch_add(*driver, 64, 1, stream));
    const Status lost = reached(driver->execution(), stream);
    EXPECT_EQ(lost.code, Code::device_lost);
    EXPECT_EQ(lost.driver_code, 700);
    EXPECT_NE(driver->explain(lost, "waiting").message().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string_view::npos);
    StreamHandle second{};
    EXPECT_EQ(driver->execution().create_stream(0, second).code, Code::device_lost);
    Allocation device;
    EXPECT_EQ(driver->memory().allocate(MemoryKind::device, 64, Attachment::global, stream, device).code,
              Code::device_lost);
    EXPECT_EQ(current_context(), nullptr);
    EXPECT_EQ(words(pinned.host)[0], 77u);
}

}  // namespace
}  // namespace isthmus::platform::cuda
