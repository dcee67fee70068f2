// SPDX-License-Identifier: Apache-2.0
// Default streams of threads: CU_STREAM_PER_THREAD, and the functions for which the stream 0 is the thread's own.
#include "sim_test.hpp"

#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::sim::test {
namespace {

Stream* const of_thread = reinterpret_cast<Stream*>(2);
Stream* const legacy = reinterpret_cast<Stream*>(1);

unsigned long long id_of(Stream* stream) {
    unsigned long long id = 0;
    REQUIRE_CODE(cuStreamGetId(stream, &id), 0);
    return id;
}

TEST(SimPerThread, EachThreadHasOneInEachContext) {  // keeps S4's ground
    in_own_process([] {
        Context* const context = open_device();
        const unsigned long long mine = id_of(of_thread);
        REQUIRE_THAT(id_of(of_thread) == mine && id_of(nullptr) != mine);
        std::thread([&] {
            REQUIRE_CODE(cuStreamSynchronize(of_thread), 201);
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_THAT(id_of(of_thread) != mine);
        }).join();
        Context* own = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&own, 0, 0), 0);
        const unsigned long long there = id_of(of_thread);
        REQUIRE_THAT(there != mine);
        Context* found = nullptr;
        REQUIRE_CODE(cuStreamGetCtx(of_thread, &found), 0);
        REQUIRE_THAT(found == own);
        REQUIRE_CODE(cuCtxDestroy_v2(own), 0);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_THAT(id_of(of_thread) == mine);
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuStreamQuery(of_thread), 201);
    });
}

TEST(SimPerThread, ItSaysWhatItIsAndCannotBeDestroyed) {
    in_own_process([] {
        open_device();
        unsigned flags = 9;
        int priority = 9, device = 9;
        REQUIRE_CODE(cuStreamGetFlags(of_thread, &flags), 0);
        REQUIRE_CODE(cuStreamGetPriority(of_thread, &priority), 0);
        REQUIRE_CODE(cuStreamGetDevice(of_thread, &device), 0);
        REQUIRE_THAT(flags == 0 && priority == 0 && device == 0);
        REQUIRE_CODE(cuStreamDestroy_v2(of_thread), 400);
        REQUIRE_THAT(isthmus_sim_live("streams") == 0);  // nobody has to destroy it
        LaunchAttributeValue value = {};
        REQUIRE_CODE(cuStreamGetAttribute(of_thread, 3, &value), 0);  // synchronisation policy
    });
}

TEST(SimPerThread, WorkOfOtherThreadsGoesOnAndTheLegacyStreamWaits) {  // keeps S4's ground
    in_own_process([] {
        Context* const context = open_device();
        const Address memory = device_memory(64);
        Gate gate;
        std::thread([&] {
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_CODE(launch_hold(of_thread, gate), 0);
            wait_until(gate.begun);
            REQUIRE_CODE(cuStreamQuery(of_thread), 600);
        }).join();  // its stream ends with it, its work does not
        REQUIRE_CODE(cuMemsetD32Async(memory, 5, 16, of_thread), 0);
        REQUIRE_CODE(cuStreamSynchronize(of_thread), 0);
        REQUIRE_CODE(cuStreamSynchronize(new_stream()), 0);
        REQUIRE_CODE(cuStreamQuery(nullptr), 0);
        Gate second;
        REQUIRE_CODE(launch_hold(of_thread, second), 0);
        wait_until(second.begun);
        REQUIRE_CODE(cuMemsetD32Async(memory, 6, 16, nullptr), 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // time for work that does not wait
        REQUIRE_CODE(cuStreamQuery(nullptr), 600);
        second.released = 1;
        gate.released = 1;
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        int value = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&value, memory, 4), 0);
        REQUIRE_THAT(value == 6);
    });
}

