// SPDX-License-Identifier: Apache-2.0
// Planned faults, exact counts, the ledger of live objects, and the seeded mode.
#include "sim_test.hpp"

#include <cstring>
#include <string>

namespace isthmus::sim::test {
namespace {

TEST(SimFaults, TheNthCallOfAFunctionFailsOnceAndDoesNothing) {  // keeps R6's ground
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_FAULTS", "call=cuMemAlloc_v2:n=3:code=2", 1);
        open_device();
        Address address = 0;
        for (int i = 1; i <= 5; ++i) REQUIRE_CODE(cuMemAlloc_v2(&address, 64), i == 3 ? 2 : 0);
        REQUIRE_THAT(isthmus_sim_live("device") == 4);
    });
}

TEST(SimFaults, ANameWithoutVersionAndPersistenceAreUnderstood) {
    in_own_process([] {
        open_device();
        Address address = 0;
        REQUIRE_CODE(isthmus_sim_fault_plan("call=cuMemAlloc:n=2:code=304:persistent;call=cuCtxGetDevice:code=46"), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 304);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 304);
        int device = 0;
        REQUIRE_CODE(cuCtxGetDevice(&device), 46);
        REQUIRE_CODE(isthmus_sim_fault_plan(nullptr), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 0);
    });
}

TEST(SimFaults, FaultsDrawnFromOneSeedAreTheSame) {
    in_own_process([] {
        open_device();
        std::string first, again, other;
        for (std::string* const drawn : {&first, &again, &other}) {
            const std::string seed = drawn == &other ? "2" : "1";
            REQUIRE_CODE(isthmus_sim_fault_plan(("call=cuCtxGetDevice:one_in=4:seed=" + seed + ":code=999").c_str()),
                         0);
            for (int call = 0; call < 400; ++call) {
                int device = 0;
                drawn->push_back(cuCtxGetDevice(&device) == 999 ? 'x' : '.');
            }
        }
        REQUIRE_THAT(first == again);
        REQUIRE_THAT(first != other);
        long failed = 0;
        for (const char one : first) failed += one == 'x';
        REQUIRE_THAT(failed > 50 && failed < 150);
    });
}

TEST(SimFaults, AStickyFaultLosesTheDevice) {  // keeps R2's ground
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        REQUIRE_CODE(isthmus_sim_fault_plan("nth=2:code=700:sticky"), 0);
        unsigned type = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, memory), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, memory), 700);
        REQUIRE_CODE(cuMemFree_v2(memory), 700);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
}

TEST(SimFaults, ADelayedCallWorks) {
    in_own_process([] {
        open_device();
        REQUIRE_CODE(isthmus_sim_fault_plan("call=cuMemAlloc_v2:delay_ms=2"), 0);
        REQUIRE_CODE(cuMemFree_v2(device_memory(64)), 0);
    });
}

TEST(SimFaults, PlansThatAreNotUnderstoodChangeNothing) {
    in_own_process(
        [] {
            open_device();
            for (const char* plan : {"call=cuInit", "n=0:code=2", "code=x", "once:code=2", "call=:code=1"}) {
                REQUIRE_CODE(isthmus_sim_fault_plan(plan), 1);
            }
            REQUIRE_CODE(isthmus_sim_fault_plan("call=cuMemAlloc:code=2"), 0);
            REQUIRE_CODE(isthmus_sim_fault_plan("nonsense"), 1);
            Address address = 0;
            REQUIRE_CODE(cuMemAlloc_v2(&address, 64), 2);
        },
        "not understood: 'nonsense'");
}

TEST(SimFaults, CallsAreCountedExactlyAndTheSimulatorsOwnWorkIsNot) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(64);
        REQUIRE_CODE(launch_multiply(stream, memory, 4, 1), 0);
        isthmus_sim_reset_counts();
        for (int i = 0; i < 10; ++i) REQUIRE_CODE(launch_multiply(stream, memory, 4, 1), 0);
        REQUIRE_THAT(isthmus_sim_call_count(nullptr) == 10 && isthmus_sim_call_count("cuLaunchKernel") == 10);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(isthmus_sim_call_count(nullptr) == 11 && isthmus_sim_call_count("cuMemAlloc") == 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_THAT(isthmus_sim_call_count("cuMemFree") == 1 && isthmus_sim_call_count("cuMemFree_v2") == 1);
    });
}

TEST(SimFaults, TheLedgerKnowsWhatIsAlive) {
    in_own_process([] {
        REQUIRE_THAT(isthmus_sim_live("streams") == 0 && isthmus_sim_live("nonsense") == -1);
        open_device();
        Stream* stream = new_stream();
        Event* event = new_event();
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 64, 0), 0);
        REQUIRE_THAT(isthmus_sim_live("contexts") == 1 && isthmus_sim_live("streams") == 1);
        REQUIRE_THAT(isthmus_sim_live("events") == 1 && isthmus_sim_live("pinned") == 1);
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
        REQUIRE_CODE(cuEventDestroy_v2(event), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        for (const char* what : {"contexts", "streams", "events", "allocations", "gpu_work"}) {
            REQUIRE_THAT(isthmus_sim_live(what) == 0);
        }
    });
}

TEST(SimFaults, SeededWorkProgressesInsideDriverCallsOnly) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
        ::setenv("ISTHMUS_SIM_SEED", "42", 1);
        open_device();
        Stream* stream = new_stream();
        Address managed = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 400, 0), 0);
        managed = device_memory(400);
        REQUIRE_CODE(cuMemsetD32Async(managed, 4, 100, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, managed, 100, 3), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(pinned, managed, 400, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(static_cast<int*>(pinned)[0] == 12 && static_cast<int*>(pinned)[99] == 12);
        REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(64)), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
