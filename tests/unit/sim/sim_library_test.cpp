// SPDX-License-Identifier: Apache-2.0
// Libraries whose image is wrong, and what modules, libraries, kernels and contexts tell.
#include "sim_test.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>

namespace isthmus::sim::test {
namespace {

const char* const two_kernels =
    ".version 7.0\n.target sm_50\n.address_size 64\n.global .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
    ".visible .entry first(.param .u64 p) { .reg .b64 %a; .reg .v2 .b32 %v; .reg .pred %p; .reg .b32 %x, %y;\n"
    ".loc 1 2 3\n ld.param.u64 %a, [p]; $L_0: @!%p bra $L_1; { ret; } $L_1: /* } */ ret; // }\n }\n"
    ".visible .entry second() { ret; }\n";
const char* const wrong = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() {\n nonsense; }\n";

const char* const newer_target = ".version 7.0\n.target sm_999\n.address_size 64\n.visible .entry k() { ret; }\n";
const unsigned char bare_fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};  // a header, and no code

Result load(const char* image) {
    Module* module = nullptr;
    return cuModuleLoadData(&module, image);
}
Module* library(const void* image) {
    Module* made = nullptr;
    REQUIRE_CODE(cuLibraryLoadData(&made, image, nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
    return made;
}

TEST(SimImages, GarbageIs200AndWrongPtxIs218) {
    in_own_process([] {
        open_device();
        REQUIRE_CODE(load("garbage"), 200);
        REQUIRE_CODE(load(""), 200);
        REQUIRE_CODE(load(two_kernels), 0);
        REQUIRE_CODE(load(wrong), 218);
        REQUIRE_CODE(load(".version 7.0\n.target sm_50\n.visible .entry k() { ret;\n"), 218);
        REQUIRE_CODE(load(".version 7.0\n.target sm_50\n.visible .entry k() { ret; } }\n"), 218);
        // An instruction that PTX has loads, whether it can run here or not.
        REQUIRE_CODE(load(".version 7.0\n.target sm_50\n.visible .entry k() { wgmma.fence.sync.aligned; ret; }\n"), 0);
        // Observed (580, H100): what the assembler refuses, and no code for the device, differ.
        REQUIRE_CODE(load("// nothing\n"), 200);
        REQUIRE_CODE(load(".version 7.0\n"), 218);
        REQUIRE_CODE(load(".version 99.0\n.target sm_50\n.visible .entry k() { ret; }\n"), 222);
        REQUIRE_CODE(load(newer_target), 218);
        REQUIRE_CODE(load(reinterpret_cast<const char*>(bare_fatbin)), 209);
        REQUIRE_CODE(load("\n\n  .version 7.0\n.target sm_50\n.visible .entry k() { ret; }\n"), 0);
        char log[256] = {};
        int options[] = {5, 6};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadDataEx(&module, wrong, 2, options, values), 218);
        REQUIRE_THAT(std::strstr(log, "line 5") && std::strstr(log, "nonsense"));
    });
}

TEST(SimImages, CallsOfFunctionsThatNothingHasAre218) {
    in_own_process([] {
        open_device();
        const std::string head = ".version 7.0\n.target sm_50\n.address_size 64\n";
        const std::string outside = ".extern .func (.param .b32 r) f(.param .b64 p);\n";
        const std::string use =
            ".visible .entry k() { .reg .pred %p; .param .b32 a; .param .b64 b; @%p call.uni (a), f, (b); ret; }\n";
        const std::string body = ".visible .func (.param .b32 r) f(.param .b64 p)\n{ ret; }\n";
        REQUIRE_CODE(load((head + outside + use).c_str()), 218);
        REQUIRE_CODE(load((head + outside + use + body).c_str()), 0);
        REQUIRE_CODE(load((head + outside + ".visible .entry k() { ret; }\n").c_str()), 0);  // declared alone
        REQUIRE_CODE(load((head + ".extern .func free(.param .b64 p);\n" +
                           ".visible .entry k() { .param .b64 b; call.uni free, (b); ret; }\n")
                              .c_str()),
                     0);  // the driver has it
        std::string log(256, '\0');
        int options[] = {5, 6};
        void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadDataEx(&module, (head + outside + use).c_str(), 2, options, values), 218);
        REQUIRE_THAT(log.find("Unresolved extern function 'f'") != std::string::npos);
    });
}

// White space before and inside a statement: the text is read in linear time (else this test times out), and lines are
// counted.
TEST(SimImages, MuchWhiteSpaceIsReadInLinearTime) {
    in_own_process([] {
        open_device();
        const std::string lines(300000, '\n');
        const std::string start = ".version 7.0\n.target sm_50\n.address_size 64\n" + lines + ".visible .entry" + lines;
        REQUIRE_CODE(load((start + "k() {" + lines + "ret" + lines + "; }\n").c_str()), 0);
        char log[256] = {};
        int options[] = {5, 6};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadDataEx(&module, (start + "k() { nonsense; }\n").c_str(), 2, options, values), 218);
        REQUIRE_THAT(std::strstr(log, "line 600004;") && std::strstr(log, "nonsense"));
    });
}