TEST(SimPerThread, TheVariantsTakeItForStreamZero) {  // keeps S4's ground
    in_own_process([] {
        Context* const context = open_device();
        unsigned long long id = 0;
        REQUIRE_CODE(cuStreamGetId_ptsz(nullptr, &id), 0);
        REQUIRE_THAT(id == id_of(of_thread));
        REQUIRE_CODE(cuStreamGetId_ptsz(legacy, &id), 0);
        REQUIRE_THAT(id == id_of(legacy));
        REQUIRE_THAT(id == id_of(nullptr));  // after a variant, 0 is the legacy stream again
        const Address memory = device_memory(64);
        Gate gate;
        // The legacy stream waits for another thread's; a copy in the own one does not.
        std::thread([&] {
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_CODE(launch_hold(of_thread, gate), 0);
            wait_until(gate.begun);
        }).join();
        const int given = 31;
        int got = 0;
        REQUIRE_CODE(cuMemcpyHtoD_v2_ptds(memory, &given, 4), 0);
        REQUIRE_CODE(cuMemcpyDtoH_v2_ptds(&got, memory, 4), 0);
        REQUIRE_THAT(got == given && gate.released == 0);
        gate.released = 1;
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimPerThread, TheLookupGivesVariantsWhereTheyAreAskedFor) {
    in_own_process([] {
        open_device();
        using Ask = Result (*)(Stream*, unsigned long long*);
        for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}}) {
            void* function = nullptr;
            int status = 9;
            REQUIRE_CODE(cuGetProcAddress_v2("cuStreamGetId", &function, 12000, flags, &status), 0);
            REQUIRE_THAT(function && status == 0);
            unsigned long long id = 0;
            REQUIRE_CODE(reinterpret_cast<Ask>(function)(nullptr, &id), 0);
            REQUIRE_THAT(id == id_of(flags == 2 ? of_thread : legacy));
        }
    });
}

TEST(SimPerThread, ACaptureBeginsInIt) {  // keeps S14's ground
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        REQUIRE_CODE(cuStreamBeginCapture_v2_ptsz(nullptr, 0), 0);
        REQUIRE_CODE(cuMemsetD32Async_ptsz(memory, 8, 16, nullptr), 0);
        int status = 9;
        REQUIRE_CODE(cuStreamIsCapturing(of_thread, &status), 0);
        REQUIRE_THAT(status == 1);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(of_thread, &graph), 0);
        std::size_t nodes = 0;
        REQUIRE_CODE(cuGraphGetNodes(graph, nullptr, &nodes), 0);
        REQUIRE_THAT(nodes == 1);
        REQUIRE_CODE(cuStreamBeginCapture_v2(nullptr, 0), 900);  // the legacy stream still cannot
    });
}

TEST(SimPerThread, APlannedFaultOfTheFunctionMeetsItsVariant) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        REQUIRE_CODE(isthmus_sim_fault_plan("call=cuMemsetD32Async:n=1:code=2"), 0);
        REQUIRE_CODE(cuMemsetD32Async_ptsz(memory, 1, 16, nullptr), 2);
        REQUIRE_CODE(cuMemsetD32Async_ptsz(memory, 1, 16, nullptr), 0);
        REQUIRE_THAT(isthmus_sim_call_count("cuMemsetD32Async") == 2);
    });
}

TEST(SimPerThread, EveryExportedFunctionHasItsVariant) {
    std::set<std::string> exported, variants;
#define ISTHMUS_SIM_EXPORT(symbol, parameters) exported.insert(#symbol);
#include <exports.def>
#undef ISTHMUS_SIM_EXPORT
#define ISTHMUS_SIM_PER_THREAD(symbol, function, parameters, arguments) variants.insert(#symbol);
#include <per_thread.def>
#undef ISTHMUS_SIM_PER_THREAD
    std::set<std::string> wanted;
    const auto name = [&](const std::string& symbol, bool per_thread) {
        if (!per_thread) return;
        const std::string function = symbol.substr(0, symbol.size() - std::strlen("_ptsz"));
        if (exported.count(function) != 0) wanted.insert(symbol);
    };
#define ISTHMUS_SIM_NAME(symbol, base, version, per_thread) name(#symbol, per_thread != 0);
#include <refused_names.def>
#undef ISTHMUS_SIM_NAME
    EXPECT_EQ(variants, wanted);
    EXPECT_GT(wanted.size(), 80u);
}

}  // namespace
}  // namespace isthmus::sim::test
