// SPDX-License-Identifier: Apache-2.0
// The simulator enforces the machine's rules: forbidden CPU access faults, forbidden GPU access is a sticky 700.
#include "sim_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

namespace isthmus::sim::test {
namespace {

TEST(SimAccess, TheCpuFaultsOnDeviceMemoryAndIsToldWhy) {  // keeps A6
    in_own_process_faults(
        [] {
            open_device();
            *as_pointer(device_memory(4096)) = 1;
        },
        "the CPU touched 0x[0-9a-f]+, memory of device 0");
}

TEST(SimAccess, TheCpuFaultsOnPoolMemory) {  // keeps A6
    in_own_process_faults(
        [] {
            open_device();
            if (fact(attribute::memory_pools) == 0) std::abort();
            Address address = 0;
            REQUIRE_CODE(cuMemAllocAsync(&address, 4096, nullptr), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            static_cast<void>(*as_pointer(address));
        },
        "no CPU can reach");
}

TEST(SimAccess, TheCpuStillFaultsAfterGpuWorkUsedTheMemory) {
    in_own_process_faults(
        [] {
            open_device();
            const Address memory = device_memory(4096);
            REQUIRE_CODE(launch_multiply(nullptr, memory, 1024, 3), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            *as_pointer(memory) = 1;
        },
        "memory of device 0");
}

TEST(SimAccess, PageableMemoryReachesTheGpuOnlyWhereTheAttributeSaysSo) {  // keeps A3, L8
    in_own_process([] {
        open_device();
        const bool reaches = pageable();
        std::vector<int> plain(100, 5);
        const Address interior = reinterpret_cast<Address>(plain.data() + 10);
        REQUIRE_CODE(launch_multiply(nullptr, interior, 10, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), reaches ? 0 : 700);
        REQUIRE_THAT(plain[9] == 5 && plain[10] == (reaches ? 10 : 5) && plain[20] == 5);
    });
}

TEST(SimAccess, AnIllegalAddressIsStickyForEveryLaterCallAndPinnedMemoryStaysReadable) {  // keeps R2's ground
    in_own_process(
        [] {
            Context* context = open_device();
            const Address memory = device_memory(64);
            void* pinned = nullptr;
            REQUIRE_CODE(cuMemHostAlloc(&pinned, 64, 0), 0);
            std::memset(pinned, 42, 64);
            Event* event = new_event();
            Stream* stream = new_stream();
            REQUIRE_CODE(launch_multiply(stream, memory, 17, 2), 0);  // one item too many
            REQUIRE_CODE(cuStreamSynchronize(stream), 700);
            Address other = 0;
            REQUIRE_CODE(cuMemAlloc_v2(&other, 64), 700);
            REQUIRE_CODE(cuMemFree_v2(memory), 700);
            REQUIRE_CODE(cuMemFreeHost(pinned), 700);
            REQUIRE_CODE(cuEventRecord(event, stream), 700);
            REQUIRE_CODE(cuEventQuery(event), 700);
            REQUIRE_CODE(cuStreamQuery(stream), 700);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
            REQUIRE_CODE(cuCtxCreate_v2(&context, 0, 0), 700);
            REQUIRE_CODE(cuDevicePrimaryCtxReset_v2(0), 0);  // observed, as the next lines
            REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 709);
            REQUIRE_CODE(cuMemAlloc_v2(&other, 64), 709);
            REQUIRE_THAT(static_cast<char*>(pinned)[63] == 42);
            int value = 0;
            REQUIRE_CODE(cuDeviceGetAttribute(&value, 18, 0), 0);
        },
        "it leaves its allocation.*700");
}

TEST(SimAccess, AKernelThatStoresWhereNobodyMayIsCaughtInTheAct) {
    in_own_process(
        [] {
            open_device();
            REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(64)), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
        },
        "kernel test_wild_store touched 0x40");
}

// keeps R2's ground: what a kernel changes before it faults is memory that was given to it, and nothing beside
TEST(SimAccess, BeforeAndBehindEachAllocationNothingCanBeTouched) {
    for (const bool behind : {false, true}) {
        for (const int kind : {0, 1, 2, 3}) {
            in_own_process(
                [=] {
                    open_device();
                    Address all[4] = {};  // adjacent, as far as the system places them so
                    for (Address& memory : all) {
                        void* pinned = nullptr;
                        if (kind == 0) memory = device_memory(4096);
                        if (kind == 1) REQUIRE_CODE(cuMemAllocManaged(&memory, 4096, 1), 0);
                        if (kind == 2) REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
                        if (kind == 3) REQUIRE_CODE(cuMemAddressReserve(&memory, 2 << 20, 0, 0, 0), 0);
                        if (pinned) memory = reinterpret_cast<Address>(pinned);
                    }
                    const std::size_t bytes = kind == 3 ? 2 << 20 : 4096;
                    constexpr std::size_t gap = 1 << 20;
                    for (const Address one : all) {
                        for (const Address other : all) REQUIRE_THAT(other <= one || other - one >= bytes + gap);
                    }
                    const Address target = behind ? all[1] + bytes : all[1] - 4;
                    REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(target)), 0);
                    REQUIRE_CODE(cuCtxSynchronize(), 700);
                },
                "kernel test_wild_store touched");
        }
    }
}

