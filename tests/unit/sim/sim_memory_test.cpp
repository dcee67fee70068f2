// SPDX-License-Identifier: Apache-2.0
// Codes of allocations, frees and registrations, as observed with a real driver (PLATFORMS §4).
#include "sim_test.hpp"
#include "sim_virtual_scene.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace isthmus::sim::test {
namespace {

TEST(SimMemory, ZeroBytesAreRefusedByEveryAllocatorButTwo) {
    in_own_process([] {
        open_device();
        Address address = 7;
        void* pointer = &address;
        REQUIRE_CODE(cuMemAlloc_v2(&address, 0), 1);
        REQUIRE_CODE(cuMemAllocManaged(&address, 0, 1), 1);
        REQUIRE_CODE(cuMemHostAlloc(&pointer, 0, 0), 0);
        REQUIRE_CODE(cuMemAllocAsync(&address, 0, nullptr), fact(attribute::memory_pools) != 0 ? 0 : 801);
    });
}

TEST(SimMemory, AbsurdSizesAndMoreThanTheDeviceHasAreOutOfMemory) {
    in_own_process([] {
        open_device();
        Address address = 0;
        std::size_t free_bytes = 0, total_bytes = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&address, std::size_t{1} << 62), 2);
        REQUIRE_CODE(cuMemGetInfo_v2(&free_bytes, &total_bytes), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, total_bytes + 1), 2);
        address = device_memory(1 << 20);
        std::size_t left = 0;
        REQUIRE_CODE(cuMemGetInfo_v2(&left, &total_bytes), 0);
        REQUIRE_THAT(left == free_bytes - (2 << 20));
        REQUIRE_CODE(cuMemFree_v2(address), 0);
        REQUIRE_CODE(cuMemGetInfo_v2(&left, &total_bytes), 0);
        REQUIRE_THAT(left == free_bytes);
    });
}

// By the record: the memory of nodes that have CPUs.
std::uint64_t host_bytes() {
    char nodes[4096] = {};
    REQUIRE_THAT(isthmus_sim_fact("numa_nodes", nodes, sizeof nodes) != 0);
    std::uint64_t bytes = 0;
    int taken = 0;
    for (const char* at = nodes; *at != 0; at += taken) {
        int id = 0, cpus = 0;
        unsigned long long of_node = 0;
        REQUIRE_THAT(std::sscanf(at, "%d:%d:%llu%n", &id, &cpus, &of_node, &taken) == 3);
        if (cpus > 0) bytes += of_node;
        if (at[taken] == ',') ++taken;
    }
    return bytes;
}

TEST(SimMemory, NoMoreIsPinnedThanTheHostHas) {  // keeps K19's ground
    in_own_process([] {
        open_device();
        constexpr std::size_t page = 4096;
        constexpr unsigned io_memory = 4;
        const std::size_t half = host_bytes() / 2;
        alignas(page) static char memory[page];
        const bool registers = fact(attribute::host_register) != 0;
        void* first = nullptr;
        void* second = nullptr;
        void* refused = memory;
        REQUIRE_THAT(half > page);
        REQUIRE_CODE(cuMemHostAlloc(&refused, 2 * half + page, 0), 2);
        REQUIRE_THAT(refused == nullptr);
        REQUIRE_CODE(cuMemHostAlloc(&first, half, 0), 0);
        REQUIRE_CODE(cuMemHostAlloc(&refused, half + page, 0), 2);
        REQUIRE_CODE(cuMemAllocHost_v2(&second, half), 0);
        REQUIRE_CODE(cuMemAllocHost_v2(&refused, page), 2);
        REQUIRE_CODE(cuMemHostRegister_v2(memory, page, 0), registers ? 2 : 801);
        REQUIRE_CODE(cuMemHostRegister_v2(memory, page, io_memory), registers ? 0 : 801);  // not the host's
        REQUIRE_CODE(cuMemHostUnregister(memory), registers ? 0 : 713);
        REQUIRE_CODE(cuMemAllocHost_v2(&refused, page), 2);
        REQUIRE_CODE(cuMemFreeHost(first), 0);
        REQUIRE_CODE(cuMemHostRegister_v2(memory, page, 0), registers ? 0 : 801);
        REQUIRE_CODE(cuMemHostAlloc(&first, half, 0), registers ? 2 : 0);
        REQUIRE_CODE(cuMemHostUnregister(memory), registers ? 0 : 713);
        if (registers) REQUIRE_CODE(cuMemHostAlloc(&first, half, 0), 0);
        REQUIRE_CODE(cuMemFreeHost(first), 0);
        REQUIRE_CODE(cuMemFreeHost(second), 0);
        REQUIRE_CODE(cuMemHostAlloc(&first, 2 * half, 0), 0);
    });
}

