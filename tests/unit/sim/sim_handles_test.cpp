// SPDX-License-Identifier: Apache-2.0
// Handles, streams, events, processes: the driver's answers, and what ends the process.
#include "sim_test.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

namespace isthmus::sim::test {
namespace {

TEST(SimHandles, CallsBeforeInitAnswerNotInitialised) {
    in_own_process([] {
        int count = 0;
        Context* context = nullptr;
        REQUIRE_CODE(cuDeviceGetCount(&count), 3);
        REQUIRE_CODE(cuDevicePrimaryCtxRetain(&context, 0), 3);
        REQUIRE_CODE(cuInit(1), 1);
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&count), 0);
        REQUIRE_THAT(count >= 1);
    });
}

TEST(SimHandles, AForkedChildGetsNotInitialisedFromEveryCall) {  // keeps R3's ground
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        const pid_t child = ::fork();
        if (child == 0) {
            Address address = 0;
            int count = 0;
            const bool all = cuInit(0) == 3 && cuDeviceGetCount(&count) == 3 && cuMemAlloc_v2(&address, 64) == 3 &&
                             cuMemFree_v2(memory) == 3 && cuCtxSynchronize() == 3;
            ::_exit(all ? 0 : 1);
        }
        int status = 1;
        REQUIRE_THAT(::waitpid(child, &status, 0) == child && status == 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
    });
}

// Whether a child ends by SIGSEGV when it touches the page.
bool child_faults_on(void* page) {
    const pid_t child = ::fork();
    if (child == 0) {
        *static_cast<volatile int*>(page) = 1;
        ::_exit(0);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

// User-mode emulators may ignore the madvise() that the simulator relies on.
bool system_keeps_pages_from_children() {
    void* page = ::mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::madvise(page, 65536, MADV_DONTFORK);
    return child_faults_on(page);
}

TEST(SimHandles, AForkedChildHasNoManagedMemory) {
    if (!system_keeps_pages_from_children()) GTEST_SKIP() << "MADV_DONTFORK has no effect here (emulation)";
    in_own_process([] {
        open_device();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 4096, 1), 0);
        REQUIRE_THAT(child_faults_on(reinterpret_cast<void*>(managed)));
    });
}

TEST(SimHandles, AtProcessExitEveryCallAnswersDeinitialised) {  // keeps R4's ground
    EXPECT_EXIT(
        {
            std::atexit([] {
                int count = 0;
                std::fprintf(stderr, "at exit: %d\n", cuDeviceGetCount(&count));
            });
            open_device();
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "at exit: 4");
}

TEST(SimHandles, ASecondDestroyOfAStreamEndsTheProcess) {  // keeps S18's ground
    in_own_process_faults(
        [] {
            open_device();
            Stream* stream = new_stream();
            REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
            static_cast<void>(cuStreamDestroy_v2(stream));
        },
        "already destroyed");
}

TEST(SimHandles, ASecondDestroyOfAnEventEndsTheProcess) {  // keeps S18's ground
    in_own_process_faults(
        [] {
            open_device();
            Event* event = new_event();
            REQUIRE_CODE(cuEventDestroy_v2(event), 0);
            static_cast<void>(cuEventDestroy_v2(event));
        },
        "already destroyed");
}

TEST(SimHandles, AStreamsHandleIsUsedAgainAtOnceButItsIdNever) {  // keeps S17's ground
    in_own_process([] {
        open_device();
        unsigned long long first_id = 0, second_id = 0;
        Stream* first = new_stream();
        REQUIRE_CODE(cuStreamGetId(first, &first_id), 0);
        REQUIRE_CODE(cuStreamDestroy_v2(first), 0);
        Stream* second = new_stream();
        REQUIRE_CODE(cuStreamGetId(second, &second_id), 0);
        REQUIRE_THAT(first == second && first_id != second_id);
    });
}

TEST(SimHandles, PrioritiesAreClampedAndReadable) {  // keeps S13's ground
    in_own_process([] {
        Context* context = open_device();
        Stream* stream = nullptr;
        int least = 1, greatest = 1, priority = 9;
        REQUIRE_CODE(cuCtxGetStreamPriorityRange(&least, &greatest), 0);
        REQUIRE_CODE(cuStreamCreateWithPriority(&stream, 1, -100), 0);
        REQUIRE_CODE(cuStreamGetPriority(stream, &priority), 0);
        REQUIRE_THAT(least == 0 && priority == greatest);
        unsigned flags = 7;
        Context* owner = nullptr;
        REQUIRE_CODE(cuStreamGetFlags(stream, &flags), 0);
        REQUIRE_CODE(cuStreamGetCtx(stream, &owner), 0);
        REQUIRE_THAT(flags == 1 && owner == context);
    });
}

TEST(SimHandles, KernelsRunWhileTheHostGoesOn) {  // keeps S1's ground
    in_own_process([] {
        open_device();
        Gate gate;
        Stream* stream = new_stream();
        Event* event = new_event();
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(cuEventRecord(event, stream), 0);
        wait_until(gate.begun);
        REQUIRE_CODE(cuStreamQuery(stream), 600);
        REQUIRE_CODE(cuEventQuery(event), 600);
        Address meanwhile = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&meanwhile, 64), 0);
        gate.released = 1;
        REQUIRE_CODE(cuEventSynchronize(event), 0);
        REQUIRE_CODE(cuStreamQuery(stream), 0);
    });
}