// keeps R3's ground: observed on driver 580
TEST(SimAccess, AForkedChildReadsWhatItsParentPinnedAndFaultsOnManagedMemory) {
    in_own_process([] {
        open_device();
        void* pinned = nullptr;
        void* combined = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
        REQUIRE_CODE(cuMemHostAlloc(&combined, 4096, 4), 0);
        static_cast<int*>(pinned)[3] = 5;
        static_cast<int*>(combined)[3] = 6;
        const auto status_of = [](auto body) {
            const pid_t child = ::fork();
            if (child == 0) {
                prepare_child();
                std::_Exit(body());
            }
            int status = 0;
            REQUIRE_THAT(::waitpid(child, &status, 0) == child);
            return status;
        };
        const int read = status_of([&] { return static_cast<int*>(pinned)[3] * 10 + static_cast<int*>(combined)[3]; });
        REQUIRE_THAT(WIFEXITED(read) && WEXITSTATUS(read) == 56);
        const int called = status_of([&] { return cuMemFreeHost(pinned) == 3 ? 0 : 1; });
        REQUIRE_THAT(WIFEXITED(called) && WEXITSTATUS(called) == 0);
        const int wrote = status_of([&] { return static_cast<int*>(pinned)[3] = 9; });
        REQUIRE_THAT(WIFEXITED(wrote) && static_cast<int*>(pinned)[3] == 5);  // a copy of its own (assumed)
        if (fact(attribute::managed) == 0) return;
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        *as_pointer(managed) = 7;
        const int touched = status_of([&] { return *as_pointer(managed); });
        REQUIRE_THAT(WIFSIGNALED(touched) && WTERMSIG(touched) == SIGSEGV);
    });
}

