// SPDX-License-Identifier: Apache-2.0
// Pools: what they reserve, what is returned to the device and when, their limits and attributes.
#include "sim_test.hpp"

#include <cstring>

namespace isthmus::sim::test {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr int threshold = 4, reserved = 5, reserved_high = 6, used = 7, used_high = 8;

Pool* new_pool(std::size_t max_bytes = 0) {
    PoolProperties properties = {};
    properties.allocation_type = 1;
    properties.location = {1, 0};
    properties.max_bytes = max_bytes;
    Pool* pool = nullptr;
    REQUIRE_CODE(cuMemPoolCreate(&pool, &properties), 0);
    return pool;
}

void keep_all(Pool* pool) {
    std::uint64_t all = ~std::uint64_t{0};
    REQUIRE_CODE(cuMemPoolSetAttribute(pool, threshold, &all), 0);
}

std::size_t free_bytes() {
    std::size_t left = 0, total = 0;
    REQUIRE_CODE(cuMemGetInfo_v2(&left, &total), 0);
    return left;
}

TEST(SimPool, UnusedReservesGoBackAtTheNextSynchronisation) {  // keeps K19's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Stream* stream = new_stream();
        Pool* pool = new_pool();
        const std::size_t before = free_bytes();
        const Address memory = pool_memory(3 * mib, stream, pool);
        REQUIRE_THAT(pool_figure(pool, used) == 3 * mib && pool_figure(pool, reserved) == 4 * mib);
        REQUIRE_THAT(free_bytes() == before - 4 * mib);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(pool_figure(pool, used) == 0 && pool_figure(pool, reserved) == 0);
        REQUIRE_THAT(free_bytes() == before);
    });
}

TEST(SimPool, TheReleaseThresholdKeepsReservesAndTrimmingGivesThemBack) {  // keeps K19's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Stream* stream = new_stream();
        Pool* pool = new_pool();
        keep_all(pool);
        const Address first = pool_memory(8 * mib, stream, pool);
        const Address second = pool_memory(2 * mib, stream, pool);
        REQUIRE_CODE(cuMemFreeAsync(first, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(pool_figure(pool, reserved) == 10 * mib && pool_figure(pool, used) == 2 * mib);
        const Address again = pool_memory(8 * mib, stream, pool);
        REQUIRE_THAT(pool_figure(pool, reserved) == 10 * mib);  // the freed memory was reused
        REQUIRE_CODE(cuMemFreeAsync(again, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuMemPoolTrimTo(pool, 6 * mib), 0);
        REQUIRE_THAT(pool_figure(pool, reserved) == 6 * mib);
        REQUIRE_CODE(cuMemPoolTrimTo(pool, 0), 0);
        REQUIRE_THAT(pool_figure(pool, reserved) == 2 * mib);  // never memory in use
        REQUIRE_CODE(cuMemFreeAsync(second, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
}

TEST(SimPool, HighMarksStayAndCanOnlyBeResetToTheCurrentFigure) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Stream* stream = new_stream();
        Pool* pool = new_pool();
        REQUIRE_CODE(cuMemFreeAsync(pool_memory(4 * mib, stream, pool), stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        const Address kept = pool_memory(mib, stream, pool);
        REQUIRE_THAT(pool_figure(pool, used_high) == 4 * mib && pool_figure(pool, reserved_high) == 4 * mib);
        std::uint64_t zero = 0, one = 1;
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, used_high, &one), 1);
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, used, &zero), 1);
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, reserved, &zero), 1);
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, used_high, &zero), 0);
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, reserved_high, &zero), 0);
        REQUIRE_THAT(pool_figure(pool, used_high) == mib && pool_figure(pool, reserved_high) == 2 * mib);
        REQUIRE_CODE(cuMemFreeAsync(kept, stream), 0);
        int reuse = 9;
        for (const int id : {1, 2, 3}) {
            REQUIRE_CODE(cuMemPoolGetAttribute(pool, id, &reuse), 0);
            REQUIRE_THAT(reuse == 1);
        }
        reuse = 0;
        REQUIRE_CODE(cuMemPoolSetAttribute(pool, 2, &reuse), 0);
        reuse = 9;
        REQUIRE_CODE(cuMemPoolGetAttribute(pool, 2, &reuse), 0);
        REQUIRE_THAT(reuse == 0);
        REQUIRE_CODE(cuMemPoolGetAttribute(pool, 9, &zero), 1);
        REQUIRE_CODE(cuMemPoolGetAttribute(pool, 4, nullptr), 1);
    });
}

