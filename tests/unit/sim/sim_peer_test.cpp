// SPDX-License-Identifier: Apache-2.0
// Two devices: the attributes of the path between them, and what kernels, fills and copies may do across it.
#include "sim_test.hpp"

#include <vector>

namespace isthmus::sim::test {
namespace {

// The contexts of two devices, the first's current; nothing where the machine has one device.
struct Pair {
    Context* mine = nullptr;
    Context* theirs = nullptr;
    Address memory = 0;  // 4 KiB of the other device, filled with 3
    bool linked = false;
};

bool open_pair(Pair& pair) {
    int devices = 0, can = 0;
    REQUIRE_CODE(cuInit(0), 0);
    REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
    if (devices < 2) return false;
    REQUIRE_CODE(cuDeviceCanAccessPeer(&can, 0, 1), 0);
    pair.linked = can != 0;
    pair.theirs = open_device(1);
    pair.memory = device_memory(4096);
    REQUIRE_CODE(cuMemsetD32_v2(pair.memory, 3, 1024), 0);
    REQUIRE_CODE(cuCtxSynchronize(), 0);
    pair.mine = open_device(0);
    return true;
}

TEST(SimPeer, TheWayBetweenDevicesIsAskedPerDirectionAndNeverOfADeviceItself) {  // keeps A15
    in_own_process([] {
        Pair pair;
        int value = 9;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetP2PAttribute(&value, 2, 0, 0), 101);
        REQUIRE_CODE(cuDeviceCanAccessPeer(&value, 0, 0), 0);
        REQUIRE_THAT(value == 0);
        REQUIRE_CODE(cuDeviceCanAccessPeer(&value, 0, 50), 101);
        if (!open_pair(pair)) return;
        for (const int id : {2, 4}) {
            REQUIRE_CODE(cuDeviceGetP2PAttribute(&value, id, 0, 1), 0);
            REQUIRE_THAT((value != 0) == pair.linked);
        }
        REQUIRE_CODE(cuDeviceGetP2PAttribute(&value, 77, 0, 1), 1);
        REQUIRE_CODE(cuDeviceGetP2PAttribute(nullptr, 2, 0, 1), 1);
    });
}

TEST(SimPeer, EnablingAndDisablingAnswerWhatIsSoAlready) {
    in_own_process([] {
        Pair pair;
        if (!open_pair(pair)) return;
        REQUIRE_CODE(cuCtxEnablePeerAccess(pair.theirs, 1), 1);
        REQUIRE_CODE(cuCtxEnablePeerAccess(pair.mine, 0), 201);
        REQUIRE_CODE(cuCtxDisablePeerAccess(pair.theirs), 705);
        REQUIRE_CODE(cuCtxEnablePeerAccess(pair.theirs, 0), pair.linked ? 0 : 217);
        if (!pair.linked) return;
        REQUIRE_CODE(cuCtxEnablePeerAccess(pair.theirs, 0), 704);
        REQUIRE_CODE(cuCtxDisablePeerAccess(pair.theirs), 0);
        REQUIRE_CODE(cuCtxDisablePeerAccess(pair.theirs), 705);
    });
}

TEST(SimPeer, EventsOfTwoDevicesHaveNoTimeBetweenThem) {
    in_own_process([] {
        Pair pair;
        if (!open_pair(pair)) return;
        Event *mine = nullptr, *again = nullptr, *theirs = nullptr;
        float milliseconds = 0;
        REQUIRE_CODE(cuEventCreate(&mine, 0), 0);
        REQUIRE_CODE(cuEventCreate(&again, 0), 0);
        REQUIRE_CODE(cuEventRecord(mine, nullptr), 0);
        REQUIRE_CODE(cuEventRecord(again, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuCtxSetCurrent(pair.theirs), 0);
        REQUIRE_CODE(cuEventCreate(&theirs, 0), 0);
        REQUIRE_CODE(cuEventRecord(theirs, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, mine, theirs), 400);
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, mine, again), 0);
    });
}