TEST(SimMemory, VirtualMemoryOnTheHostIsPinnedToo) {  // keeps K19's ground
    in_own_process([] {
        open_device();
        if (fact(attribute::host_virtual_memory) == 0) return;
        const std::size_t all = host_bytes() / granule * granule;
        const AllocationProperties host = properties_of(on_host);
        MemoryHandle handle = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemCreate(&handle, all + granule, &host, 0), 2);
        REQUIRE_CODE(cuMemCreate(&handle, all, &host, 0), 0);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, granule, 0), 2);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, all, 0), 0);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &host, 0), 2);
        REQUIRE_CODE(cuMemFreeHost(pinned), 0);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &host, 0), 0);
    });
}

// The sizes of docs/hardware.md.
TEST(SimMemory, AllocationsTakeWholeChunks) {
    in_own_process([] {
        open_device();
        constexpr std::size_t kib = 1024, mib = 1024 * kib;
        const auto free_bytes = [] {
            std::size_t left = 0, total = 0;
            REQUIRE_CODE(cuMemGetInfo_v2(&left, &total), 0);
            return left;
        };
        const std::size_t before = free_bytes();
        const auto taken_by = [&](std::size_t count, std::size_t bytes) {
            std::vector<Address> all;
            for (std::size_t i = 0; i < count; ++i) all.push_back(device_memory(bytes));
            const std::size_t taken = before - free_bytes();
            for (const Address one : all) REQUIRE_CODE(cuMemFree_v2(one), 0);
            REQUIRE_THAT(free_bytes() == before);
            return taken;
        };
        REQUIRE_THAT(taken_by(40, 64 * kib) == 4 * mib && taken_by(40, mib) == 40 * mib);
        REQUIRE_THAT(taken_by(1, 3 * mib) == 4 * mib && taken_by(40, 5 * mib) == 240 * mib);
        REQUIRE_THAT(taken_by(40, 2 * mib + 512) == 160 * mib && taken_by(3, 2 * mib) == 6 * mib);
        REQUIRE_THAT(taken_by(3, mib + 512) == 6 * mib && taken_by(4, 3 * mib / 2) == 8 * mib);
        REQUIRE_THAT(taken_by(4200, 1) == 4 * mib && taken_by(100, 513) == 2 * mib);
        // The first place that is free is taken; a chunk goes back when it is empty.
        const Address whole = device_memory(mib), half = device_memory(mib / 2), last = device_memory(mib / 2);
        REQUIRE_THAT(before - free_bytes() == 2 * mib);
        const Address behind = device_memory(256);
        REQUIRE_CODE(cuMemFree_v2(whole), 0);
        REQUIRE_THAT(before - free_bytes() == 4 * mib);
        const Address filling = device_memory(3 * mib / 4);
        REQUIRE_THAT(before - free_bytes() == 4 * mib);
        for (const Address one : {half, last, filling}) REQUIRE_CODE(cuMemFree_v2(one), 0);
        REQUIRE_THAT(before - free_bytes() == 2 * mib);
        REQUIRE_CODE(cuMemFree_v2(behind), 0);
        // Contexts share no chunks.
        Context *mine = nullptr, *popped = nullptr;
        const Address first_context = device_memory(1);
        REQUIRE_CODE(cuCtxCreate_v2(&mine, 0, 0), 0);
        const Address second_context = device_memory(1);
        REQUIRE_THAT(before - free_bytes() == 4 * mib);
        REQUIRE_CODE(cuMemFree_v2(second_context), 0);
        REQUIRE_CODE(cuCtxPopCurrent_v2(&popped), 0);
        REQUIRE_CODE(cuMemFree_v2(first_context), 0);
        // A small one that is left keeps its chunk.
        const Address first = device_memory(1), second = device_memory(2 * mib - 512), third = device_memory(512);
        REQUIRE_THAT(before - free_bytes() == 4 * mib);
        REQUIRE_CODE(cuMemFree_v2(second), 0);
        REQUIRE_THAT(before - free_bytes() == 4 * mib);
        REQUIRE_CODE(cuMemFree_v2(first), 0);
        REQUIRE_THAT(before - free_bytes() == 2 * mib);
        // What is left of the device's last chunk serves small ones alone.
        REQUIRE_CODE(isthmus_sim_set_memory_bytes(0, 3 * mib), 0);
        Address address = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&address, 2 * mib), 2);
        REQUIRE_CODE(cuMemAlloc_v2(&address, mib), 0);
        for (const Address one : {third, address}) REQUIRE_CODE(cuMemFree_v2(one), 0);
        REQUIRE_CODE(isthmus_sim_set_memory_bytes(0, 0), 0);
        REQUIRE_THAT(free_bytes() == before);
    });
}

