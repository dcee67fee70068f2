// SPDX-License-Identifier: Apache-2.0
// The counts for `isthmus simulate`: what is counted, over several processes, and however they end; strict mode.
#include "sim_test.hpp"

#include <driver_abi/sim_statistics.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

extern "C" int cuGetExportTable(const void** table, const void* id);

namespace isthmus::sim::test {
namespace {

// The file of one test; removed with the object.
struct CountsFile {
    std::string path = ::testing::TempDir() + "isthmus-counts-" + std::to_string(::getpid());
    CountsFile() {
        const std::ofstream empty(path, std::ios::trunc);
        ::setenv("ISTHMUS_SIM_STATISTICS", path.c_str(), 1);
    }
    ~CountsFile() {
        ::unlink(path.c_str());
        ::unsetenv("ISTHMUS_SIM_STATISTICS");
    }
    CountsFile(const CountsFile&) = delete;
    CountsFile& operator=(const CountsFile&) = delete;

    std::unique_ptr<isthmus_sim_statistics> read() const {
        auto counts = std::make_unique<isthmus_sim_statistics>();
        std::ifstream file(path, std::ios::binary);
        file.read(reinterpret_cast<char*>(counts.get()), sizeof *counts);
        EXPECT_EQ(file.gcount(), static_cast<std::streamsize>(sizeof *counts));
        EXPECT_EQ(counts->magic, ISTHMUS_SIM_STATISTICS_MAGIC);
        return counts;
    }
};

std::uint64_t calls_of(const isthmus_sim_calls* places, const char* name) {
    for (int i = 0; i < isthmus_sim_statistics_calls; ++i) {
        if (std::strcmp(places[i].name, name) == 0) return places[i].count;
    }
    return 0;
}

std::uint64_t answers_of(const isthmus_sim_statistics& counts, const char* name, int code) {
    for (const isthmus_sim_answers& place : counts.answers) {
        if (place.key == 0 || static_cast<int>(place.key & 0xffffffffu) != code) continue;
        if (std::strcmp(counts.calls[(place.key >> 32) - 1].name, name) == 0) return place.count;
    }
    return 0;
}

const isthmus_sim_message* message_with(const isthmus_sim_statistics& counts, const char* words) {
    for (const isthmus_sim_message& place : counts.messages) {
        if (place.written != 0 && std::strstr(place.text, words)) return &place;
    }
    return nullptr;
}

TEST(Statistics, AnotherProcessNeedsNotWaitForThisOnesEnd) {
    const CountsFile file;
    in_own_process([&file] {
        open_device();  // the counts are mapped
        const int again = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC);
        REQUIRE_THAT(again >= 0 && ::flock(again, LOCK_EX | LOCK_NB) == 0);
    });
}

TEST(Statistics, CallsAnswersCopiesFillsAndKernelsAreCounted) {
    const CountsFile file;
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        const Address memory = device_memory(4096);
        int there[4] = {1, 2, 3, 4};
        REQUIRE_CODE(cuMemcpyHtoD_v2(memory, there, sizeof there), 0);
        REQUIRE_CODE(cuMemcpyDtoH_v2(there, memory, sizeof there), 0);
        REQUIRE_CODE(cuMemcpyDtoH_v2(there, memory + 4096 - 8, sizeof there), 1);
        REQUIRE_CODE(cuMemsetD32_v2(memory, 1, 4), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 4, 3), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
    const auto counts = file.read();
    EXPECT_EQ(counts->processes, 1u);
    EXPECT_EQ(calls_of(counts->calls, "cuMemcpyDtoH_v2"), 2u);
    EXPECT_EQ(answers_of(*counts, "cuMemcpyDtoH_v2", 1), 1u);
    EXPECT_EQ(answers_of(*counts, "cuMemcpyHtoD_v2", 1), 0u);
    EXPECT_EQ(counts->copies[0][1].count, 1u);
    EXPECT_EQ(counts->copies[0][1].bytes, 16u);
    EXPECT_EQ(counts->copies[1][0].count, 1u);
    EXPECT_EQ(counts->fills.bytes, 16u);
    EXPECT_EQ(counts->kernels, 1u);
    EXPECT_EQ(counts->kernels_from_ptx, 0u);  // it has a twin; unit.tools.litmus_command has the other case
    EXPECT_EQ(offsetof(isthmus_sim_statistics, kernels), 192u);  // read there, too
    EXPECT_EQ(counts->dropped, 0u);
}

TEST(Statistics, WorkThatIsNotReadyIsNoRefusal) {
    const CountsFile file;
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(cuStreamQuery(stream), 600);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
    EXPECT_EQ(answers_of(*file.read(), "cuStreamQuery", 600), 0u);
}

TEST(Statistics, ALostDeviceAndItsReasonAreCounted) {
    const CountsFile file;
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        REQUIRE_CODE(launch_wild_store(stream, reinterpret_cast<void*>(16)), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
    const auto counts = file.read();
    EXPECT_EQ(answers_of(*counts, "cuStreamSynchronize", 700), 1u);
    std::uint64_t lost = 0;
    for (const isthmus_sim_fault& fault : counts->faults) {
        if (fault.key == 700) lost = fault.count;
    }
    EXPECT_EQ(lost, 1u);
    EXPECT_TRUE(message_with(*counts, "is lost"));
    EXPECT_TRUE(message_with(*counts, "touched"));
}

TEST(Statistics, FunctionsThatAreNotModelledAreNamed) {
    const CountsFile file;
    in_own_process([] {
        const void* table = nullptr;
        REQUIRE_CODE(cuGetExportTable(&table, nullptr), 801);
        REQUIRE_CODE(cuGetExportTable(&table, nullptr), 801);
    });
    const auto counts = file.read();
    EXPECT_EQ(calls_of(counts->refused, "cuGetExportTable"), 2u);
    EXPECT_EQ(calls_of(counts->refused, "cuArrayCreate"), 0u);
}

TEST(Statistics, ProcessesAreSummed) {
    const CountsFile file;
    for (int process = 0; process < 2; ++process) in_own_process([] { open_device(); });
    const auto counts = file.read();
    EXPECT_EQ(counts->processes, 2u);
    EXPECT_EQ(calls_of(counts->calls, "cuInit"), 2u);
}

TEST(Statistics, AChildOfForkIsAProcess) {
    const CountsFile file;
    in_own_process([] {
        open_device();
        const pid_t child = ::fork();
        if (child == 0) {
            int count = 0;
            std::_Exit(cuDeviceGetCount(&count) == 3 ? 0 : 1);
        }
        int status = 0;
        REQUIRE_THAT(::waitpid(child, &status, 0) == child && status == 0);
    });
    const auto counts = file.read();
    EXPECT_EQ(counts->processes, 2u);
    EXPECT_EQ(answers_of(*counts, "cuDeviceGetCount", 3), 1u);
}

TEST(Statistics, AProcessThatIsKilledLeavesItsCounts) {
    const CountsFile file;
    EXPECT_EXIT(
        {
            prepare_child();
            open_device();
            (void)std::raise(SIGKILL);
        },
        ::testing::KilledBySignal(SIGKILL), "");
    EXPECT_EQ(calls_of(file.read()->calls, "cuInit"), 1u);
}

TEST(Statistics, WhatTheCpuMayNotTouchIsCountedThoughTheProgramEnds) {
    const CountsFile file;
    bool touches = false;
    EXPECT_EXIT(
        {
            prepare_child();
            open_device();
            const Address memory = device_memory(4096);
            *as_pointer(memory) = 1;
            std::_Exit(7);
        },
        [&](int status) {
            touches = WIFEXITED(status);
            return touches ? WEXITSTATUS(status) == 7 : WTERMSIG(status) == SIGSEGV;
        },
        "");
    const auto counts = file.read();
    EXPECT_EQ(message_with(*counts, "the CPU touched") != nullptr, !touches);
}

TEST(Statistics, AFileOfAnotherSimulatorIsLeftAsItIs) {
    const CountsFile file;
    std::ofstream(file.path, std::ios::trunc) << "something else";
    in_own_process([] { open_device(); });
    std::string text;
    std::getline(std::ifstream(file.path), text);
    EXPECT_EQ(text, "something else");
}

TEST(Strict, WithoutItDoubleDestructionEndsTheProgramAsTheDriverDoes) {
    in_own_process_faults(
        [] {
            open_device();
            Stream* const stream = new_stream();
            REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
            (void)cuStreamDestroy_v2(stream);
        },
        "the real driver ends here by a segmentation fault");
}

void expect_abort(void (*body)(), const char* says) {
    ::setenv("ISTHMUS_SIM_STRICT", "1", 1);
    EXPECT_EXIT((prepare_child(), body(), std::_Exit(0)), ::testing::KilledBySignal(SIGABRT), says);
    ::unsetenv("ISTHMUS_SIM_STRICT");
}

TEST(Strict, DoubleDestructionOfAStreamAbortsByName) {
    expect_abort(
        [] {
            open_device();
            Stream* const stream = new_stream();
            REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
            (void)cuStreamDestroy_v2(stream);
        },
        "test_sim_driver: cuStreamDestroy_v2: .*already destroyed");
}

TEST(Strict, DoubleDestructionOfAnEventAbortsByName) {
    expect_abort(
        [] {
            open_device();
            Event* const event = new_event();
            REQUIRE_CODE(cuEventDestroy_v2(event), 0);
            (void)cuEventDestroy_v2(event);
        },
        "cuEventDestroy_v2: .*already destroyed");
}

TEST(Strict, TheUseOfADestroyedStreamAbortsByName) {
    const auto body = [] {
        open_device();
        Stream* const stream = new_stream();
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
        REQUIRE_CODE(cuStreamQuery(stream), 400);
    };
    in_own_process(body);
    expect_abort(body, "cuStreamQuery: a handle of an object that is destroyed");
}

TEST(Strict, WhatIsDefinedGoesOn) {
    ::setenv("ISTHMUS_SIM_STRICT", "1", 1);
    in_own_process([] {
        open_device();
        Address memory = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&memory, 0), 1);
        REQUIRE_CODE(cuStreamDestroy_v2(nullptr), 400);
    });
    ::unsetenv("ISTHMUS_SIM_STRICT");
}

}  // namespace
}  // namespace isthmus::sim::test