TEST(SimAccess, MemoryOfAnotherDeviceNeedsPeerAccess) {  // keeps A4, A15
    in_own_process([] {
        int devices = 0;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        int can = 0;
        REQUIRE_CODE(cuDeviceCanAccessPeer(&can, 0, 1), 0);
        Context* second = open_device(1);
        const Address theirs = device_memory(4096);
        Context* first = open_device(0);
        REQUIRE_CODE(cuCtxEnablePeerAccess(first, 0), 201);
        REQUIRE_CODE(cuCtxEnablePeerAccess(second, 0), can ? 0 : 217);
        if (can) REQUIRE_CODE(cuCtxEnablePeerAccess(second, 0), 704);
        REQUIRE_CODE(launch_multiply(nullptr, theirs, 1024, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), can ? 0 : 700);
        if (!can) return;
        REQUIRE_CODE(cuCtxDisablePeerAccess(second), 0);
        REQUIRE_CODE(cuCtxDisablePeerAccess(second), 705);
        REQUIRE_CODE(launch_multiply(nullptr, theirs, 1024, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
        // The other device still works.
        REQUIRE_CODE(cuCtxSetCurrent(second), 0);
        REQUIRE_CODE(cuMemsetD32_v2(theirs, 2, 1024), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimAccess, ManagedMemoryServesBothSidesInTurn) {
    in_own_process([] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 1024; ++i) as_pointer(managed)[i] = i;
            REQUIRE_CODE(launch_multiply(nullptr, managed, 1024, 3), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            for (int i = 0; i < 1024; ++i) REQUIRE_THAT(as_pointer(managed)[i] == 3 * i);
        }
    });
}

// A kernel that has ended without a synchronization: later code must not touch managed memory where 89 is 0.
void run_a_kernel_and_wait_for_nothing() {
    auto* gate = new Gate();
    REQUIRE_CODE(launch_hold(new_stream(), *gate), 0);
    wait_until(gate->begun);
    gate->released = 1;
    // Without the driver, only the kernel's last effect shows its end. Protection keys close the memory at once, page
    // protection when no work runs any more.
    if (std::strcmp(isthmus_sim_protection(), "pages") == 0) {
        while (isthmus_sim_live("gpu_work") != 0) {
        }
    }
}

TEST(SimAccess, ManagedMemoryIsClosedFromLaunchToSynchroniseWhereItIsNotConcurrent) {  // keeps A8, K6
    const auto touch_too_early = [] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        *as_pointer(managed) = 1;
        run_a_kernel_and_wait_for_nothing();
        *as_pointer(managed) = 2;  // although the kernel did not use it
        if (concurrent_managed()) std::_Exit(0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        std::_Exit(2);  // not reached
    };
    const char* machine = std::getenv("ISTHMUS_SIM");
    const bool guarded = machine && (std::strcmp(machine, "orin") == 0 || std::strcmp(machine, "rtx-wsl2") == 0);
    if (guarded) {
        in_own_process_faults(touch_too_early, "CONCURRENT_MANAGED_ACCESS is 0");
    } else {
        in_own_process(touch_too_early);
    }
}

TEST(SimAccess, SynchronisingGivesManagedMemoryBackAndAttachingToTheHostKeepsIt) {  // keeps K6
    in_own_process([] {
        open_device();
        Address global = 0, mine = 0;
        REQUIRE_CODE(cuMemAllocManaged(&global, 4096, 1), 0);
        REQUIRE_CODE(cuMemAllocManaged(&mine, 4096, 2), 0);  // attached to the host
        auto* gate = new Gate();
        Stream* stream = new_stream();
        REQUIRE_CODE(launch_hold(stream, *gate), 0);
        wait_until(gate->begun);
        *as_pointer(mine) = 5;  // while the kernel runs
        gate->released = 1;
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        *as_pointer(global) = 6;
        REQUIRE_THAT(*as_pointer(mine) == 5 && *as_pointer(global) == 6);
    });
}

TEST(SimAccess, MemoryAttachedToAStreamIsThatStreamsAlone) {  // keeps K6
    in_own_process([] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 2), 0);
        Stream* mine = new_stream();
        Stream* other = new_stream();
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, managed, 64, 4), 1);  // whole allocations only
        REQUIRE_CODE(cuStreamAttachMemAsync(nullptr, managed, 0, 4), 1);
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, managed, 0, 4), 0);
        REQUIRE_CODE(cuStreamSynchronize(mine), 0);
        *as_pointer(managed) = 4;
        REQUIRE_CODE(launch_multiply(mine, managed, 1, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(mine), 0);
        REQUIRE_THAT(*as_pointer(managed) == 8);
        REQUIRE_CODE(launch_multiply(other, managed, 1, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(other), concurrent_managed() ? 0 : 700);
    });
}

TEST(SimAccess, AGraphsNodesHaveTheMemoryThatIsAttachedToTheStreamOfItsLaunch) {  // keeps K6's ground
    in_own_process([] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 2), 0);
        Stream* captured = new_stream();
        Stream* mine = new_stream();
        Stream* other = new_stream();
        *as_pointer(managed) = 4;
        REQUIRE_CODE(cuStreamBeginCapture_v2(captured, 2), 0);  // relaxed: the kernel is loaded inside
        REQUIRE_CODE(launch_multiply(captured, managed, 1, 2), 0);
        GraphObject* graph = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(captured, &graph), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, managed, 0, 4), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, mine), 0);
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, managed, 0, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(mine), 0);
        REQUIRE_THAT(*as_pointer(managed) == 8);
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, managed, 0, 4), 0);
        REQUIRE_CODE(cuStreamSynchronize(mine), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, other), 0);
        REQUIRE_CODE(cuStreamSynchronize(other), concurrent_managed() ? 0 : 700);
    });
}

