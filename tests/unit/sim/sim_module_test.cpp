// SPDX-License-Identifier: Apache-2.0
// Ready-made images: what the driver says about them, and stand-ins for their entries.
#include "sim_test.hpp"

#include "made_images.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" int isthmus_sim_set_stand_in(void* function, const isthmus_sim_stand_in* stand_in);

namespace isthmus::sim::test {
namespace {

const char* const ptx =
    ".version 7.0\n.target sm_50\n.address_size 64\n.global .align 4 .b8 table[16];\n"
    ".visible .entry add(.param .u64 data, .param .u32 count, .param .s32 by) { wgmma.fence.sync.aligned; ret; }\n";

std::uint32_t capability() {
    return static_cast<std::uint32_t>(fact(attribute::cc_major) * 10 + fact(attribute::cc_minor));
}

Result load(const void* image, std::string* log = nullptr, Module** out = nullptr) {
    char text[256] = {};
    int options[] = {5, 6};
    void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
    Module* module = nullptr;
    const Result code = cuModuleLoadDataEx(&module, image, 2, options, values);
    if (log) *log = text;
    if (out) *out = module;
    return code;
}

TEST(SimModules, ImagesAreJudgedAsADriverDoes) {
    in_own_process([] {
        open_device();
        std::string log;
        REQUIRE_CODE(load(ptx, &log), 0);
        REQUIRE_THAT(log.empty());
        REQUIRE_CODE(load(".version 99.0\n.target sm_50\n"), 222);
        REQUIRE_CODE(load(".version 7.0\n.target sm_50\n.entry a(.param .u64) { ret; }", &log), 218);
        REQUIRE_THAT(log.find("ptxas") != std::string::npos);
        REQUIRE_CODE(load(".version 7.0\n.target sm_999\n", &log), 218);
        REQUIRE_THAT(log.find(".target") != std::string::npos);
        const auto own = made_images::cubin(capability(), {{"add", {{0, 8}}}});
        const auto other = made_images::cubin(capability() + 10, {{"add", {{0, 8}}}});
        REQUIRE_CODE(load(own.data()), 0);
        REQUIRE_CODE(load(other.data()), 209);
        REQUIRE_CODE(load(made_images::fatbin({{2, capability() + 10, other}, {2, capability(), own}}).data()), 0);
        auto damaged = own;
        damaged[18] = std::byte{62};  // another machine
        REQUIRE_CODE(load(damaged.data()), 200);
    });
}

// Observed (580, H100): sizes become lengths, and both buffers are ended.
TEST(SimModules, LogsTellTheirLengths) {
    in_own_process([] {
        open_device();
        char error[256], info[16];
        for (const bool good : {true, false}) {
            std::memset(error, 'x', sizeof error);
            std::memset(info, 'x', sizeof info);
            int options[] = {5, 6, 3, 4};
            void* values[] = {error, reinterpret_cast<void*>(sizeof error), info, reinterpret_cast<void*>(sizeof info)};
            Module* module = nullptr;
            const char* const text = good ? ptx : ".version 7.0\n.target sm_999\n";
            REQUIRE_CODE(cuModuleLoadDataEx(&module, text, 4, options, values), good ? 0 : 218);
            REQUIRE_THAT(std::strlen(error) == reinterpret_cast<std::size_t>(values[1]));
            REQUIRE_THAT((std::strlen(error) == 0) == good);
            REQUIRE_THAT(info[0] == '\0' && values[3] == nullptr);
        }
        // A short buffer holds the beginning.
        int options[] = {5, 6};
        void* values[] = {error, reinterpret_cast<void*>(6)};
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_999\n", 2, options, values), 218);
        REQUIRE_THAT(std::string(error) == "ptxas" && values[1] == reinterpret_cast<void*>(5));
        REQUIRE_CODE(cuModuleLoadDataEx(&module, ptx, 1, nullptr, nullptr), 1);
        int unknown[] = {99};
        REQUIRE_CODE(cuModuleLoadDataEx(&module, ptx, 1, unknown, values), 1);
    });
}

TEST(SimModules, EntriesTellTheirParametersAndVariablesTheirPlace) {
    in_own_process([] {
        open_device();
        Module* module = nullptr;
        REQUIRE_CODE(load(ptx, nullptr, &module), 0);
        Function* function = nullptr;
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "subtract"), 500);
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "add"), 0);
        const std::size_t expected[][2] = {{0, 8}, {8, 4}, {12, 4}};
        for (std::size_t at = 0; at < 3; ++at) {
            std::size_t offset = 0, bytes = 0;
            REQUIRE_CODE(cuFuncGetParamInfo(function, at, &offset, &bytes), 0);
            REQUIRE_THAT(offset == expected[at][0] && bytes == expected[at][1]);
        }
        std::size_t offset = 0;
        REQUIRE_CODE(cuFuncGetParamInfo(function, 3, &offset, nullptr), 1);
        std::size_t bytes = 0;
        REQUIRE_CODE(cuFuncGetParamInfo(multiply_kernel(), 1, &offset, &bytes), 0);
        REQUIRE_THAT(offset == sizeof(isthmus_sim_extent) && bytes == sizeof(MultiplyPack));
        Address table = 0;
        REQUIRE_CODE(cuModuleGetGlobal_v2(&table, &bytes, module, "table"), 0);
        REQUIRE_THAT(bytes == 16);
        REQUIRE_CODE(cuModuleGetGlobal_v2(&table, &bytes, module, "chair"), 500);
        REQUIRE_CODE(cuMemsetD8_v2(table, 1, 16), 0);
        const std::int64_t allocations = isthmus_sim_live("allocations");
        REQUIRE_CODE(cuModuleUnload(module), 0);
        REQUIRE_THAT(isthmus_sim_live("allocations") == allocations - 1);
        REQUIRE_CODE(cuModuleUnload(module), 400);
    });
}