TEST(SimImages, ALibraryTellsAtItsFirstUse) {
    in_own_process([] {
        open_device();
        const struct {
            const void* image;
            Result code;
        } rows[] = {{"garbage", 200},    {"", 200},          {wrong, 218},
                    {newer_target, 218}, {bare_fatbin, 209}, {".version 99.0\n.target sm_50\n", 222}};
        for (const auto& row : rows) {
            Module *const made = library(row.image), *module = nullptr;
            Function* kernel = nullptr;
            unsigned count = 99;
            REQUIRE_CODE(cuLibraryGetKernel(&kernel, made, "k"), row.code);
            REQUIRE_CODE(cuLibraryGetModule(&module, made), row.code);
            REQUIRE_CODE(cuLibraryGetKernelCount(&count, made), 0);
            REQUIRE_THAT(count == 0);
            REQUIRE_CODE(cuLibraryEnumerateKernels(&kernel, 1, made), 0);  // 580, H200: none
            REQUIRE_CODE(cuLibraryUnload(made), 0);
        }
        Module* none = nullptr;
        REQUIRE_CODE(cuLibraryLoadData(&none, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0), 1);
    });
}

TEST(SimLibraries, UnloadedTwiceTheyEndTheProgramInStrictMode) {
    const auto unload_twice = [] {
        open_device();
        Module* const made = library(two_kernels);
        REQUIRE_CODE(cuLibraryUnload(made), 0);
        REQUIRE_CODE(cuLibraryUnload(made), 400);
    };
    in_own_process(unload_twice);
    EXPECT_EXIT((::setenv("ISTHMUS_SIM_STRICT", "1", 1), prepare_child(), unload_twice()),
                ::testing::KilledBySignal(SIGABRT), "cuLibraryUnload of a library that is already unloaded");
}

TEST(SimLibraries, ParametersOfKernelsAreToldInAContext) {
    in_own_process([] {
        Context* const context = open_device();
        const char* const text =
            ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 b) { ret; }\n";
        Function* kernel = nullptr;
        REQUIRE_CODE(cuLibraryGetKernel(&kernel, library(text), "k"), 0);
        Function* const multiply = multiply_kernel();
        std::size_t offset = 77, bytes = 77;
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuKernelGetParamInfo(kernel, 1, &offset, &bytes), 201);
        REQUIRE_CODE(cuKernelGetParamInfo(nullptr, 1, &offset, &bytes), 1);
        REQUIRE_CODE(cuFuncGetParamInfo(nullptr, 1, &offset, &bytes), 1);
        REQUIRE_THAT(offset == 77 && bytes == 77);
        // Functions tell without a context.
        const char* name = nullptr;
        Module* module = nullptr;
        REQUIRE_CODE(cuFuncGetParamInfo(multiply, 1, &offset, &bytes), 0);
        REQUIRE_CODE(cuFuncGetName(&name, multiply), 0);
        REQUIRE_CODE(cuFuncGetModule(&module, multiply), 0);
        REQUIRE_CODE(cuFuncGetModule(&module, nullptr), 1);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_CODE(cuKernelGetParamInfo(kernel, 1, &offset, &bytes), 0);
        REQUIRE_THAT(offset == 8 && bytes == 4);
        REQUIRE_CODE(cuKernelGetParamInfo(kernel, 2, &offset, &bytes), 1);
    });
}

