// SPDX-License-Identifier: Apache-2.0
// Contexts that are created and destroyed: what dies with them, what survives, and the answers afterwards.
#include "sim_test.hpp"

#include <thread>
#include <vector>

namespace isthmus::sim::test {
namespace {

enum class End { reset, release, destroy };

// A context with one object of each type in it.
struct Life {
    Context* context = nullptr;
    Address device = 0, managed = 0, pooled = 0;
    void* pinned = nullptr;
    std::vector<char> registered = std::vector<char>(65536);
    Stream* stream = nullptr;
    Event* event = nullptr;
};

void live(Life& life, bool created) {
    if (created) {
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuCtxCreate_v2(&life.context, 0, 0), 0);
    } else {
        life.context = open_device();
    }
    life.stream = new_stream();
    life.event = new_event();
    REQUIRE_CODE(cuMemAlloc_v2(&life.device, 4096), 0);
    REQUIRE_CODE(cuMemAllocManaged(&life.managed, 4096, 1), 0);
    REQUIRE_CODE(cuMemHostAlloc(&life.pinned, 4096, 0), 0);
    REQUIRE_CODE(cuMemHostRegister_v2(life.registered.data(), life.registered.size(), 0), 0);
    if (pools()) life.pooled = pool_memory(4096, life.stream);
    REQUIRE_CODE(cuEventRecord(life.event, life.stream), 0);
    REQUIRE_CODE(launch_multiply(life.stream, life.device, 64, 1), 0);
}

void die(const Life& life, End end) {
    switch (end) {
        case End::reset: REQUIRE_CODE(cuDevicePrimaryCtxReset_v2(0), 0); break;
        case End::release: REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0); break;
        case End::destroy: REQUIRE_CODE(cuCtxDestroy_v2(life.context), 0); break;
    }
}

TEST(SimContext, EverythingOfADeadContextIsGoneButPoolMemory) {  // keeps K11's ground
    for (const End end : {End::reset, End::release, End::destroy}) {
        in_own_process([end] {
            Life life;
            live(life, end == End::destroy);
            const std::int64_t pooled = isthmus_sim_live("pool");
            die(life, end);
            REQUIRE_THAT(isthmus_sim_live("allocations") == pooled && isthmus_sim_live("streams") == 0);
            REQUIRE_THAT(isthmus_sim_live("events") == 0 && isthmus_sim_live("modules") == 0);
            open_device();
            REQUIRE_CODE(cuMemFree_v2(life.device), 1);
            REQUIRE_CODE(cuMemFree_v2(life.managed), 1);
            REQUIRE_CODE(cuMemFreeHost(life.pinned), 1);
            REQUIRE_CODE(cuMemHostUnregister(life.registered.data()), 713);
            if (pools()) {
                Context* owner = life.context;
                REQUIRE_CODE(cuPointerGetAttribute(&owner, 1, life.pooled), 0);
                REQUIRE_THAT(owner == nullptr);
                REQUIRE_CODE(cuMemFreeAsync(life.pooled, nullptr), 0);
            }
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            REQUIRE_THAT(isthmus_sim_live("allocations") == 0);
        });
    }
}

TEST(SimContext, HandlesThatWentWithTheirContextSaySo) {
    for (const End end : {End::reset, End::release, End::destroy}) {
        in_own_process([end] {
            Life life;
            live(life, end == End::destroy);
            die(life, end);
            open_device();
            REQUIRE_CODE(cuStreamSynchronize(life.stream), 709);
            REQUIRE_CODE(cuStreamDestroy_v2(life.stream), 709);
            REQUIRE_CODE(cuEventQuery(life.event), 709);
            REQUIRE_CODE(cuEventDestroy_v2(life.event), 709);
            REQUIRE_CODE(launch_multiply(nullptr, life.device, 1, 1), 709);  // its module was unloaded, too
            REQUIRE_CODE(cuStreamSynchronize(new_stream()), 0);
        });
    }
}