void add(void* self, const isthmus_sim_extent* grid, const isthmus_sim_extent* block, std::uint32_t shared,
         void* const* parameters) {
    int* data = nullptr;
    std::uint32_t count = 0;
    int by = 0;
    std::memcpy(&data, parameters[0], sizeof data);
    std::memcpy(&count, parameters[1], sizeof count);
    std::memcpy(&by, parameters[2], sizeof by);
    for (std::uint32_t i = 0; i < count && i < grid->x * block->x; ++i) data[i] += by;
    *static_cast<std::uint32_t*>(self) = shared;
}

TEST(SimModules, AStandInRunsWhereNoGpuDoes) {
    in_own_process(
        [] {
            open_device();
            Module* module = nullptr;
            REQUIRE_CODE(load(ptx, nullptr, &module), 0);
            Function* function = nullptr;
            REQUIRE_CODE(cuModuleGetFunction(&function, module, "add"), 0);
            Address data = device_memory(64);
            REQUIRE_CODE(cuMemsetD8_v2(data, 0, 64), 0);
            std::uint32_t count = 10;
            int by = 3;
            void* parameters[] = {&data, &count, &by};
            const auto launch = [&](unsigned threads) {
                return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 128, nullptr, parameters, nullptr);
            };
            REQUIRE_CODE(launch(32), 801);  // no stand-in, and PTX that cannot run
            std::uint32_t seen = 0;
            const isthmus_sim_parameter memory = {0, 8, 4, 3};
            isthmus_sim_stand_in stand_in = {sizeof stand_in, add, &seen, &memory, 1};
            REQUIRE_THAT(isthmus_sim_set_stand_in(nullptr, &stand_in) == 1);
            REQUIRE_THAT(isthmus_sim_set_stand_in(multiply_kernel(), &stand_in) == 1);
            REQUIRE_THAT(isthmus_sim_set_stand_in(function, &stand_in) == 0);
            REQUIRE_CODE(launch(32), 0);
            REQUIRE_CODE(launch(4), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            int found[16] = {};
            REQUIRE_CODE(cuMemcpyDtoH_v2(found, data, 64), 0);
            REQUIRE_THAT(found[0] == 6 && found[3] == 6 && found[4] == 3 && found[9] == 3 && found[10] == 0);
            REQUIRE_THAT(seen == 128);
            data = 64;  // memory that the device cannot reach
            REQUIRE_CODE(launch(32), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
        },
        "cannot reach");
}

// The code of a module has to be loaded before a kernel starts that waits for the program.
TEST(SimModules, ALoadWaitsForTheWorkOfItsContext) {
    in_own_process([] {
        Context* const context = open_device();
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        wait_until(gate.begun);
        std::atomic<bool> loaded{false};
        std::thread other([&] {
            REQUIRE_CODE(cuCtxSetCurrent(context), 0);
            REQUIRE_CODE(load(".version 99.0\n.target sm_50\n"), 222);  // refused at once
            REQUIRE_CODE(load(ptx), 0);
            loaded = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        REQUIRE_THAT(!loaded);
        gate.released = 1;
        other.join();
        REQUIRE_THAT(loaded && cuStreamQuery(stream) == 0);
        // A fault of that work is the load's answer.
        REQUIRE_CODE(launch_wild_store(stream, nullptr), 0);
        REQUIRE_CODE(load(ptx), 700);
    });
}

TEST(SimModules, TheLinkerGivesBackWhatTheLoaderTakes) {
    in_own_process([] {
        open_device();
        LinkState* state = nullptr;
        REQUIRE_CODE(cuLinkCreate_v2(0, nullptr, nullptr, &state), 0);
        std::string text = ptx;
        REQUIRE_CODE(cuLinkAddData_v2(state, 1, text.data(), text.size(), "a", 0, nullptr, nullptr), 0);
        void* image = nullptr;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuLinkComplete(state, &image, &bytes), 0);
        const std::vector<char> kept(static_cast<char*>(image), static_cast<char*>(image) + bytes);
        REQUIRE_CODE(cuLinkDestroy(state), 0);
        REQUIRE_CODE(cuLinkDestroy(state), 400);
        REQUIRE_CODE(load(kept.data()), 0);
        REQUIRE_CODE(cuLinkCreate_v2(0, nullptr, nullptr, &state), 0);
        text = ".version 99.0 .target sm_50";
        REQUIRE_CODE(cuLinkAddData_v2(state, 1, text.data(), text.size(), "a", 0, nullptr, nullptr), 222);
        REQUIRE_CODE(cuLinkComplete(state, &image, &bytes), 1);
        REQUIRE_CODE(cuLinkDestroy(state), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