TEST(SimLibraries, TellTheirKernels) {
    in_own_process([] {
        open_device();
        Module *const made = library(two_kernels), *back = nullptr;
        unsigned count = 0;
        REQUIRE_CODE(cuLibraryGetKernelCount(&count, made), 0);
        REQUIRE_THAT(count == 2);
        REQUIRE_CODE(cuLibraryGetKernelCount(nullptr, made), 1);
        Function* kernels[3] = {};
        REQUIRE_CODE(cuLibraryEnumerateKernels(kernels, 1, made), 0);
        REQUIRE_THAT(kernels[0] && !kernels[1]);
        REQUIRE_CODE(cuLibraryEnumerateKernels(kernels, 3, made), 0);
        REQUIRE_THAT(kernels[1] && !kernels[2]);
        const char* name = nullptr;
        REQUIRE_CODE(cuKernelGetName(&name, kernels[1]), 0);
        REQUIRE_THAT(std::string(name) == "second");
        Function* function = nullptr;
        REQUIRE_CODE(cuKernelGetFunction(&function, kernels[0]), 0);
        REQUIRE_CODE(cuFuncGetName(&name, function), 0);
        REQUIRE_THAT(std::string(name) == "first");
        // Documented for both: 1 for null. What is no handle is 400.
        REQUIRE_CODE(cuFuncGetName(&name, nullptr), 1);
        REQUIRE_CODE(cuFuncGetName(nullptr, function), 1);
        REQUIRE_CODE(cuKernelGetName(&name, nullptr), 1);
        REQUIRE_CODE(cuKernelGetName(nullptr, kernels[0]), 1);
        REQUIRE_CODE(cuFuncGetName(&name, reinterpret_cast<Function*>(made)), 400);
        REQUIRE_CODE(cuKernelGetName(&name, reinterpret_cast<Function*>(made)), 400);
        REQUIRE_CODE(cuKernelGetLibrary(&back, kernels[1]), 0);
        REQUIRE_THAT(back == made);
        REQUIRE_CODE(cuKernelSetAttribute(8, 1024, kernels[1], 0), 0);
        REQUIRE_CODE(cuKernelSetAttribute(8, 1024, kernels[1], 50), 101);
        REQUIRE_CODE(cuKernelSetAttribute(8, 1 << 30, kernels[1], 0), 1);
        REQUIRE_CODE(cuKernelSetCacheConfig(kernels[1], 4, 0), 1);
        REQUIRE_CODE(cuFuncSetCacheConfig(kernels[1], 1), 0);
        int loaded = 0, blocks = 0, more = 0;
        REQUIRE_CODE(cuFuncIsLoaded(&loaded, kernels[1]), 0);
        REQUIRE_THAT(loaded == 1);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernels[1], 128, 0, 0), 0);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&more, kernels[1], 128, 0), 0);
        REQUIRE_THAT(blocks == more && blocks > 0);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernels[1], 128, 0, 2), 1);
        const char* const one = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry second() { ret; }\n";
        REQUIRE_CODE(cuLibraryGetKernel(&kernels[1], library(one), "second"), 0);
        REQUIRE_CODE(cuLaunchCooperativeKernel(kernels[1], 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr), 0);
        REQUIRE_CODE(cuLaunchCooperativeKernel(kernels[1], 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, nullptr), 720);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        Address table = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuLibraryGetGlobal(&table, &bytes, made, "table"), 0);
        REQUIRE_THAT(bytes == 16);
        REQUIRE_CODE(cuLibraryGetGlobal(&table, &bytes, made, "chair"), 500);
        REQUIRE_CODE(cuLibraryGetManaged(&table, &bytes, made, "table"), 500);
    });
}