TEST(SimMemory, DoubleInteriorAndForeignFreesAreInvalidAndNullIsFine) {  // keeps K8's ground
    in_own_process([] {
        open_device();
        int foreign = 0;
        const Address address = device_memory(4096);
        REQUIRE_CODE(cuMemFree_v2(address + 256), 1);
        REQUIRE_CODE(cuMemFree_v2(reinterpret_cast<Address>(&foreign)), 1);
        REQUIRE_CODE(cuMemFree_v2(address), 0);
        REQUIRE_CODE(cuMemFree_v2(address), 1);
        REQUIRE_CODE(cuMemFree_v2(0), 0);
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
        REQUIRE_CODE(cuMemFreeHost(static_cast<char*>(pinned) + 64), 1);
        REQUIRE_CODE(cuMemFreeHost(pinned), 0);
        REQUIRE_CODE(cuMemFreeHost(pinned), 1);
        REQUIRE_CODE(cuMemFreeHost(&foreign), 1);
        REQUIRE_CODE(cuMemFreeHost(nullptr), 0);
        REQUIRE_THAT(isthmus_sim_live("allocations") == 0);
    });
}

TEST(SimMemory, PoolMemoryIsFreedInStreamOrderOnceAndManagedMemoryIsNotPoolMemory) {
    in_own_process([] {
        open_device();
        if (fact(attribute::memory_pools) == 0) return;
        Stream* stream = new_stream();
        Address pooled = 0, managed = 0;
        REQUIRE_CODE(cuMemAllocAsync(&pooled, 4096, stream), 0);
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        REQUIRE_CODE(cuMemFreeAsync(managed, stream), 801);
        REQUIRE_CODE(cuMemFreeAsync(pooled + 8, stream), 1);
        REQUIRE_CODE(cuMemFreeAsync(pooled, stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(pooled, stream), 1);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(isthmus_sim_live("pool") == 0 && isthmus_sim_live("managed") == 1);
    });
}

TEST(SimMemory, RegisteringTwiceOrOverlappingIsRefusedAndUnregisteringNeedsTheStart) {
    in_own_process([] {
        open_device();
        std::vector<char> memory(65536);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data(), 32768, 0), 0);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data(), 32768, 0), 712);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data() + 16384, 32768, 0), 712);
        REQUIRE_CODE(cuMemHostUnregister(memory.data() + 64), 1);
        REQUIRE_CODE(cuMemHostUnregister(memory.data()), 0);
        REQUIRE_CODE(cuMemHostUnregister(memory.data()), 713);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data(), 0, 0), 1);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data() + 32768, SIZE_MAX, 0), 1);  // observed (580, H100)
    });
}