TEST(SimHandles, AFreeWaitsForTheKernelThatRuns) {
    in_own_process([] {
        open_device();
        Gate gate;
        const Address memory = device_memory(64);
        Stream* stream = new_stream();
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        wait_until(gate.begun);
        std::atomic<int> freed{0};
        Context* context = nullptr;
        REQUIRE_CODE(cuCtxGetCurrent(&context), 0);
        std::thread freeing([&] {
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_CODE(cuMemFree_v2(memory), 0);
            freed = gate.released.load() != 0 ? 1 : 2;
        });
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);  // returns while the kernel runs
        gate.released = 1;
        freeing.join();
        REQUIRE_THAT(freed == 1);
    });
}

TEST(SimHandles, HostFunctionsMayNotCallTheDriver) {  // keeps S20's ground
    in_own_process([] {
        open_device();
        struct Answers {
            Stream* stream = new_stream();
            Event* event = new_event();
            int count = 0, launch = 0, query = 1, event_query = 1, record = 1;
        };
        static Answers answers;
        Stream* stream = new_stream();
        REQUIRE_CODE(cuLaunchHostFunc(
                         stream,
                         [](void*) {
                             int count = 0;
                             answers.count = cuDeviceGetCount(&count);
                             answers.launch = cuLaunchHostFunc(
                                 answers.stream, [](void*) {}, nullptr);
                             answers.query = cuStreamQuery(answers.stream);
                             answers.event_query = cuEventQuery(answers.event);
                             answers.record = cuEventRecord(answers.event, answers.stream);
                         },
                         nullptr),
                     0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(answers.count == 800 && answers.launch == 800);
        REQUIRE_THAT(answers.query == 0 && answers.event_query == 0 && answers.record == 0);  // observed
    });
}

TEST(SimHandles, AfterAStickyErrorHostFunctionsNeverRunAndCallbacksRunWithTheCode) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        static std::atomic<int> host_function = 0, callback_code = 0;
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(64)), 0);
        REQUIRE_CODE(cuLaunchHostFunc(
                         stream, [](void*) { host_function = 1; }, nullptr),
                     0);
        REQUIRE_CODE(cuStreamAddCallback(
                         stream, [](Stream*, Result code, void*) { callback_code = code; }, nullptr, 0),
                     0);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
        // After an error the wait has an end, which may be before a callback on a busy machine.
        for (int i = 0; i < 60000 && callback_code == 0; ++i) ::usleep(1000);
        REQUIRE_THAT(host_function == 0 && callback_code == 700);
    });
}

