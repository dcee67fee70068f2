// SPDX-License-Identifier: Apache-2.0
// The driver's log: what it keeps, its callbacks, and what does not fit.
#include "sim_test.hpp"

#include <pthread.h>
#include <unistd.h>

#include <regex>
#include <string>
#include <vector>

namespace isthmus::sim::test {
namespace {

// The log's lines from the iterator on.
std::string lines(unsigned* iterator, std::size_t room = 30000) {
    std::string text(room, 'x');
    std::size_t size = text.size();
    REQUIRE_CODE(cuLogsDumpToMemory(iterator, text.data(), &size, 0), 0);
    REQUIRE_THAT(text[size] == '\0');
    text.resize(size);
    return text;
}

void fail() {
    REQUIRE_CODE(cuMemFree_v2(64), 1);
}

TEST(SimLogs, FailedCallsAreKeptInOrder) {
    in_own_process([] {
        open_device();
        unsigned at = 0;
        REQUIRE_CODE(cuLogsCurrent(&at, 0), 0);
        REQUIRE_THAT(lines(&at).empty());
        fail();
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuStreamGetFlags(nullptr, nullptr), 1);
        const std::string text = lines(&at);
        REQUIRE_THAT(text.find("] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2\n") != std::string::npos);
        // As a driver 580 on an H200: [13:31:25.783][139875636467520][CUDA][E] before each line.
        const std::regex stamps(R"(\[\d\d:\d\d:\d\d\.\d{3}\]\[(\d+)\]\[CUDA\]\[E\] Returning[^\n]*\n(.|\n)*)");
        std::smatch found;
        REQUIRE_THAT(std::regex_match(text, found, stamps) && found[1] == std::to_string(::pthread_self()));
        REQUIRE_THAT(text.find("cuStreamGetFlags") > text.find("cuMemFree_v2"));
        REQUIRE_THAT(text.find("cuCtxSynchronize") == std::string::npos);
        REQUIRE_THAT(lines(&at).empty());              // the iterator is behind them
        REQUIRE_THAT(lines(nullptr).ends_with(text));  // without one: all
    });
}

TEST(SimLogs, TheSimulatorsReasonsStandBesideTheCode) {
    in_own_process(
        [] {
            open_device();
            unsigned at = 0;
            REQUIRE_CODE(cuLogsCurrent(&at, 0), 0);
            Context* made = nullptr;
            int graphics[4] = {};
            struct {
                void* affinities = nullptr;
                int affinity_count = 0;
                void* graphics = nullptr;
            } parameters;
            parameters.graphics = graphics;
            REQUIRE_CODE(cuCtxCreate_v4(&made, &parameters, 0, 0), 801);
            REQUIRE_THAT(lines(&at).find("graphics contexts are not modelled") != std::string::npos);
        },
        "not modelled");
}

TEST(SimLogs, WhatDoesNotFitIsSaid) {
    in_own_process([] {
        open_device();
        unsigned at = 0;
        REQUIRE_CODE(cuLogsCurrent(&at, 0), 0);
        for (int i = 0; i < 5; ++i) fail();
        unsigned copy = at;
        const std::string some = lines(&copy, 160);
        REQUIRE_THAT(some.find("do not fit") != std::string::npos &&
                     some.ends_with("(CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2\n"));
        char small[8];
        std::size_t size = sizeof small;
        copy = at;
        REQUIRE_CODE(cuLogsDumpToMemory(&copy, small, &size, 0), 1);
        REQUIRE_THAT(size == 0 && copy == at);
        REQUIRE_THAT(lines(&copy).find("] Provided buffer is not large enough to write any logs to\n") !=
                     std::string::npos);
        for (int i = 0; i < 120; ++i) fail();
        REQUIRE_THAT(lines(&at).find("earlier lines of this log are lost") != std::string::npos);
        REQUIRE_THAT(lines(nullptr).size() <= 25600);
    });
}

TEST(SimLogs, GoToFiles) {
    in_own_process([] {
        open_device();
        unsigned at = 0;
        REQUIRE_CODE(cuLogsCurrent(&at, 0), 0);
        fail();
        char path[] = "/tmp/isthmus-log-XXXXXX";
        REQUIRE_THAT(::mkstemp(path) >= 0);
        REQUIRE_CODE(cuLogsDumpToFile(&at, path, 0), 0);
        std::FILE* const file = std::fopen(path, "r");
        char line[128] = {};
        REQUIRE_THAT(file && std::fgets(line, sizeof line, file));
        std::fclose(file);
        ::unlink(path);
        REQUIRE_THAT(std::string(line).find("cuMemFree_v2") != std::string::npos);
        REQUIRE_CODE(cuLogsDumpToFile(&at, "/nowhere/log", 0), 1);
        REQUIRE_THAT(lines(&at).find("] Unable to open file at /nowhere/log for dumping logs\n") != std::string::npos);
        REQUIRE_CODE(cuLogsDumpToFile(&at, nullptr, 0), 1);
    });
}

struct Seen {
    std::vector<std::string> lines;
    LogHandle* own = nullptr;
};
void see(void* data, int level, char* text, std::size_t bytes) {
    REQUIRE_THAT(level == 0);
    static_cast<Seen*>(data)->lines.emplace_back(text, bytes);
}
void see_once(void* data, int, char* text, std::size_t bytes) {
    auto& seen = *static_cast<Seen*>(data);
    seen.lines.emplace_back(text, bytes);
    REQUIRE_CODE(cuLogsUnregisterCallback(seen.own), 0);
}

TEST(SimLogs, CallbacksGetEachLineOnce) {
    in_own_process([] {
        open_device();
        fail();  // before the callback
        Seen all, once;
        REQUIRE_CODE(cuLogsRegisterCallback(&see, &all, &all.own), 0);
        REQUIRE_CODE(cuLogsRegisterCallback(&see_once, &once, &once.own), 0);
        fail();
        fail();
        REQUIRE_THAT(all.lines.size() == 2 && once.lines.size() == 1);
        REQUIRE_THAT(all.lines[0] == "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2");  // 580, H200
        REQUIRE_CODE(cuLogsUnregisterCallback(all.own), 0);
        fail();
        REQUIRE_THAT(all.lines.size() == 2 && once.lines.size() == 1);
        REQUIRE_CODE(cuLogsRegisterCallback(nullptr, nullptr, nullptr), 1);
        REQUIRE_CODE(cuLogsRegisterCallback(&see, &all, nullptr), 0);  // without a handle
    });
}

// 580.
TEST(SimLogs, ACallbackThatIsNoLongerOneEndsTheProgram) {
    in_own_process_faults(
        [] {
            open_device();
            Seen seen;
            REQUIRE_CODE(cuLogsRegisterCallback(&see, &seen, &seen.own), 0);
            REQUIRE_CODE(cuLogsUnregisterCallback(seen.own), 0);
            cuLogsUnregisterCallback(seen.own);
        },
        "cuLogsUnregisterCallback of what is no callback, or no longer one");
}

TEST(SimLogs, FlagsAreNotLookedAt) {
    in_own_process([] {
        open_device();
        unsigned at = 0;
        char text[64];
        std::size_t size = sizeof text;
        REQUIRE_CODE(cuLogsCurrent(nullptr, 0), 1);
        REQUIRE_CODE(cuLogsCurrent(&at, 1), 0);                    // 580, H200
        REQUIRE_CODE(cuLogsDumpToMemory(&at, text, &size, 1), 0);  // 580
        size = sizeof text;
        REQUIRE_CODE(cuLogsDumpToMemory(&at, nullptr, &size, 0), 1);
        REQUIRE_CODE(cuLogsDumpToMemory(&at, text, nullptr, 0), 1);
        REQUIRE_CODE(cuLogsDumpToFile(&at, "/dev/null", 1), 0);  // 580
        REQUIRE_CODE(cuLogsDumpToFile(&at, "/tmp", 1), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
