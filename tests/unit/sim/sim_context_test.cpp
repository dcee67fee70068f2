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

// Observed (580, H100).
TEST(SimContext, EachHasALegacyStreamOfItsOwnAndWaitsForItsOwnWork) {
    in_own_process([] {
        Gate gate;
        Context* const first = open_device();
        REQUIRE_CODE(launch_hold(nullptr, gate), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 600);
        Context* second = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&second, 0, 0), 0);
        Stream* const blocking = new_stream(0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        const Address memory = device_memory(4096);
        REQUIRE_CODE(cuMemsetD8Async(memory, 1, 4096, blocking), 0);
        REQUIRE_CODE(cuMemsetD8Async(memory, 2, 4096, nullptr), 0);
        REQUIRE_CODE(cuStreamSynchronize(blocking), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuCtxSetCurrent(first), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 600);
        gate.released = 1;
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 0);
        REQUIRE_CODE(cuCtxDestroy_v2(second), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// Within one context nothing changed: its blocking streams and its legacy stream wait for each other.
TEST(SimContext, ACreatedContextsLegacyStreamIsOrderedWithItsBlockingStreams) {
    in_own_process([] {
        Gate gate;
        Context* context = nullptr;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuCtxCreate_v2(&context, 0, 0), 0);
        Stream* const blocking = new_stream(0);
        Event* const event = new_event();
        const Address memory = device_memory(4096);
        REQUIRE_CODE(launch_hold(blocking, gate), 0);
        REQUIRE_CODE(cuMemsetD8Async(memory, 2, 4096, nullptr), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 600);
        REQUIRE_CODE(cuCtxRecordEvent(context, event), 0);
        REQUIRE_CODE(cuEventQuery(event), 600);
        gate.released = 1;
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuEventQuery(event), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 0);
        // A capture of one context does not keep another from its legacy stream.
        REQUIRE_CODE(cuStreamBeginCapture_v2(blocking, 2), 0);
        open_device();
        REQUIRE_CODE(cuMemsetD8Async(device_memory(4096), 2, 4096, nullptr), 0);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_CODE(cuMemsetD8Async(memory, 2, 4096, nullptr), 906);
    });
}

// Observed (580, H100).
TEST(SimContext, FunctionsOfAModuleRunInStreamsOfItsContextOnly) {
    in_own_process([] {
        const char* const text = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
        const auto launch = [](Function* function, Stream* stream) {
            return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
        };
        Context* const first = open_device();
        Stream* const own = new_stream();
        Context* second = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&second, 0, 0), 0);
        Stream* const theirs = new_stream();
        Module *module = nullptr, *library = nullptr;
        Function *function = nullptr, *kernel = nullptr;
        REQUIRE_CODE(cuModuleLoadData(&module, text), 0);
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "k"), 0);
        REQUIRE_CODE(launch(function, theirs), 0);
        REQUIRE_CODE(launch(function, nullptr), 0);
        REQUIRE_CODE(launch(function, own), 400);
        REQUIRE_CODE(cuCtxSetCurrent(first), 0);
        REQUIRE_CODE(launch(function, own), 400);
        REQUIRE_CODE(launch(function, nullptr), 400);
        REQUIRE_CODE(launch(function, theirs), 0);  // whatever context is current
        REQUIRE_CODE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuLibraryGetKernel(&kernel, library, "k"), 0);
        REQUIRE_CODE(launch(kernel, own), 0);
        REQUIRE_CODE(launch(kernel, theirs), 0);
        REQUIRE_CODE(cuStreamSynchronize(own), 0);
        REQUIRE_CODE(cuStreamSynchronize(theirs), 0);
    });
}

// Observed (580, H100): 4224 blocks of a thread and none more; 132 with 200 KiB each.
TEST(SimContext, CooperativeGridsAreAsLargeAsTheMultiprocessorsHold) {
    in_own_process([] {
        open_device();
        Module* module = nullptr;
        Function* function = nullptr;
        const char* const text = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
        REQUIRE_CODE(cuModuleLoadData(&module, text), 0);
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "k"), 0);
        constexpr int cooperative_launch = 95;
        if (fact(cooperative_launch) == 0) return;
        const int most_shared = fact(attribute::max_shared_optin);
        REQUIRE_CODE(cuFuncSetAttribute(function, 8, most_shared), 0);
        const auto launch = [&](unsigned blocks, unsigned threads, int shared) {
            return cuLaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, static_cast<unsigned>(shared),
                                             nullptr, nullptr);
        };
        for (const unsigned threads : {1u, 33u, 128u, 1024u}) {
            for (const int shared : {0, 16 << 10, most_shared}) {
                int held = 0;
                REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&held, function, static_cast<int>(threads),
                                                                         static_cast<std::size_t>(shared)),
                             0);
                REQUIRE_THAT(held > 0 && held <= 32 && (shared != most_shared || held == 1));
                const auto all = static_cast<unsigned>(fact(attribute::multiprocessors) * held);
                REQUIRE_CODE(launch(all, threads, shared), 0);
                REQUIRE_CODE(launch(all + 1, threads, shared), 720);
            }
        }
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// Observed (580, H100).
TEST(SimContext, FlagsNameOneWayToWaitAndNoUnknownBit) {
    in_own_process([] {
        REQUIRE_CODE(cuInit(0), 0);
        for (const unsigned flags : {0u, 1u, 2u, 4u, 8u, 0x10u, 0x20u, 0x40u, 0x80u, 0x100u, 3u, 5u, 6u, 7u, 0xffu}) {
            const bool waits_once = (flags & 7) == 0 || (flags & 7) == 1 || (flags & 7) == 2 || (flags & 7) == 4;
            const Result expected = waits_once && flags < 0x100 ? 0 : 1;
            Context* context = nullptr;
            REQUIRE_CODE(cuCtxCreate_v2(&context, flags, 0), expected);
            if (expected == 0) REQUIRE_CODE(cuCtxDestroy_v2(context), 0);
            REQUIRE_CODE(cuDevicePrimaryCtxSetFlags_v2(0, flags), (flags & 8) != 0 ? 1 : expected);
            REQUIRE_CODE(cuDevicePrimaryCtxSetFlags_v2(0, 0), 0);
            open_device();
            REQUIRE_CODE(cuCtxSetFlags(flags), expected);
        }
    });
}

}  // namespace
}  // namespace isthmus::sim::test