std::size_t a_kilobyte_a_warp(int block) {
    return static_cast<std::size_t>(block / 32) * 1024;
}

TEST(SimOccupancy, CountsSharedMemoryAndTheDevicesLimit) {
    in_own_process([] {
        open_device();
        Function* kernel = nullptr;
        REQUIRE_CODE(cuLibraryGetKernel(&kernel, library(two_kernels), "second"), 0);
        const long threads = fact(39), shared = fact(81), own = fact(111), most = fact(106), sms = fact(16);
        if (threads <= 0 || shared <= 0 || most <= 0) return;
        int blocks = 0, grid = 0, block = 0;
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32, 0), 0);
        REQUIRE_THAT(blocks == std::min(threads / 32, most));
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 33, 0), 0);
        REQUIRE_THAT(blocks == std::min(threads / 64, most));  // whole warps
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32, 40 << 10), 0);
        REQUIRE_THAT(blocks == std::min({threads / 32, most, shared / ((40 << 10) + own)}));
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32, 1 << 20), 0);
        REQUIRE_THAT(blocks == 0);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 0, 0), 1);

        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, nullptr, 0, 0), 0);
        REQUIRE_THAT(grid / sms * block == threads);  // no block of 1024 where a multiprocessor has 1536
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, nullptr, 0, 100), 0);
        REQUIRE_THAT(block <= 100 && grid > 0);
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, a_kilobyte_a_warp, 0, 0), 0);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, a_kilobyte_a_warp(block)), 0);
        REQUIRE_THAT(blocks > 0 && grid == blocks * sms);
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, nullptr, 1 << 20, 0), 0);
        REQUIRE_THAT(grid == 0 && block == 0);
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, kernel, nullptr, 0, 0, 2), 1);
    });
}

TEST(SimErrors, HaveTheDriversNamesAndTexts) {
    in_own_process([] {
        const char *name = nullptr, *text = nullptr;
        REQUIRE_CODE(cuGetErrorName(0, &name), 0);
        REQUIRE_CODE(cuGetErrorString(0, &text), 0);
        REQUIRE_THAT(std::string(name) == "CUDA_SUCCESS" && std::string(text) == "no error");
        REQUIRE_CODE(cuGetErrorString(101, &text), 0);
        REQUIRE_THAT(std::string(text) == "invalid device ordinal");
        REQUIRE_CODE(cuGetErrorName(202, &name), 0);
        REQUIRE_THAT(std::string(name) == "CUDA_ERROR_CONTEXT_ALREADY_CURRENT");
        REQUIRE_CODE(cuGetErrorString(77, &text), 1);
        REQUIRE_THAT(text == nullptr);
        REQUIRE_CODE(cuGetErrorName(-1, &name), 1);
        REQUIRE_CODE(cuGetErrorName(0, nullptr), 1);
    });
}

TEST(SimCoredumps, SettingsAreKept) {
    in_own_process([] {
        open_device();
        if (version() < 12010) return;
        bool flag = false;
        std::size_t size = sizeof flag;
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(2, &flag, &size), 0);
        REQUIRE_THAT(flag);
        flag = false;
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(2, &flag, &size), 0);
        flag = true;
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(2, &flag, &size), 0);
        REQUIRE_THAT(!flag);
        char text[1024] = "core";
        std::size_t bytes = 5;
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(5, text, &bytes), 0);
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(6, text, &bytes), 0);
        bytes = sizeof text;
        std::memset(text, 'x', sizeof text);
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(5, text, &bytes), 0);
        REQUIRE_THAT(std::string(text) == "core");
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(5, nullptr, &bytes), 0);
        REQUIRE_THAT(bytes == 1024);
        bytes = 2;
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(5, text, &bytes), 1);
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(3, text, &bytes), 1);
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(3, text, &bytes), 1);
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(8, text, &bytes), 1);
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(3, nullptr, &bytes), 1);
        REQUIRE_CODE(cuCoredumpGetAttributeGlobal(3, text, nullptr), 1);
        bytes = 1100;
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(5, text, &bytes), 1);
        flag = true;
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(4, &flag, &size), 0);
        bytes = 5;
        REQUIRE_CODE(cuCoredumpSetAttributeGlobal(6, text, &bytes), 801);  // the pipe is open
    });
}