TEST(SimPool, ThePoolsMaximumAndTheDevicesMemoryAreOutOfMemory) {  // keeps K19's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(0, 16 * mib) == 0);
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(99, 16 * mib) == 1);
        REQUIRE_THAT(free_bytes() == 16 * mib);
        Stream* stream = new_stream();
        Pool* pool = new_pool(6 * mib);
        keep_all(pool);
        Address address = 0;
        REQUIRE_CODE(cuMemAllocFromPoolAsync(&address, 7 * mib, pool, stream), 2);
        const Address most = pool_memory(6 * mib, stream, pool);
        REQUIRE_CODE(cuMemAllocFromPoolAsync(&address, 1, pool, stream), 2);
        REQUIRE_CODE(cuMemAllocAsync(&address, 12 * mib, stream), 2);  // the device's pool has no more either
        REQUIRE_CODE(cuMemAllocAsync(&address, std::size_t{1} << 62, stream), 2);
        REQUIRE_CODE(cuMemFreeAsync(most, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 12 * mib), 2);  // the pool keeps it reserved
        REQUIRE_CODE(cuMemPoolTrimTo(pool, 0), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 12 * mib), 0);
        REQUIRE_CODE(cuMemFree_v2(address), 0);
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(0, 0) == 0);
        REQUIRE_THAT(free_bytes() > 16 * mib);
    });
}

TEST(SimPool, TheEnvironmentMakesADeviceSmallerFromTheStart) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_MEMORY_BYTES", "8388608", 1);
        open_device();
        std::size_t total = 0;
        REQUIRE_CODE(cuDeviceTotalMem_v2(&total, 0), 0);
        REQUIRE_THAT(total == 8 * mib && free_bytes() == 8 * mib);
        Address address = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&address, 8 * mib + 1), 2);
    });
}

TEST(SimPool, WorkBeforeAFreeStillReachesTheMemory) {  // keeps S3's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Stream* stream = new_stream();
        Gate gate;
        const Address memory = pool_memory(4096, stream);
        const Address result = device_memory(4096);
        REQUIRE_CODE(cuMemsetD32Async(memory, 3, 1024, stream), 0);
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 5), 0);
        REQUIRE_CODE(cuMemcpyDtoDAsync_v2(result, memory, 4096, stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);  // queued while the kernels wait
        gate.released = 1;
        int back[1024] = {};
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back, result, 4096, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back[0] == 15 && back[1023] == 15);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 5), 0);  // and work after the free faults
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

TEST(SimPool, ADestroyedPoolsMemoryLivesUntilItIsFreedAndItsPlaceGoesToTheDefault) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Stream* stream = new_stream();
        Pool *pool = new_pool(), *standard = nullptr, *current = nullptr;
        const std::size_t before = free_bytes();
        REQUIRE_CODE(cuDeviceGetDefaultMemPool(&standard, 0), 0);
        REQUIRE_CODE(cuDeviceSetMemPool(0, pool), 0);
        REQUIRE_CODE(cuDeviceGetMemPool(&current, 0), 0);
        REQUIRE_THAT(current == pool);
        const Address memory = pool_memory(mib, stream);
        Pool* of_memory = nullptr;
        REQUIRE_CODE(cuPointerGetAttribute(&of_memory, 17, memory), 0);
        REQUIRE_THAT(of_memory == pool);
        REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
        REQUIRE_CODE(cuMemPoolDestroy(pool), 1);
        REQUIRE_CODE(cuMemPoolDestroy(standard), 1);
        REQUIRE_CODE(cuDeviceGetMemPool(&current, 0), 0);
        REQUIRE_THAT(current == standard && isthmus_sim_live("pools") == 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 64, 2), 0);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(isthmus_sim_live("pool") == 0 && free_bytes() == before);
    });
}

TEST(SimPool, SynchronousFreesTakePoolMemoryToo) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const Address memory = pool_memory(mib, nullptr);
        REQUIRE_CODE(launch_multiply(nullptr, memory, 64, 2), 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 1);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(isthmus_sim_live("allocations") == 0);
    });
}

TEST(SimPool, CreatingAPoolKillsAGlobalCaptureOnly) {  // keeps K13's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        for (const int mode : {0, 1, 2}) {
            Stream* stream = new_stream();
            GraphObject* graph = nullptr;
            PoolProperties properties = {};
            properties.allocation_type = 1;
            properties.location = {1, 0};
            Pool* pool = nullptr;
            REQUIRE_CODE(cuStreamBeginCapture_v2(stream, mode), 0);
            REQUIRE_CODE(cuMemPoolCreate(&pool, &properties), mode == 2 ? 0 : 900);
            REQUIRE_CODE(cuStreamEndCapture(stream, &graph), mode == 2 ? 0 : 901);
        }
    });
}

}  // namespace
}  // namespace isthmus::sim::test