TEST(SimContext, ADeadContextStaysCurrentAndNearlyEveryCallSaysSo) {
    in_own_process([] {
        Life life;
        live(life, false);
        Context* other = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&other, 0, 0), 0);
        Stream* elsewhere = new_stream();
        Context* popped = nullptr;
        REQUIRE_CODE(cuCtxPopCurrent_v2(&popped), 0);
        REQUIRE_THAT(popped == other);
        die(life, End::release);
        Address address = 0;
        unsigned long long id = 0;
        Context* current = nullptr;
        REQUIRE_CODE(cuCtxGetCurrent(&current), 0);
        REQUIRE_THAT(current == life.context);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 709);
        REQUIRE_CODE(cuCtxSynchronize(), 709);
        REQUIRE_CODE(cuStreamQuery(elsewhere), 709);
        REQUIRE_CODE(cuCtxGetId(other, &id), 709);
        int value = 0;
        REQUIRE_CODE(cuDeviceGetAttribute(&value, 18, 0), 0);
        REQUIRE_CODE(cuCtxPushCurrent_v2(life.context), 709);
        REQUIRE_CODE(cuCtxPushCurrent_v2(other), 0);
        REQUIRE_CODE(cuCtxGetId(other, &id), 0);
        REQUIRE_CODE(cuCtxGetId(life.context, &id), 709);
        REQUIRE_CODE(cuStreamSynchronize(elsewhere), 0);
        REQUIRE_CODE(cuCtxPopCurrent_v2(nullptr), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 709);
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 201);
    });
}

TEST(SimContext, OtherThreadsMeetTheDeathToo) {
    in_own_process([] {
        Life life;
        live(life, true);
        std::atomic<int> step{0};
        std::thread other([&] {
            REQUIRE_CODE(cuCtxSetCurrent(life.context), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            step = 1;
            while (step != 2) std::this_thread::yield();
            REQUIRE_CODE(cuCtxSynchronize(), 709);
        });
        wait_until(step);
        die(life, End::destroy);
        Context* next = nullptr;  // may have the same handle, and is another context all the same
        REQUIRE_CODE(cuCtxCreate_v2(&next, 0, 0), 0);
        step = 2;
        other.join();
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimContext, ARevivedPrimaryContextHasItsHandleAndAnotherId) {
    in_own_process([] {
        Life life;
        live(life, false);
        unsigned long long before = 0, after = 0;
        REQUIRE_CODE(cuCtxGetId(life.context, &before), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxReset_v2(0), 0);
        Context* again = nullptr;
        REQUIRE_CODE(cuDevicePrimaryCtxRetain(&again, 0), 0);
        REQUIRE_CODE(cuCtxGetId(nullptr, &after), 0);  // it is still current
        REQUIRE_THAT(again == life.context && after != before);
        // The first reference outlived the reset.
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        REQUIRE_THAT(isthmus_sim_live("contexts") == 1);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        REQUIRE_THAT(isthmus_sim_live("contexts") == 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 201);
    });
}

TEST(SimContext, ThePrimaryContextIsActiveWhileItIsRetained) {
    in_own_process([] {
        unsigned flags = 9;
        int active = 9;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 0 && isthmus_sim_live("contexts") == 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 201);
        REQUIRE_CODE(cuDevicePrimaryCtxReset_v2(0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxSetFlags_v2(0, 4), 0);
        Context* context = nullptr;
        REQUIRE_CODE(cuDevicePrimaryCtxRetain(&context, 0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRetain(&context, 0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 1 && flags == 4 && isthmus_sim_live("contexts") == 1);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 0);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, nullptr, &active), 1);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(90, &flags, &active), 101);
        REQUIRE_CODE(cuCtxDestroy_v2(context), 709);
    });
}

TEST(SimContext, APrimaryContextIsNotDestroyedAndAForeignHandleIsNone) {
    in_own_process([] {
        Context* context = open_device();
        REQUIRE_CODE(cuCtxDestroy_v2(context), 201);
        REQUIRE_CODE(cuCtxSetCurrent(reinterpret_cast<Context*>(&context)), 201);
        Context* mine = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&mine, 0, 0), 0);
        REQUIRE_CODE(cuCtxDestroy_v2(mine), 0);
        Context* current = nullptr;
        REQUIRE_CODE(cuCtxGetCurrent(&current), 0);
        REQUIRE_THAT(current == context);  // destroying popped it
        REQUIRE_CODE(cuCtxDestroy_v2(mine), 709);
        REQUIRE_CODE(cuCtxSetCurrent(mine), 709);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