TEST(SimAccess, MemoryOfTheHostIsNotTheGpusWhereManagedIsNotConcurrent) {
    in_own_process([] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 2), 0);
        REQUIRE_CODE(launch_multiply(nullptr, managed, 1, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), concurrent_managed() ? 0 : 700);
    });
}

TEST(SimAccess, WriteCombinedMemoryIsReachedByTheDeviceAddressOnly) {  // keeps K23's ground
    in_own_process([] {
        open_device();
        void* pointer = nullptr;
        Address address = 0;
        REQUIRE_CODE(cuMemHostAlloc(&pointer, 4096, 4), 0);
        REQUIRE_CODE(cuMemHostGetDevicePointer_v2(&address, pointer, 0), 0);
        REQUIRE_THAT(address != reinterpret_cast<Address>(pointer));
        static_cast<int*>(pointer)[3] = 11;
        REQUIRE_CODE(launch_multiply(nullptr, address, 1024, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(static_cast<int*>(pointer)[3] == 22);
        REQUIRE_CODE(cuMemFreeHost(pointer), 0);
    });
}

TEST(SimAccess, GraphReplayIsCheckedLikeALaunch) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(4096);
        GraphObject* graph = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuMemsetD32Async(memory, 1, 1024, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 1), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        int back[1024];
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back, memory, 4096, stream), 0);
        REQUIRE_THAT(back[0] == 9 && back[1023] == 9);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

// keeps M2: memory that a program keeps for its next allocation
TEST(SimAccess, OnlyWhatIsLentOfAnAllocationMayBeAccessed) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(4096);
        const Address other = device_memory(4096);
        isthmus_sim_reset_counts();
        isthmus_sim_lend(memory, 1000, nullptr);
        REQUIRE_THAT(isthmus_sim_call_count(nullptr) == 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory, other, 1000), 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory, other, 1001), 1);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 1000, other, 1), 1);
        isthmus_sim_lend(memory, 0, nullptr);
        REQUIRE_CODE(cuMemcpyDtoD_v2(other, memory, 1), 1);
        isthmus_sim_lend(memory, 4096, nullptr);
        REQUIRE_CODE(cuMemcpyDtoD_v2(other, memory, 4096), 0);
        isthmus_sim_lend(memory, 0, nullptr);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_CODE(cuMemFree_v2(other), 0);
        isthmus_sim_lend(memory, 1, nullptr);  // of nothing
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
        auto* const values = static_cast<volatile int*>(pinned);
        values[0] = 7;
        isthmus_sim_lend(reinterpret_cast<Address>(pinned), 0, nullptr);
        isthmus_sim_lend(reinterpret_cast<Address>(pinned), 16, nullptr);
        REQUIRE_THAT(values[0] == 7);
        isthmus_sim_lend(reinterpret_cast<Address>(pinned), 0, nullptr);
        REQUIRE_CODE(cuMemFreeHost(pinned), 0);
    });
}

// keeps M2: small allocations of a program share one of the driver
TEST(SimAccess, OfADividedAllocationEachPartHasItsOwnBounds) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(4096);
        const Address other = device_memory(4096);
        isthmus_sim_lend_part(memory, 4096, 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(other, memory, 1), 1);
        isthmus_sim_reset_counts();
        isthmus_sim_lend_part(memory, 256, 64);
        isthmus_sim_lend_part(memory + 512, 256, 256);
        REQUIRE_THAT(isthmus_sim_call_count(nullptr) == 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory, other, 64), 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory, other, 65), 1);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 32, other, 32), 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 32, other, 33), 1);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 256, other, 1), 1);  // of no part
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 512, other, 256), 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 512, other, 257), 1);
        isthmus_sim_lend_part(memory, 256, 0);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory, other, 1), 1);
        REQUIRE_CODE(cuMemcpyDtoD_v2(memory + 512, other, 256), 0);
        REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(memory + 512)), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        isthmus_sim_lend_part(memory, 256, 1);  // of nothing
    });
}