TEST(SimContexts, KeepTheirSettings) {
    in_own_process([] {
        open_device();
        std::size_t value = 0;
        REQUIRE_CODE(cuCtxGetLimit(&value, 0), 0);
        REQUIRE_THAT(value == 1024);
        REQUIRE_CODE(cuCtxSetLimit(0, 4096), 0);
        REQUIRE_CODE(cuCtxGetLimit(&value, 0), 0);
        REQUIRE_THAT(value == 4096);
        REQUIRE_CODE(cuCtxGetLimit(&value, 99), 215);
        REQUIRE_CODE(cuCtxSetLimit(5, 129), 1);
        int preference = -1;
        REQUIRE_CODE(cuCtxSetCacheConfig(2), 0);
        REQUIRE_CODE(cuCtxGetCacheConfig(&preference), 0);
        REQUIRE_THAT(preference == 2);
        REQUIRE_CODE(cuCtxSetCacheConfig(4), 1);
        unsigned flags = 0;
        REQUIRE_CODE(cuCtxSetFlags(4), 0);
        REQUIRE_CODE(cuCtxGetFlags(&flags), 0);
        REQUIRE_THAT(flags == 4);
        REQUIRE_CODE(cuCtxSetFlags(3), 1);
        Address rows = 0;
        std::size_t pitch = 0;
        REQUIRE_CODE(cuMemAllocPitch_v2(&rows, &pitch, 600, 3, 4), 0);
        REQUIRE_THAT(pitch == 1024);
        REQUIRE_CODE(cuMemAllocPitch_v2(&rows, &pitch, 600, 3, 3), 1);
    });
}

// Codes of a driver 580 on an H100 after a trap.
TEST(SimContexts, WhatALostDeviceAnswers) {
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        const Address memory = device_memory(64);
        GraphObject* graph = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        Context* other = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&other, 0, 0), 0);
        REQUIRE_THAT(isthmus_sim_fault_plan("call=cuCtxSynchronize:n=1:code=719:sticky") == 0);
        REQUIRE_CODE(cuCtxSynchronize(), 719);
        DeviceOrdinal device = -1;
        unsigned flags = 0;
        unsigned long long id = 0;
        int priority = 0;
        Address base = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuCtxGetDevice(&device), 0);
        REQUIRE_CODE(cuCtxGetFlags(&flags), 0);
        REQUIRE_CODE(cuCtxGetLimit(&bytes, 0), 719);
        REQUIRE_CODE(cuMemGetAddressRange_v2(&base, &bytes, memory), 719);
        REQUIRE_CODE(cuStreamGetFlags(stream, &flags), 719);
        REQUIRE_CODE(cuStreamGetId(stream, &id), 719);
        REQUIRE_CODE(cuStreamGetPriority(stream, &priority), 719);
        int status = 0;
        REQUIRE_CODE(cuStreamIsCapturing(stream, &status), 719);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 719);
        REQUIRE_CODE(cuMemAddressReserve(&base, 2 << 20, 0, 0, 0), 0);
        REQUIRE_CODE(cuMemAddressFree(base, 2 << 20), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 719);
        REQUIRE_CODE(cuCtxDestroy_v2(other), 0);
        REQUIRE_CODE(cuCtxCreate_v2(&other, 0, 0), 719);
        REQUIRE_CODE(cuMemGetInfo_v2(&bytes, &bytes), 719);  // the primary context is current again
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        REQUIRE_CODE(cuMemGetInfo_v2(&bytes, &bytes), 709);
        Context* context = nullptr;
        REQUIRE_CODE(cuDevicePrimaryCtxRetain(&context, 0), 719);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
