// SPDX-License-Identifier: Apache-2.0
// Contexts that other code destroys: the runtime reports it, touches nothing that is gone, and frees what is left. In a
// process of its own, because all code shares the primary contexts.
#include "scenario.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 100;

template <class Signature>
Signature* driver(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

Buffer<std::int32_t> shared(Device& device, MemoryKind kind) {
    Buffer<std::int32_t> made = shared_numbers(device, count, kind);
    auto view = made.write_on_host().value();
    for (std::int32_t& one : view) one = 6;
    return made;
}

struct Belongings {
    explicit Belongings(Device& device)
        : device_memory(device.allocate<std::int32_t>(count).value()), pinned(shared(device, MemoryKind::pinned)) {
        if (device.capabilities().has(Feature::managed)) managed = shared(device, MemoryKind::managed);
        if (device.capabilities().has(Feature::host_register)) registered = shared(device, MemoryKind::registered);
        if (device.capabilities().has(Feature::pools)) {
            pooled = device.stream().allocate<std::int32_t>(count).value();
            device.stream().fill_bytes(pooled, 1).value();
        }
        if (device.capabilities().has(Feature::virtual_memory) && test::has_component("mapping")) {
            grown = GrowableBuffer<std::int32_t>::create(device, 2 * count).value();
            grown.resize(count).value();
            device.stream().fill(grown, 1).value();
        }
        device.stream().fill_bytes(device_memory, 0).value();
        device.stream().launch(add_one, count, device_memory).value();
        device.synchronize().value();
    }
    Buffer<std::int32_t> device_memory;
    Buffer<std::int32_t> pinned;
    Buffer<std::int32_t> managed;
    Buffer<std::int32_t> registered;
    Buffer<std::int32_t> pooled;
    GrowableBuffer<std::int32_t> grown;
};

void expect_a_working_device() {
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    ASSERT_FALSE(device.is_cpu());
    Buffer<std::int32_t> data = shared(device, MemoryKind::pinned);
    device.stream().launch(add_one, count, data).value();
    EXPECT_EQ(data.read_on_host().value()[count - 1], 7);
}

// A launch does not query whether its stream's context died and was made again: that would cost every launch a driver
// call. The driver crashes in such a launch (an H200 does), so an allocation or a release has to detect it first.
enum class Found : std::uint8_t { by_a_launch, by_an_allocation };

// `kill` destroys the primary context of this ordinal without the runtime's knowledge.
void outlive(const std::function<void(int)>& kill, Found found = Found::by_a_launch) {
    {
        Runtime runtime = Runtime::open().value();
        Device& device = runtime.default_device();
        if (device.is_cpu()) GTEST_SKIP() << "no GPU, no context";
        Belongings have(device);
        Belongings left(device);  // freed by destructors, after the runtime has noticed
        kill(device.facts().ordinal);
        if (found == Found::by_an_allocation) {
            EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(count), Code::device_lost));
        }
        const auto launched = device.stream().launch(add_one, count, have.device_memory);
        ASSERT_TRUE(refused_as(launched, Code::device_lost));
        EXPECT_FALSE(launched.error().remedy().empty());
        EXPECT_FALSE(device.healthy());
        EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(count), Code::device_lost));
        // The driver unmapped it: access through a view would end the process.
        EXPECT_TRUE(refused_as(have.pinned.read_on_host(), Code::device_lost));
        EXPECT_TRUE(refused_as(have.pinned.salvage_on_host(), Code::device_lost));
        if (have.managed) {
            EXPECT_TRUE(refused_as(have.managed.read_on_host(), Code::device_lost));
            EXPECT_TRUE(worked(have.managed.release()));
        }
        if (have.registered) {  // pages of the operating system
            EXPECT_EQ(have.registered.read_on_host().value()[0], 6);
            EXPECT_TRUE(worked(have.registered.release()));
        }
        if (have.pooled) {
            EXPECT_TRUE(worked(have.pooled.release()));
        }
        if (have.grown) {  // mapped memory survives its context, too
            EXPECT_TRUE(worked(have.grown.release()));
        }
        EXPECT_TRUE(worked(have.device_memory.release()));
        EXPECT_TRUE(worked(have.pinned.release()));
    }
    using Live = std::int64_t(const char*);
    if (const auto live = driver<Live>("isthmus_sim_live")) {
        EXPECT_EQ(live("allocations"), 0);
        EXPECT_EQ(live("pools"), 0);
        EXPECT_EQ(live("mappings"), 0);
        EXPECT_EQ(live("physical"), 0);
        EXPECT_EQ(live("reservations"), 0);
        EXPECT_EQ(live("contexts"), 0);
    }
    expect_a_working_device();
}

// keeps K11, R7
TEST(Contexts, OneThatIsResetTakesItsMemoryAndLeavesThePoolsToBeFreed) {
    outlive([](int ordinal) { ASSERT_EQ(driver<int(int)>("cuDevicePrimaryCtxReset_v2")(ordinal), 0); });
}

// keeps K11, R7
TEST(Contexts, OneThatIsReleasedOnceTooOftenTakesItsMemoryToo) {
    outlive([](int ordinal) { ASSERT_EQ(driver<int(int)>("cuDevicePrimaryCtxRelease_v2")(ordinal), 0); });
}

// keeps K11: the new context has the old one's handle, and maybe somebody else's memory at the old addresses
TEST(Contexts, WhatOthersMakeInTheNextContextIsNotFreedAsOurs) {
    std::uint64_t foreign = 0;
    outlive(
        [&](int ordinal) {
            ASSERT_EQ(driver<int(int)>("cuDevicePrimaryCtxReset_v2")(ordinal), 0);
            void* context = nullptr;
            ASSERT_EQ(driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, ordinal), 0);
            ASSERT_EQ(driver<int(void*)>("cuCtxSetCurrent")(context), 0);
            ASSERT_EQ(driver<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&foreign, count * 4), 0);
            ASSERT_EQ(driver<int(std::uint64_t)>("cuMemFree_v2")(foreign), 0);
            ASSERT_EQ(driver<int(void*)>("cuCtxSetCurrent")(nullptr), 0);
            ASSERT_EQ(driver<int(int)>("cuDevicePrimaryCtxRelease_v2")(ordinal), 0);
        },
        Found::by_an_allocation);
}

}  // namespace
}  // namespace conformance