TEST(SimMemory, ReadOnlyPagesNeedTheReadOnlyFlag) {
    in_own_process([] {
        open_device();
        void* page = ::mmap(nullptr, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE_THAT(page != MAP_FAILED);
        constexpr unsigned read_only = 8;
        REQUIRE_CODE(cuMemHostRegister_v2(page, 65536, 0), 1);
        const bool supported = fact(attribute::read_only_register) != 0;
        REQUIRE_CODE(cuMemHostRegister_v2(page, 65536, read_only), supported ? 0 : 801);
        ::munmap(page, 65536);
    });
}

TEST(SimMemory, RegisteredMemoryHasAnotherDeviceAddressWhereTheAttributeSaysSo) {  // keeps K23's ground
    in_own_process([] {
        open_device();
        std::vector<int> memory(1000, 3);
        REQUIRE_CODE(cuMemHostRegister_v2(memory.data(), 4000, 0), 0);
        Address address = 0;
        REQUIRE_CODE(cuMemHostGetDevicePointer_v2(&address, memory.data() + 10, 0), 0);
        const bool same = address == reinterpret_cast<Address>(memory.data() + 10);
        REQUIRE_THAT(same == (fact(attribute::host_pointer_for_registered) != 0));
        Stream* stream = new_stream();
        REQUIRE_CODE(launch_multiply(stream, address, 5, 7), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(memory[9] == 3 && memory[10] == 21 && memory[14] == 21 && memory[15] == 3);
        REQUIRE_CODE(cuMemHostUnregister(memory.data()), 0);
    });
}

TEST(SimMemory, PointerAttributesNameOwnerKindAndRange) {  // keeps A10's ground
    in_own_process([] {
        Context* context = open_device();
        const Address address = device_memory(8192);
        unsigned type = 0;
        unsigned char managed = 9;
        Context* owner = nullptr;
        Address start = 0;
        std::size_t bytes = 0;
        void* host = nullptr;
        REQUIRE_CODE(cuPointerGetAttribute(&owner, 1, address + 100), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, address + 100), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&host, 4, address), 1);
        REQUIRE_CODE(cuPointerGetAttribute(&managed, 8, address), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&start, 11, address + 100), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&bytes, 12, address + 100), 0);
        REQUIRE_THAT(owner == context && type == 2 && managed == 0 && start == address && bytes == 8192);
        int on_stack = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, reinterpret_cast<Address>(&on_stack)), 1);
        int ids[] = {2, 8};
        void* data[] = {&type, &managed};
        REQUIRE_CODE(cuPointerGetAttributes(2, ids, data, reinterpret_cast<Address>(&on_stack)), 0);
        REQUIRE_THAT(type == 0 && managed == 0);
    });
}

TEST(SimMemory, WhatNeedsACurrentContextAnswers201AndStreamCallsDoNot) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        Event* event = new_event();
        const Address memory = device_memory(4096);
        char host[64] = {};
        REQUIRE_CODE(launch_multiply(stream, memory, 4, 2), 0);  // loads the kernel while there is a context
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        Address address = 0;
        void* pointer = nullptr;
        Stream* other = nullptr;
        Event* other_event = nullptr;
        unsigned type = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 201);
        REQUIRE_CODE(cuMemAllocManaged(&address, 64, 1), 201);
        REQUIRE_CODE(cuMemHostAlloc(&pointer, 64, 0), 201);
        REQUIRE_CODE(cuStreamCreate(&other, 1), 201);
        REQUIRE_CODE(cuEventCreate(&other_event, 0), 201);
        REQUIRE_CODE(cuMemcpyHtoD_v2(memory, host, sizeof(host)), 201);  // the legacy stream belongs to a context
        REQUIRE_CODE(cuMemcpyHtoDAsync_v2(memory, host, sizeof(host), stream), 0);
        REQUIRE_CODE(cuMemsetD8Async(memory, 1, 64, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 4, 2), 0);
        REQUIRE_CODE(cuEventRecord(event, stream), 0);
        REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuEventQuery(event), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, memory), 0);
        if (fact(attribute::memory_pools) != 0) {
            REQUIRE_CODE(cuMemAllocAsync(&address, 64, stream), 0);
            REQUIRE_CODE(cuMemFreeAsync(address, stream), 0);
        }
    });
}