TEST(SimPeer, AFillOfAnotherDevicesMemoryNeedsPeerAccess) {  // keeps A4
    in_own_process([] {
        Pair pair;
        if (!open_pair(pair) || !pair.linked) return;
        Stream* stream = new_stream();
        REQUIRE_CODE(cuCtxEnablePeerAccess(pair.theirs, 0), 0);
        REQUIRE_CODE(cuMemsetD32Async(pair.memory, 4, 1024, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuCtxDisablePeerAccess(pair.theirs), 0);
        REQUIRE_CODE(cuMemsetD32Async(pair.memory, 4, 1024, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

TEST(SimPeer, CopiesBetweenDevicesNeedNoAccess) {  // keeps K22's ground
    in_own_process([] {
        Pair pair;
        if (!open_pair(pair)) return;
        Stream* stream = new_stream();
        const Address near = device_memory(4096);
        std::vector<int> back(1024);
        REQUIRE_CODE(cuMemcpyAsync(near, pair.memory, 4096, stream), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back.data(), near, 4096, stream), 0);
        REQUIRE_THAT(back[0] == 3 && back[1023] == 3);
        REQUIRE_CODE(cuMemsetD32Async(near, 8, 1024, stream), 0);
        REQUIRE_CODE(cuMemcpyPeerAsync(pair.memory, pair.theirs, near, pair.mine, 4096, stream), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back.data(), pair.memory, 4096, stream), 0);
        REQUIRE_THAT(back[0] == 8 && back[1023] == 8);
        REQUIRE_CODE(cuMemcpyPeerAsync(pair.memory, nullptr, near, pair.mine, 4096, stream), 201);
        REQUIRE_CODE(cuMemcpyPeer(pair.memory, pair.theirs, near, pair.mine, 4097), 1);
        REQUIRE_CODE(cuMemcpyPeer(near, pair.mine, pair.memory, pair.theirs, 4096), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
}

TEST(SimPeer, PoolMemoryIsCopiedByPeerCopiesOrWithThePoolsAccess) {  // keeps A5
    in_own_process(
        [] {
            Pair pair;
            if (!open_pair(pair)) {
                std::fprintf(stderr, "gives this device no access\n");
                return;
            }
            REQUIRE_CODE(cuCtxSetCurrent(pair.theirs), 0);
            const Address pooled = pool_memory(4096, nullptr);
            REQUIRE_CODE(cuMemsetD32_v2(pooled, 6, 1024), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            REQUIRE_CODE(cuCtxSetCurrent(pair.mine), 0);
            Stream* stream = new_stream();
            const Address near = device_memory(4096);
            int back = 0;
            REQUIRE_CODE(cuMemcpyPeerAsync(near, pair.mine, pooled, pair.theirs, 4096, stream), 0);
            REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&back, near, 4, stream), 0);
            REQUIRE_THAT(back == 6);
            if (pair.linked) {
                Pool* pool = nullptr;
                AccessDescription give = {{1, 0}, 1};  // read access is enough
                REQUIRE_CODE(cuDeviceGetDefaultMemPool(&pool, 1), 0);
                REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
                REQUIRE_CODE(cuMemcpyAsync(near, pooled, 4096, stream), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                give.flags = 0;
                REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
            }
            REQUIRE_CODE(cuMemcpyAsync(near, pooled, 4096, stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(stream), 700);
        },
        "gives this device no access");
}

TEST(SimPeer, ManagedAndPinnedMemoryNeedNoPeerAccess) {  // keeps A7
    in_own_process([] {
        Pair pair;
        if (!open_pair(pair)) return;
        Address managed = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuCtxSetCurrent(pair.theirs), 0);
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 4096, 1), 0);
        REQUIRE_CODE(cuCtxSetCurrent(pair.mine), 0);
        REQUIRE_CODE(launch_multiply(nullptr, managed, 1024, 2), 0);
        REQUIRE_CODE(launch_multiply(nullptr, reinterpret_cast<Address>(pinned), 1024, 2), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