// keeps M2, M3: in the order of a stream, whose work so far may still use it
TEST(SimAccess, WhatIsLentMayChangeInTheOrderOfAStream) {
    in_own_process([] {
        open_device();
        Stream* stream = nullptr;
        REQUIRE_CODE(cuStreamCreate(&stream, 1), 0);
        Address memory = 0;
        REQUIRE_CODE(cuMemAllocAsync(&memory, 4096, stream), 0);
        const Address other = device_memory(4096);
        for (int round = 0; round < 20; ++round) {
            REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(memory)), 0);
            isthmus_sim_lend(memory, 0, stream);
            REQUIRE_CODE(cuMemcpyDtoDAsync_v2(other, memory, 1, stream), 1);  // in the program's order it is released
            isthmus_sim_lend(memory, 100, stream);
            REQUIRE_CODE(cuMemcpyDtoDAsync_v2(other, memory, 100, stream), 0);
            REQUIRE_CODE(cuMemcpyDtoDAsync_v2(other, memory, 101, stream), 1);
        }
        // Another stream may use it at once, and is ordered behind the work before the release only.
        Stream* second = nullptr;
        REQUIRE_CODE(cuStreamCreate(&second, 1), 0);
        isthmus_sim_lend(memory, 0, stream);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(other)), 0);
        isthmus_sim_lend(memory, 100, stream);
        REQUIRE_CODE(launch_wild_store(second, reinterpret_cast<void*>(memory)), 0);
        REQUIRE_CODE(cuStreamSynchronize(second), 0);
        isthmus_sim_lend(memory, 0, stream);
        isthmus_sim_lend(memory, 4096, nullptr);  // overtakes it
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuMemcpyDtoDAsync_v2(other, memory, 4096, stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
    in_own_process(
        [] {
            open_device();
            Stream* stream = nullptr;
            REQUIRE_CODE(cuStreamCreate(&stream, 1), 0);
            Address memory = 0;
            REQUIRE_CODE(cuMemAllocAsync(&memory, 4096, stream), 0);
            isthmus_sim_lend(memory, 0, stream);
            if (std::strcmp(isthmus_sim_protection(), "off") == 0) {  // nothing is closed
                std::fputs("kernel test_wild_store touched", stderr);
                return;
            }
            REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(memory)), 0);
            REQUIRE_CODE(cuStreamSynchronize(stream), 700);
        },
        "kernel test_wild_store touched");
}

// keeps M2
TEST(SimAccess, TheCpuCannotTouchMemoryThatIsNotLent) {
    in_own_process_faults(
        [] {
            open_device();
            void* pinned = nullptr;
            REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
            isthmus_sim_lend(reinterpret_cast<Address>(pinned), 0, nullptr);
            if (std::strcmp(isthmus_sim_protection(), "off") == 0) {  // nothing is closed to the CPU
                std::fputs("memory that was released", stderr);
                std::raise(SIGSEGV);
            }
            *static_cast<volatile int*>(pinned) = 1;
        },
        "memory that was released");
}

// keeps M2: where the kernel gets the address from other memory, only page protection sees it
TEST(SimAccess, AKernelCannotTouchMemoryThatIsNotLent) {
    for (const int kind : {0, 1, 2}) {
        const auto memory_of_kind = [kind] {
            Address memory = 0;
            void* pinned = nullptr;
            if (kind == 0) memory = device_memory(4096);
            if (kind == 1) REQUIRE_CODE(cuMemAllocManaged(&memory, 4096, 1), 0);
            if (kind == 2) REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 0), 0);
            return pinned ? reinterpret_cast<Address>(pinned) : memory;
        };
        in_own_process([=] {
            open_device();
            const Address memory = memory_of_kind();
            isthmus_sim_lend(memory, 0, nullptr);
            isthmus_sim_lend(memory, 16, nullptr);
            REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(memory)), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
        });
        in_own_process(
            [=] {
                open_device();
                const Address memory = memory_of_kind();
                isthmus_sim_lend(memory, 0, nullptr);
                if (std::strcmp(isthmus_sim_protection(), "off") == 0) {  // nothing is closed
                    std::fputs("kernel test_wild_store touched", stderr);
                    return;
                }
                REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(memory)), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 700);
            },
            "kernel test_wild_store touched");
    }
}

}  // namespace
}  // namespace isthmus::sim::test