TEST(SimMemory, AContextTakesItsMemoryWithItButNotThePools) {  // keeps K11's ground
    in_own_process([] {
        open_device();
        Context* mine = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&mine, 0, 0), 0);
        Address device = 0, managed = 0, pooled = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemAlloc_v2(&device, 4096), 0);
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
        const bool pools = fact(attribute::memory_pools) != 0;
        if (pools) REQUIRE_CODE(cuMemAllocAsync(&pooled, 4096, nullptr), 0);
        REQUIRE_CODE(cuCtxDestroy_v2(mine), 0);
        REQUIRE_CODE(cuMemFree_v2(device), 1);
        REQUIRE_CODE(cuMemFree_v2(managed), 1);
        REQUIRE_CODE(cuMemFreeHost(pinned), 1);
        if (pools) REQUIRE_CODE(cuMemFreeAsync(pooled, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(isthmus_sim_live("allocations") == 0);
    });
}

TEST(SimMemory, CopiesGoThereAndBackAndNeverBeyondAnAllocation) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(4096);
        std::vector<unsigned char> there(4096), back(4096);
        for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<unsigned char>(i * 7);
        REQUIRE_CODE(cuMemcpyHtoDAsync_v2(memory, there.data(), 4096, stream), 0);
        std::memset(there.data(), 0, there.size());  // pageable: the driver has read it
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back.data(), memory, 4096, stream), 0);
        for (std::size_t i = 0; i < back.size(); ++i) REQUIRE_THAT(back[i] == static_cast<unsigned char>(i * 7));
        REQUIRE_CODE(cuMemcpyHtoD_v2(memory + 1, there.data(), 4096), 1);
        REQUIRE_CODE(cuMemcpyDtoH_v2(back.data(), memory + 4000, 97), 1);
        REQUIRE_CODE(cuMemsetD32_v2(memory, 0x01020304u, 1024), 0);
        REQUIRE_CODE(cuMemsetD32_v2(memory + 2, 0u, 1), 1);
        REQUIRE_CODE(cuMemcpyDtoH_v2(back.data(), memory, 4096), 0);
        REQUIRE_THAT(back[0] == 4 && back[4095] == 1);
        Copy2D rows = {};
        rows.source_type = 2;
        rows.source_device = memory;
        rows.source_pitch = 64;
        rows.destination_type = 1;
        rows.destination_host = back.data();
        rows.destination_pitch = 16;
        rows.width_bytes = 16;
        rows.height = 4;
        REQUIRE_CODE(cuMemsetD8_v2(memory + 64, 9, 16), 0);
        REQUIRE_CODE(cuMemcpy2D_v2(&rows), 0);
        REQUIRE_THAT(back[15] == 1 && back[16] == 9 && back[31] == 9 && back[32] == 4);
    });
}

// A driver reads it, and ends by SIGSEGV.
TEST(SimMemory, CopiesOfHostMemoryThatNoProgramHasAreOutOfMemory) {
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        std::vector<char> memory(4096);
        const Address place = reinterpret_cast<Address>(memory.data());
        for (const int shift : {46, 63}) {
            REQUIRE_CODE(cuMemcpyAsync(place, place + 64, std::size_t{1} << shift, stream), 2);
        }
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuMemcpyAsync(place, place + 64, 64, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
}

TEST(SimMemory, PrefetchAndAdviceAnswerAsTheMachineDoes) {  // keeps K21's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 65536, 1), 0);
        const Result advised = cuMemAdvise(managed, 65536, 1, 0);
        REQUIRE_CODE(cuMemPrefetchAsync(managed, 65536, 0, stream), advised);
        REQUIRE_THAT(advised == 0 || advised == 101);
        // On no observed machine without concurrent managed access did a prefetch succeed.
        if (!concurrent_managed()) REQUIRE_CODE(advised, 101);
        std::vector<char> plain(65536);
        REQUIRE_CODE(cuMemPrefetchAsync(reinterpret_cast<Address>(plain.data()), 65536, 0, stream), pageable() ? 0 : 1);
        REQUIRE_CODE(cuMemPrefetchAsync(device_memory(64), 64, 0, stream), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
