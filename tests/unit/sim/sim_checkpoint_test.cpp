// SPDX-License-Identifier: Apache-2.0
// Lock, checkpoint, restore and unlock of the own process. Codes as a driver 580 answers on an H100.
#include "sim_test.hpp"

#include <checkpoint.hpp>

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::sim::test {
namespace {

int state() {
    int value = -1;
    REQUIRE_CODE(cuCheckpointProcessGetState(::getpid(), &value), 0);
    return value;
}

TEST(SimCheckpoints, EachStepHasOneStateToBeginIn) {
    in_own_process([] {
        const int me = ::getpid();
        int value = -1;
        REQUIRE_CODE(cuCheckpointProcessGetState(me, &value), 3);
        open_device();
        REQUIRE_CODE(cuCheckpointProcessGetState(me, nullptr), 1);
        const auto refuse_all_but = [&](int lock, int checkpoint, int restore, int unlock, int then) {
            if (lock != 0) REQUIRE_CODE(cuCheckpointProcessLock(me, nullptr), lock);
            if (checkpoint != 0) REQUIRE_CODE(cuCheckpointProcessCheckpoint(me, nullptr), checkpoint);
            if (restore != 0) REQUIRE_CODE(cuCheckpointProcessRestore(me, nullptr), restore);
            if (unlock != 0) REQUIRE_CODE(cuCheckpointProcessUnlock(me, nullptr), unlock);
            REQUIRE_THAT(state() == then);
        };
        refuse_all_but(0, 401, 401, 401, 0);
        REQUIRE_CODE(cuCheckpointProcessLock(me, nullptr), 0);
        refuse_all_but(401, 0, 401, 0, 1);
        REQUIRE_CODE(cuCheckpointProcessCheckpoint(me, nullptr), 0);
        refuse_all_but(401, 401, 0, 401, 2);
        REQUIRE_CODE(cuCheckpointProcessRestore(me, nullptr), 0);
        REQUIRE_THAT(state() == 1);
        REQUIRE_CODE(cuCheckpointProcessUnlock(me, nullptr), 0);
        REQUIRE_THAT(state() == 0);
        REQUIRE_CODE(cuMemFree_v2(device_memory(64)), 0);
        REQUIRE_THAT(isthmus_sim_fault_plan("call=cuCheckpointProcessLock:n=1:code=801") == 0);
        REQUIRE_CODE(cuCheckpointProcessLock(me, nullptr), 801);
        REQUIRE_THAT(state() == 0);
    });
}

TEST(SimCheckpoints, WrongProcessesAndArgumentsAreRefused) {
    in_own_process(
        [] {
            open_device();
            for (const int pid : {0, -1}) {
                int value = 0;
                REQUIRE_CODE(cuCheckpointProcessGetState(pid, &value), 304);
                REQUIRE_CODE(cuCheckpointProcessLock(pid, nullptr), 304);
            }
            int thread = 0;
            REQUIRE_CODE(cuCheckpointProcessLock(::getppid(), nullptr), 801);
            REQUIRE_CODE(cuCheckpointProcessGetRestoreThreadId(::getpid(), nullptr), 1);
            REQUIRE_CODE(cuCheckpointProcessGetRestoreThreadId(::getpid(), &thread), 0);
            REQUIRE_THAT(thread != ::getpid() &&
                         ::access(("/proc/self/task/" + std::to_string(thread)).c_str(), 0) == 0);
            LockArguments lock = {};
            lock.reserved = 1;
            REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), &lock), 1);
            REQUIRE_THAT(state() == 0);
            REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), nullptr), 0);
            ReservedArguments reserved = {};
            reserved.reserved[7] = 1;
            REQUIRE_CODE(cuCheckpointProcessCheckpoint(::getpid(), &reserved), 1);
            REQUIRE_CODE(cuCheckpointProcessUnlock(::getpid(), &reserved), 1);
            REQUIRE_CODE(cuCheckpointProcessCheckpoint(::getpid(), nullptr), 0);
            int devices = 0;
            REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
            std::vector<DevicePair> pairs(static_cast<std::size_t>(devices));
            for (int device = 0; device < devices; ++device) {
                DevicePair& pair = pairs[static_cast<std::size_t>(device)];
                REQUIRE_CODE(cuDeviceGetUuid_v2(&pair.from, device), 0);
                pair.to = pair.from;
            }
            RestoreArguments restore = {};
            restore.pairs = pairs.data();
            restore.pair_count = static_cast<unsigned>(devices) + 1;
            REQUIRE_CODE(cuCheckpointProcessRestore(::getpid(), &restore), 1);
            restore.pair_count = static_cast<unsigned>(devices);
            pairs[0].to.bytes[0] ^= 1;
            REQUIRE_CODE(cuCheckpointProcessRestore(::getpid(), &restore), 1);
            pairs[0].to = pairs[0].from;
            REQUIRE_CODE(cuCheckpointProcessRestore(::getpid(), &restore), 0);
            REQUIRE_THAT(state() == 1);
        },
        "other processes");
}

TEST(SimCheckpoints, CallsThatChangeSomethingWaitForTheUnlock) {
    in_own_process([] {
        Context* const context = open_device();
        REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), nullptr), 0);
        std::atomic<int> answered{0};
        std::thread other([&] {
            std::size_t free = 0, total = 0;
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_CODE(cuMemGetInfo_v2(&free, &total), 0);
            answered = 1;
            Address memory = 0;
            REQUIRE_CODE(cuMemAlloc_v2(&memory, 64), 0);
            answered = 2;
        });
        wait_until(answered);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        REQUIRE_THAT(answered == 1);
        REQUIRE_CODE(cuCheckpointProcessUnlock(::getpid(), nullptr), 0);
        other.join();
        REQUIRE_THAT(answered == 2);
    });
}

TEST(SimCheckpoints, ALockWaitsForWorkAndGivesUpInTime) {
    in_own_process([] {
        open_device();
        Gate gate;
        REQUIRE_CODE(launch_hold(new_stream(), gate), 0);
        LockArguments lock = {};
        lock.timeout_ms = 20;
        REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), &lock), 600);
        REQUIRE_THAT(state() == 0);
        gate.released = 1;
        REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), nullptr), 0);
        REQUIRE_THAT(state() == 1);
    });
}

TEST(SimCheckpoints, AProcessWithALostDeviceIsNotLocked) {
    in_own_process([] {
        open_device();
        REQUIRE_THAT(isthmus_sim_fault_plan("call=cuCtxSynchronize:code=719:sticky") == 0);
        REQUIRE_CODE(cuCtxSynchronize(), 719);
        REQUIRE_CODE(cuCheckpointProcessLock(::getpid(), nullptr), 719);
        REQUIRE_CODE(cuCheckpointProcessUnlock(::getpid(), nullptr), 401);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