TEST(SimHandles, ElapsedTimeNeedsTimingAndAnEnd) {  // keeps S11's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        Event *begin = new_event(0), *end = new_event(0), *untimed = new_event(2);
        float milliseconds = -1;
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, begin, end), 400);
        REQUIRE_CODE(cuEventRecord(begin, stream), 0);
        REQUIRE_CODE(cuEventRecord(untimed, stream), 0);
        REQUIRE_CODE(cuEventRecord(end, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, begin, untimed), 400);
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, begin, end), 0);
        REQUIRE_THAT(milliseconds >= 0);
    });
}

TEST(SimHandles, UnknownImagesAndNamesAreRefusedAndLaunchesOutsideTheLimits) {
    in_own_process(
        [] {
            open_device();
            Module* module = nullptr;
            Function* found = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module, "nobody registered this"), 200);
            Function* function = multiply_kernel();
            REQUIRE_CODE(cuModuleLoadData(&module, "an image of the simulator's tests"), 0);
            REQUIRE_CODE(cuModuleGetFunction(&found, module, "test_absent"), 500);
            isthmus_sim_extent extent = {0, 1, 1};
            MultiplyPack pack = {{0, 0}, 1};
            void* parameters[] = {&extent, &pack};
            REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr), 1);
            REQUIRE_CODE(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), 1);
            REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), 0);
            REQUIRE_CODE(cuModuleUnload(module), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
        },
        "200");
}

TEST(SimHandles, ProceduresAreFoundByNameAndVersion) {
    in_own_process([] {
        int version = 0, status = -1;
        REQUIRE_CODE(cuDriverGetVersion(&version), 0);
        void *first = nullptr, *second = nullptr, *newest = nullptr;
        REQUIRE_CODE(cuGetProcAddress_v2("cuMemAlloc", &second, 3020, 0, &status), 0);
        REQUIRE_THAT(second == reinterpret_cast<void*>(&cuMemAlloc_v2) && status == 0);
        REQUIRE_CODE(cuGetProcAddress_v2("cuMemAlloc", &first, 2000, 0, &status), 0);
        REQUIRE_THAT(first != nullptr && first != second);
        REQUIRE_CODE(cuGetProcAddress_v2("cuMemAlloc", &newest, version + 10, 0, &status), 1);
        REQUIRE_CODE(cuGetProcAddress_v2("cuNoSuchThing", &newest, version, 0, &status), 0);
        REQUIRE_THAT(newest == nullptr && status == 1);
        REQUIRE_CODE(cuGetProcAddress_v2("cuMemAllocAsync", &newest, 11010, 0, &status), version >= 11010 ? 0 : 1);
        REQUIRE_THAT(newest == nullptr);
        if (version >= 13000) return;
        REQUIRE_CODE(cuGetProcAddress_v2("cuDeviceGetHostAtomicCapabilities", &newest, version, 0, &status), 0);
        REQUIRE_THAT(newest == nullptr && status == 2);
    });
}

TEST(SimHandles, TheMachinesFactsAreTold) {
    in_own_process([] {
        char text[64] = {};
        const char* wanted = std::getenv("ISTHMUS_SIM");
        REQUIRE_THAT(isthmus_sim_fact("machine", text, sizeof(text)) > 0 && wanted && std::strcmp(text, wanted) == 0);
        REQUIRE_THAT(isthmus_sim_fact("page_size_bytes", text, sizeof(text)) >= 4);
        REQUIRE_THAT(isthmus_sim_fact("no such fact", text, sizeof(text)) == -1);
    });
}

TEST(SimHandles, WithoutAMachineInitSaysHowToNameOneAndFindsNoDevice) {  // keeps D9's ground
    in_own_process(
        [] {
            ::unsetenv("ISTHMUS_SIM");
            REQUIRE_CODE(cuInit(0), 100);
        },
        "ISTHMUS_SIM names no machine.*orin");
    in_own_process(
        [] {
            ::setenv("ISTHMUS_SIM", "toaster", 1);
            REQUIRE_CODE(cuInit(0), 100);
        },
        "toaster");
    in_own_process([] {
        ::setenv("ISTHMUS_SIM", "no-gpu", 1);
        REQUIRE_THAT(cuInit(0) != 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
