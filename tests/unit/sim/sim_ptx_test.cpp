// SPDX-License-Identifier: Apache-2.0
// Kernels from PTX, launched through the driver's functions: their results, and the machine's rules for each access.
#include "sim_kernel_scene.hpp"

#include <packed_fatbins.hpp>
#include <sanitized.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace isthmus::sim::test {
namespace {

std::string samples() {
    std::ifstream file(ISTHMUS_SAMPLES_PTX);
    std::stringstream text;
    text << file.rdbuf();
    std::string out = text.str();
    // Older drivers take older texts; the kernels need nothing new.
    const std::string version = ".version 9.0";
    const std::size_t at = out.find(version);
    REQUIRE_THAT(at != std::string::npos);
    return out.replace(at, version.size(), ".version 6.0");
}

Module* loaded(const std::string& text) {
    Module* module = nullptr;
    REQUIRE_CODE(cuModuleLoadData(&module, text.c_str()), 0);
    return module;
}

struct Shape {
    unsigned grid = 1, block = 32, shared = 0, grid_y = 1, block_y = 1;
};
template <class... Arguments>
Result launch(Function* function, const Shape& shape, Arguments... arguments) {
    void* parameters[] = {&arguments..., nullptr};
    return cuLaunchKernel(function, shape.grid, shape.grid_y, 1, shape.block, shape.block_y, 1, shape.shared, nullptr,
                          parameters, nullptr);
}

TEST(SimPtx, VectorsAreAdded) {
    in_own_process([] {
        open_device();
        std::vector<float> a(1000), b(1000);
        for (int at = 0; at < 1000; ++at)
            a[at] = 0.1f * static_cast<float>(at), b[at] = 1.0f / static_cast<float>(at + 1);
        const Address pa = on_device(a), pb = on_device(b), pc = device_memory(4000);
        REQUIRE_CODE(launch(entry(loaded(samples()), "add_vectors"), {16, 64}, pa, pb, pc, 1000), 0);
        const std::vector<float> c = back<float>(pc, 1000);
        for (std::size_t at = 0; at < 1000; ++at) REQUIRE_THAT(c[at] == a[at] + b[at]);
    });
}

TEST(SimPtx, MatricesAreMultipliedThroughSharedMemory) {
    in_own_process([] {
        open_device();
        constexpr int width = 32;
        std::vector<float> a(width * width), b(width * width);
        for (int at = 0; at < width * width; ++at)
            a[at] = static_cast<float>(at % 7 - 3), b[at] = static_cast<float>(at % 11 - 5);
        const Address pa = on_device(a), pb = on_device(b), pc = device_memory(sizeof(float) * width * width);
        REQUIRE_CODE(launch(entry(loaded(samples()), "multiply_matrices"), {4, 8, 0, 4, 8}, pa, pb, pc, width), 0);
        const std::vector<float> c = back<float>(pc, width * width);
        for (int y = 0; y < width; ++y) {
            for (int x = 0; x < width; ++x) {
                float sum = 0;  // small integers: exact in any order
                for (int k = 0; k < width; ++k) sum += a[y * width + k] * b[k * width + x];
                REQUIRE_THAT(c[y * width + x] == sum);
            }
        }
    });
}

TEST(SimPtx, HistogramsWarpSumsAndDivergentLoops) {
    in_own_process([] {
        open_device();
        Module* const module = loaded(samples());
        std::vector<unsigned char> data(5000);
        std::vector<unsigned> wanted(256);
        for (std::size_t at = 0; at < data.size(); ++at) ++wanted[data[at] = static_cast<unsigned char>(at * at >> 3)];
        const Address place = on_device(data), bins = on_device(std::vector<unsigned>(256));
        REQUIRE_CODE(launch(entry(module, "histogram"), {8, 96, 1024}, place, 5000, bins), 0);
        REQUIRE_THAT(back<unsigned>(bins, 256) == wanted);

        std::vector<int> numbers(256), sums(8);
        for (int at = 0; at < 256; ++at) sums[at / 32] += numbers[at] = at * 37 % 101;
        const Address from = on_device(numbers), to = device_memory(32);
        REQUIRE_CODE(launch(entry(module, "sum_warps"), {2, 128}, from, to), 0);
        REQUIRE_THAT(back<int>(to, 8) == sums);

        const Address lengths = device_memory(4 * 300);
        REQUIRE_CODE(launch(entry(module, "collatz"), {3, 100}, lengths), 0);
        const std::vector<int> found = back<int>(lengths, 300);
        for (unsigned at = 0; at < 300; ++at) {
            int length = 0;
            for (std::uint64_t value = at + 1; value != 1; ++length) value = value % 2 == 0 ? value / 2 : 3 * value + 1;
            REQUIRE_THAT(found[at] == length);
        }
    });
}

TEST(SimPtx, FunctionsConstantsVariablesAndHalves) {
    in_own_process([] {
        open_device();
        Module* const module = loaded(samples());
        std::vector<double> data = {0.25, 1, 2.5, 7, 10, 0};
        const Address place = on_device(data);
        REQUIRE_CODE(launch(entry(module, "functions"), {1, 6}, place, 6), 0);
        const double factors[] = {0.5, 2.0, -3.25};
        const std::vector<double> found = back<double>(place, 6);
        for (std::size_t at = 0; at < 6; ++at) {
            const double x = data[at], wanted = std::sin(x) + std::exp(x) / 3.0 +
                                                std::pow(x + 1.0, 1.5) * factors[at % 3] +
                                                double{std::sqrt(static_cast<float>(x))};
            REQUIRE_THAT(std::fabs(found[at] - wanted) <= 1e-13 * (1 + std::fabs(wanted)));
        }
        Address variable = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuModuleGetGlobal_v2(&variable, &bytes, module, "launches"), 0);
        REQUIRE_THAT(bytes == 4 && back<int>(variable, 1)[0] == 42);
        const Address in = on_device(std::vector<float>{1, 0.5f, -2, 3}), out = device_memory(16);
        REQUIRE_CODE(launch(entry(module, "halves"), {1, 4}, in, out), 0);
        REQUIRE_THAT((back<float>(out, 4) == std::vector<float>{8, 2.75f, 14, 54}));  // x² + x + (2x)² + 2x
    });
}

TEST(SimPtx, PrintfWritesAndAssertEndsTheContext) {
    in_own_process(
        [] {
            ::dup2(2, 1);  // the kernel's text goes to the standard output
            open_device();
            REQUIRE_CODE(launch(entry(loaded(samples()), "print"), {1, 1}, 20), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
        },
        "thread 0 of block 0: 20 text 2.500");
    in_own_process(
        [] {
            open_device();
            Function* const check = entry(loaded(samples()), "check");
            REQUIRE_CODE(launch(check, {1, 32}, 7), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            REQUIRE_CODE(launch(check, {1, 32}, 8), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 710);
        },
        "Assertion `value == 7` failed");
}

TEST(SimPtx, APersistentKernelAnswersTheRunningCpu) {
    in_own_process([] {
        open_device();
        void* host = nullptr;
        REQUIRE_CODE(cuMemAllocHost_v2(&host, 64), 0);
        auto* const words = static_cast<volatile unsigned*>(host);
        for (int at = 0; at < 3; ++at) words[at] = 0;
        REQUIRE_CODE(launch(entry(loaded(samples()), "answer"), {1, 1}, reinterpret_cast<Address>(host), 30u), 0);
        for (unsigned round = 1; round <= 30; ++round) {
            words[0] = round;
            while (words[2] != round) {
            }
            REQUIRE_THAT(words[1] == round * round);
        }
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// One byte behind the allocation; the message names all that is known about the place.
TEST(SimPtx, AStoreBehindItsAllocationIsIllegal) {
    in_own_process(
        [] {
            open_device();
            const Address place = device_memory(64);
            REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 16}, place, 4), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 17}, place, 4), 0);
            REQUIRE_THAT(cuCtxSynchronize() == 700);
        },
        "kernel store, PTX line [0-9]+ .samples.cu:[0-9]+., block .0, 0, 0., thread .16, 0, 0.: a");
}

TEST(SimPtx, AMisalignedStoreIsAFault) {
    in_own_process(
        [] {
            open_device();
            REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 2}, device_memory(64), 2), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 716);
        },
        "not a multiple of 4; this becomes CUDA_ERROR_MISALIGNED_ADDRESS");
}

// Memory that the driver does not know: lawful where the GPU reads the system's page tables.
TEST(SimPtx, UnknownMemoryIsJudgedByTheMachine) {
    in_own_process([] {
        open_device();
        std::vector<int> own(64);
        const auto place = reinterpret_cast<Address>(own.data());
        REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 8}, place, 4), 0);
        REQUIRE_CODE(cuCtxSynchronize(), pageable() ? 0 : 700);
        REQUIRE_THAT(own[7] == (pageable() ? 5 : 0));
        if (pageable()) {
            REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 1}, Address{64}, 4), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
        }
    });
}

TEST(SimPtx, ManagedMemoryServesKernels) {
    in_own_process([] {
        if (fact(attribute::managed) == 0) return;
        open_device();
        Address place = 0;
        REQUIRE_CODE(cuMemAllocManaged(&place, 64, 1), 0);
        REQUIRE_CODE(launch(entry(loaded(samples()), "store"), {1, 16}, place, 4), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(as_pointer(place)[15] == 5);
    });
}

TEST(SimPtx, UpdatesOfDeviceMemoryAreNeverLost) {
    in_own_process([] {
        open_device();
        const Address word = on_device(std::vector<unsigned>(1));
        REQUIRE_CODE(launch(entry(loaded(samples()), "count_up"), {8, 64}, word, 20), 0);
        REQUIRE_THAT(back<unsigned>(word, 1)[0] == 8 * 64 * 20);
    });
}

// Without native atomics, the CPU's updates and the GPU's get lost; with them they do not.
TEST(SimPtx, UpdatesOfHostMemoryAreAsWholeAsTheMachineMakesThem) {
    in_own_process([] {
        open_device();
        void* host = nullptr;
        REQUIRE_CODE(cuMemAllocHost_v2(&host, 64), 0);
        auto* const word = static_cast<unsigned*>(host);
        *word = 0;
        constexpr int times = 20000;
        REQUIRE_CODE(launch(entry(loaded(samples()), "count_up"), {1, 1}, reinterpret_cast<Address>(host), times), 0);
        for (int time = 0; time < times; ++time) __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(*word <= 2 * times);
        if (fact(attribute::native_host_atomics) == 1 && fact(attribute::partial_host_atomics) != 1)
            REQUIRE_THAT(*word == 2 * times);
    });
}

TEST(SimPtx, WhatCannotRunIsRefusedByNameAndLine) {
    in_own_process(
        [] {
            open_device();
            Module* const module = loaded(
                ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() {\n  wgmma.fence.sync.aligned;\n  "
                "ret;\n}\n");
            REQUIRE_CODE(launch(entry(module, "k"), {1, 1}), 801);
        },
        "the entry k cannot run from its PTX: line 5: wgmma");
}

// Launches by kernels and tensor copies: refused when the module is loaded, with instruction, line and what to do.
TEST(SimPtx, LaunchesByKernelsAndTensorCopiesAreRefusedWhenTheyAreLoaded) {  // keeps W8
    const auto says = [](const char* version, const std::string& text, const char* words) {
        in_own_process(
            [&] {
                open_device();
                const std::string whole = std::string(version) + "\n.address_size 64\n" + text;
                Module* module = nullptr;
                const Result code = cuModuleLoadData(&module, whole.c_str());
                std::fputs("loaded\n", stderr);
                if (code == 0) REQUIRE_CODE(launch(entry(module, "k"), {1, 1}), 801);
                // A device that is too old has no such instructions: as from the driver.
                if (code != 0) REQUIRE_CODE(code, 218);
                if (code != 0) std::fprintf(stderr, "%s\nloaded\n", words);
            },
            (std::string(words) + "(.|\n)*loaded").c_str());
    };
    says(".version 6.0\n.target sm_50",
         ".extern .func (.param .b32 code) cudaLaunchDeviceV2(.param .b64 block, .param .b64 stream);\n"
         ".visible .entry k() {\n.param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], 0; st.param.b64 [b], "
         "0;\n"
         "call.uni (c), cudaLaunchDeviceV2, (a, b);\nret; }\n",
         "the entry k cannot run from its PTX: line 7: call.uni of cudaLaunchDeviceV2 is not modelled; instead, launch "
         "the kernel from the host");
    says(".version 8.0\n.target sm_90",
         ".visible .entry k(.param .u64 m) {\n.reg .b64 %m; .reg .b32 %a; .shared .align 128 .b8 s[256];\n"
         "mov.u32 %a, s; ld.param.u64 %m, [m];\n"
         "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%m, {0}], [%a];\nret; }\n",
         "the entry k cannot run from its PTX: line 7: cp.async.bulk.tensor.1d.* is not modelled; instead, copy with "
         "cp.async.bulk");
}

Module* of_body(const std::string& entries) {
    return loaded(".version 6.0\n.target sm_50\n.address_size 64\n" + entries);
}
int attribute_of(Function* function, int id) {
    int value = -1;
    REQUIRE_CODE(cuFuncGetAttribute(&value, id, function), 0);
    return value;
}

TEST(SimPtx, AKernelWithoutParametersNeedsNoList) {
    in_own_process([] {
        open_device();
        Module* const module = of_body(".visible .entry k() { ret; }\n.visible .entry one(.param .u32 n) { ret; }");
        REQUIRE_CODE(cuLaunchKernel(entry(module, "k"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), 0);
        REQUIRE_CODE(cuLaunchKernel(entry(module, "one"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), 1);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// The answers of cuda_occupancy.h for what the entry's PTX needs.
TEST(SimPtx, AMultiprocessorHoldsAsManyBlocksAsHaveTheirShare) {  // keeps W8
    in_own_process([] {
        open_device();
        std::string greedy = ".visible .entry greedy(.param .u64 p) { .reg .b64 %d<200>, %o; ld.param.u64 %o, [p];\n";
        for (int at = 0; at < 200; ++at) greedy += "ld.global.u64 %d" + std::to_string(at) + ", [%o];\n";
        for (int at = 0; at < 200; ++at) greedy += "st.global.u64 [%o], %d" + std::to_string(at) + ";\n";
        Module* const module = of_body(
            greedy + "ret; }\n.visible .entry small() { ret; }\n" + ".visible .entry bounded() .maxntid 96 { ret; }\n" +
            ".visible .entry sharing(.param .u64 p) { .reg .b32 %a; .shared .b8 s[32768]; mov.u32 %a, s; " +
            "st.shared.u32 [%a], 1; ret; }\n.visible .entry bound(.param .u64 p) .maxnreg 32 { ret; }");
        constexpr int shared = 1, local = 3, registers = 4, most = 0;
        REQUIRE_THAT(attribute_of(entry(module, "greedy"), registers) == 255);
        REQUIRE_THAT(attribute_of(entry(module, "small"), registers) == 4);
        REQUIRE_THAT(attribute_of(entry(module, "small"), local) == 0);
        REQUIRE_THAT(attribute_of(entry(module, "sharing"), shared) == 32768);
        REQUIRE_THAT(attribute_of(entry(module, "bounded"), most) == 96);
        const auto held = [&](const char* name, int block, std::size_t dynamic_bytes = 0) {
            int blocks = -1, again = -1;
            Function* const function = entry(module, name);
            REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block, dynamic_bytes), 0);
            REQUIRE_CODE(
                cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&again, function, block, dynamic_bytes, 1), 0);
            REQUIRE_THAT(again == blocks);
            return blocks;
        };
        // Registers: 8192 for a warp, of 65536.
        REQUIRE_THAT(held("greedy", 32) == 8 && held("greedy", 256) == 1 && held("greedy", 257) == 0);
        REQUIRE_THAT(held("bounded", 97) == 0 && held("bounded", 96) > 0);
        REQUIRE_THAT(held("small", 1) == fact(attribute::max_blocks_per_multiprocessor));
        REQUIRE_THAT(held("small", 1024) == fact(attribute::max_threads_per_multiprocessor) / 1024);
        const int reserved = fact(attribute::reserved_shared), all = fact(attribute::shared_per_multiprocessor);
        REQUIRE_THAT(held("sharing", 32) == all / (32768 + reserved));
        REQUIRE_THAT(held("sharing", 32, 16384) == all / (49152 + reserved));
        REQUIRE_THAT(held("sharing", 32, 16385) == 0);
        int grid = -1, block = -1;
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, entry(module, "greedy"), nullptr, 0, 0), 0);
        REQUIRE_THAT(block == 256 && grid == fact(attribute::multiprocessors));
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, entry(module, "greedy"), nullptr, 0, 100), 0);
        REQUIRE_THAT(block == 64 && grid == 4 * fact(attribute::multiprocessors));
        const auto of_threads = [](int threads) { return std::size_t{static_cast<unsigned>(threads)} * 512; };
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, entry(module, "small"), of_threads, 0, 0), 0);
        REQUIRE_THAT(block <= 96);  // 48 KiB for a block
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, entry(module, "small"), 32, 0), 1);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&block, entry(module, "small"), 0, 0), 1);
        REQUIRE_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&block, entry(module, "small"), 32, 0, 2), 1);
        REQUIRE_CODE(cuOccupancyMaxPotentialBlockSize(nullptr, &block, entry(module, "small"), nullptr, 0, 0), 1);
    });
}

// CU_JIT_MAX_REGISTERS of the module, the library or the linker.
TEST(SimPtx, TheLoadersLimitOfRegistersHolds) {  // keeps W8
    in_own_process([] {
        open_device();
        std::string text =
            ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry small() { ret; }\n"
            ".visible .entry greedy(.param .u64 p) { .reg .b64 %d<40>, %o; ld.param.u64 %o, [p];\n";
        for (int at = 0; at < 40; ++at) text += "ld.global.u64 %d" + std::to_string(at) + ", [%o];\n";
        for (int at = 0; at < 40; ++at) text += "st.global.u64 [%o], %d" + std::to_string(at) + ";\n";
        text += "ret; }\n";
        constexpr int registers = 4;
        int option = 0;
        void* value = reinterpret_cast<void*>(std::uintptr_t{38});
        Module *free = nullptr, *bounded = nullptr, *library = nullptr, *linked = nullptr;
        REQUIRE_CODE(cuModuleLoadData(&free, text.c_str()), 0);
        const int all = attribute_of(entry(free, "greedy"), registers);
        REQUIRE_THAT(all > 80);
        REQUIRE_CODE(cuModuleLoadDataEx(&bounded, text.c_str(), 1, &option, &value), 0);
        REQUIRE_THAT(attribute_of(entry(bounded, "greedy"), registers) == 38);
        REQUIRE_THAT(attribute_of(entry(bounded, "small"), registers) == 4);
        REQUIRE_CODE(cuLibraryLoadData(&library, text.c_str(), &option, &value, 1, nullptr, nullptr, 0), 0);
        Function* kernel = nullptr;
        REQUIRE_CODE(cuLibraryGetKernel(&kernel, library, "greedy"), 0);
        REQUIRE_THAT(attribute_of(kernel, registers) == 38);
        const auto of_link = [&](unsigned options) {
            LinkState* link = nullptr;
            void* image = nullptr;
            REQUIRE_CODE(cuLinkCreate_v2(options, &option, &value, &link), 0);
            REQUIRE_CODE(cuLinkAddData_v2(link, 1, text.data(), text.size(), "k", 0, nullptr, nullptr), 0);
            REQUIRE_CODE(cuLinkComplete(link, &image, nullptr), 0);
            REQUIRE_CODE(cuModuleLoadData(&linked, image), 0);
            REQUIRE_CODE(cuLinkDestroy(link), 0);
            return attribute_of(entry(linked, "greedy"), registers);
        };
        REQUIRE_THAT(of_link(1) == 38);
        REQUIRE_THAT(of_link(0) == all);
        int blocks = 0;
        constexpr int limited_by_registers = 1024;
        REQUIRE_CODE(
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry(free, "greedy"), limited_by_registers, 0), 0);
        REQUIRE_THAT(blocks == 0);
        REQUIRE_CODE(
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry(bounded, "greedy"), limited_by_registers, 0), 0);
        REQUIRE_THAT(blocks == 1);
    });
}

// .maxntid bounds the number of threads, .reqntid states the block.
TEST(SimPtx, ABlockBeyondTheKernelsBoundsIsRefused) {
    in_own_process([] {
        open_device();
        Module* const module = of_body(
            ".visible .entry most() .maxntid 64, 2 { ret; }\n.visible .entry exact() .reqntid 32, 4, 1 { ret; }\n"
            ".visible .entry free() { ret; }");
        REQUIRE_CODE(launch(entry(module, "most"), {1, 128}), 0);
        REQUIRE_CODE(launch(entry(module, "most"), {1, 129}), 1);
        REQUIRE_CODE(launch(entry(module, "exact"), {1, 32, 0, 1, 4}), 0);
        REQUIRE_CODE(launch(entry(module, "exact"), {1, 128}), 1);
        REQUIRE_CODE(launch(entry(module, "exact"), {1, 32, 0, 1, 2}), 1);
        REQUIRE_THAT(attribute_of(entry(module, "most"), 0) == 128);
        REQUIRE_THAT(attribute_of(entry(module, "exact"), 0) == 128);
        REQUIRE_THAT(attribute_of(entry(module, "free"), 0) == fact(attribute::max_threads_per_block));
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// Shared memory that the kernel names counts, also by a function; that of other kernels does not.
TEST(SimPtx, StaticSharedMemoryCountsForALaunch) {
    in_own_process([] {
        open_device();
        Module* const module = of_body(R"(
.shared .align 4 .b8 first[1000];
.shared .align 4 .b8 second[40000];
.func touch() { .reg .b32 %r; ld.shared.u32 %r, [first]; ret; }
.visible .entry one() { .shared .align 4 .b8 own[24]; .reg .b32 %r; ld.shared.u32 %r, [own]; call touch; ret; }
.visible .entry two() { .reg .b32 %r; ld.shared.u32 %r, [second]; ret; })");
        Function *const one = entry(module, "one"), *const two = entry(module, "two");
        REQUIRE_THAT(attribute_of(one, 1) == 1024 && attribute_of(two, 1) == 40000);
        const int most = fact(attribute::max_shared_per_block);
        REQUIRE_THAT(attribute_of(one, 8) == most - 1024);
        REQUIRE_CODE(launch(one, {1, 1, static_cast<unsigned>(most - 1024)}), 0);
        REQUIRE_CODE(launch(one, {1, 1, static_cast<unsigned>(most - 1023)}), 1);
        REQUIRE_CODE(launch(two, {1, 1, static_cast<unsigned>(most - 40000)}), 0);
        REQUIRE_CODE(launch(two, {1, 1, static_cast<unsigned>(most - 39999)}), 1);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimPtx, ACooperativeGridMustBeResident) {
    in_own_process([] {
        open_device();
        Function* const kernel = entry(of_body(".visible .entry k() { ret; }"), "k");
        const int threads = fact(attribute::max_threads_per_multiprocessor);
        const auto most = static_cast<unsigned>(fact(attribute::multiprocessors) * std::max(1, threads / 1024));
        LaunchAttribute attributes[1] = {};
        attributes[0].id = 2;
        attributes[0].value.number = 1;
        LaunchConfig config = {};
        config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
        config.block_x = 1024;
        config.attributes = attributes;
        config.attribute_count = 1;
        config.grid_x = most + 1;
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, nullptr, nullptr), 720);
        config.grid_x = 1;
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, nullptr, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// Loading trusts the length that an image states: a file that ends before is refused first.
TEST(SimPtx, AFileThatIsNotAWholeImageIsRefused) {
    in_own_process([] {
        open_device();
        const std::string path = "/tmp/sim_ptx_" + std::to_string(::getpid());
        std::string fatbin(16, '\0');
        const std::uint32_t magic = 0xba55ed50;
        const std::uint64_t bytes = std::uint64_t{1} << 40;
        std::memcpy(fatbin.data(), &magic, 4), fatbin[4] = 1, fatbin[6] = 16, std::memcpy(&fatbin[8], &bytes, 8);
        std::string elf(64, '\0');
        elf.replace(0, 7,
                    std::string("\x7f"
                                "ELF\x02\x01\x01",
                                7));
        std::memcpy(&elf[40], &bytes, 8), elf[58] = 64, elf[60] = 4;
        for (const std::string& content : {fatbin, elf, elf.substr(0, 8), fatbin.substr(0, 5)}) {
            std::ofstream(path, std::ios::binary) << content;
            Module* module = nullptr;
            REQUIRE_CODE(cuModuleLoad(&module, path.c_str()), 200);
            REQUIRE_CODE(cuLibraryLoadFromFile(&module, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), 200);
        }
        ::unlink(path.c_str());
    });
}

// A fatbin holds the text as it is, or compressed.
TEST(SimPtx, AFatbinMayHoldTheText) {
    in_own_process([] {
        open_device();
        std::vector<unsigned char> image(16 + 64);
        const std::string text = samples();
        const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
            std::memcpy(image.data() + at, &value, bytes);
        };
        put(0, 0xba55ed50, 4), put(4, 1, 2), put(6, 16, 2), put(8, 64 + text.size() + 1, 8);
        put(16, 1, 2), put(18, 0x101, 2), put(20, 64, 4), put(24, text.size() + 1, 8), put(44, 75, 4);
        image.insert(image.end(), text.begin(), text.end());
        image.push_back(0);
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadData(&module, image.data()), 0);
        const Address place = device_memory(64);
        REQUIRE_CODE(launch(entry(module, "store"), {1, 16}, place, 4), 0);
        REQUIRE_THAT(back<int>(place, 16)[15] == 5);
        REQUIRE_CODE(cuModuleUnload(module), 0);
    });
}

// Copies of `count` words, each read and written by its own thread.
constexpr const char* copy_words = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from)
{
 .reg .b32 %r<3>;
 .reg .b64 %d<6>;
 .shared .align 4 .b8 words[256];
 ld.param.u64 %d0, [to];
 ld.param.u64 %d1, [from];
 mov.u32 %r0, %tid.x;
 mad.wide.u32 %d2, %r0, 4, %d0;
 mad.wide.u32 %d3, %r0, 4, %d1;
 ld.global.u32 %r1, [%d3];
 st.global.u32 [%d2], %r1;
 ret;
}
)";

// What is reported, and after which writes it is not.
TEST(SimPtx, ReadsOfMemoryThatNothingWroteAreReportedOnRequest) {
    const auto body = [](bool on, auto writes) {
        return [=] {
            if (on) ::setenv("ISTHMUS_SIM_UNINITIALISED", "1", 1);
            open_device();
            Function* const copy = entry(loaded(copy_words), "copy");
            const Address from = device_memory(128), to = device_memory(128);
            writes(copy, from);
            REQUIRE_CODE(launch(copy, {1, 32}, to, from), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            std::fprintf(stderr, "end\n");
        };
    };
    const auto nothing = [](Function*, Address) {};
    const auto all_but_one = [](Function*, Address from) { REQUIRE_CODE(cuMemsetD32_v2(from, 1, 31), 0); };
    const auto all = [](Function*, Address from) { REQUIRE_CODE(cuMemsetD32_v2(from, 1, 32), 0); };
    const auto from_host = [](Function*, Address from) {
        const std::vector<int> values(32, 5);
        REQUIRE_CODE(cuMemcpyHtoD_v2(from, values.data(), 128), 0);
    };
    const auto by_kernel = [](Function* copy, Address from) {
        const Address source = device_memory(128);
        REQUIRE_CODE(cuMemsetD8_v2(source, 1, 128), 0);
        REQUIRE_CODE(launch(copy, {1, 32}, from, source), 0);
    };
    const auto copied_from_nothing = [](Function*, Address from) {
        REQUIRE_CODE(cuMemcpyDtoD_v2(from, device_memory(128), 128), 0);
    };
    const char* const first =
        "kernel copy, PTX line 14.*thread \\(0, 0, 0\\): a read of 4 bytes at 0x[0-9a-f]+ of the "
        "global memory, of which nothing wrote all; it lies in .*device memory, 128 bytes";
    const char* const last = "kernel copy, PTX line 14.*thread \\(31, 0, 0\\): a read of 4 bytes";
    in_own_process(body(true, nothing), first);
    in_own_process(body(true, all_but_one), last);
    in_own_process(body(true, copied_from_nothing), first);
    for (int which = 0; which < 4; ++which) {
        const char* const none = "^end\n$";
        if (which == 0) in_own_process(body(true, all), none);
        if (which == 1) in_own_process(body(true, from_host), none);
        if (which == 2) in_own_process(body(true, by_kernel), none);
        if (which == 3) in_own_process(body(false, nothing), none);
    }
}

bool has_library(const char* name) {
    return ::dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

// As nvcc writes them unless --compress-mode=none.
TEST(SimPtx, AFatbinMayHoldCompressedText) {
    for (const auto& [library, digits] :
         {std::pair{"libzstd.so.1", packed_fatbins::zstd}, std::pair{"liblz4.so.1", packed_fatbins::lz4}}) {
        in_own_process([&, library = library, digits = digits] {
            open_device();
            const std::string image = packed_fatbins::bytes_of(digits);
            Module* module = nullptr;
            Function* function = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module, image.data()), 0);
            if (!has_library(library)) {
                REQUIRE_CODE(cuModuleGetFunction(&function, module, "fill"), 801);
                return;
            }
            const Address place = device_memory(64);
            REQUIRE_CODE(launch(entry(module, "fill"), {1, 16}, place, 4), 0);
            REQUIRE_CODE(launch(entry(module, "twice"), {1, 16}, place), 0);
            REQUIRE_THAT(back<int>(place, 16)[15] == 38);
            REQUIRE_CODE(cuModuleGetFunction(&function, module, "other"), 500);
            REQUIRE_CODE(cuModuleUnload(module), 0);
        });
    }
}

// The text is not there, whatever the header states; nothing beyond the image is read.
TEST(SimPtx, DamagedCompressedTextIsLeftAsItIs) {
    constexpr std::size_t packed_bytes = 16 + 16, text_bytes = 16 + 56, flags = 16 + 40, content = 16 + 0x50;
    for (const std::string_view digits : {packed_fatbins::zstd, packed_fatbins::lz4}) {
        for (const std::size_t damaged :
             {packed_bytes, packed_bytes + 3, text_bytes, text_bytes + 3, flags + 1, content}) {
            in_own_process([&, digits, damaged] {
                open_device();
                std::string image = packed_fatbins::bytes_of(digits);
                image[damaged] = static_cast<char>(image[damaged] ^ (damaged == flags + 1 ? 0xa0 : 0x55));
                Module* module = nullptr;
                Function* function = nullptr;
                REQUIRE_CODE(cuModuleLoadData(&module, image.data()), 0);
                REQUIRE_CODE(cuModuleGetFunction(&function, module, "fill"), 801);
            });
        }
    }
}

// Where the parts of packed_fatbins::lz4 lie: an image's header, a member's header, and its content.
constexpr std::size_t image_header_bytes = 16, member_header_bytes = 0x50;
template <class T>
void put_at(std::string& to, std::size_t at, T value) {
    std::memcpy(to.data() + at, &value, sizeof value);
}

// A member that states so many bytes of text, whose content is too short for them.
std::string damaged_member(std::uint64_t bytes) {
    const std::string block("\x1f\0\x01\0", 4);
    std::string member = packed_fatbins::bytes_of(packed_fatbins::lz4).substr(image_header_bytes, member_header_bytes);
    put_at(member, 8, std::uint64_t{block.size()});
    put_at(member, 16, static_cast<std::uint32_t>(block.size()));
    put_at(member, 56, bytes);
    return member + block;
}

// The limit holds for the texts of an image together, also of those that cannot be unpacked. In 16 members, so that
// little memory is taken at a time.
TEST(SimPtx, TheTextsOfAFatbinHaveOneLimit) {
    if (!has_library("liblz4.so.1")) GTEST_SKIP() << "liblz4.so.1 is not installed";
    constexpr std::uint64_t limit = std::uint64_t{256} << 20, text_bytes = 0x2ce;
    for (const std::uint64_t beyond : {0, 1}) {
        in_own_process([beyond] {
            open_device();
            std::string image = packed_fatbins::bytes_of(packed_fatbins::lz4);
            constexpr std::uint64_t members = 16;
            std::string before;
            for (std::uint64_t each = 1; each < members; ++each) before += damaged_member(limit / members);
            image.insert(image_header_bytes, before + damaged_member(limit / members - text_bytes + beyond));
            put_at(image, 8, std::uint64_t{image.size() - image_header_bytes});
            Module* module = nullptr;
            Function* function = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module, image.data()), 0);
            REQUIRE_CODE(cuModuleGetFunction(&function, module, "fill"), beyond == 0 ? 0 : 801);
        });
    }
}

// LZ4 counts in int. The pages of the content are not touched.
TEST(SimPtx, AMemberBeyondTheCountOfLz4IsDamaged) {
    const auto body = [] {
        open_device();
        std::string start = packed_fatbins::bytes_of(packed_fatbins::lz4);
        start.resize(image_header_bytes + member_header_bytes);
        const std::uint32_t packed = 0x80000000u;
        put_at(start, 8, std::uint64_t{member_header_bytes} + packed);
        put_at(start, image_header_bytes + 8, std::uint64_t{packed});
        put_at(start, image_header_bytes + 16, packed);
        void* const image = ::mmap(nullptr, start.size() + packed, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE_THAT(image != MAP_FAILED);
        std::memcpy(image, start.data(), start.size());
        Module* module = nullptr;
        Function* function = nullptr;
        rusage before = {}, after = {};  // a child begins with the pages of its parent
        ::getrusage(RUSAGE_SELF, &before);
        REQUIRE_CODE(cuModuleLoadData(&module, image), 0);
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "fill"), 801);
        ::getrusage(RUSAGE_SELF, &after);
        REQUIRE_THAT(after.ru_maxrss - before.ru_maxrss < 1 << 20);  // in KiB
    };
    in_own_process(body, "damaged");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// What is read from a text takes many times its size: 4 MB here become 150 and more.
TEST(SimPtx, AModuleThatNeedsMoreMemoryThanThereIsIsRefused) {
#ifdef ISTHMUS_SANITIZED
    GTEST_SKIP() << "a sanitizer ends the process where memory is missing";
#endif
    in_own_process([] {
        open_device();
        std::string text = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry long()\n{\n";
        for (int at = 0; at < 1000000; ++at) text += "ret;";
        text += "}\n";
        std::ifstream file("/proc/self/statm");
        unsigned long pages = 0;
        file >> pages;
        rlimit before = {};
        ::getrlimit(RLIMIT_AS, &before);
        const rlimit limited = {(pages << 12) + (64ul << 20), before.rlim_max};
        ::setrlimit(RLIMIT_AS, &limited);
        Module* module = nullptr;
        const Result code = cuModuleLoadData(&module, text.c_str());
        ::setrlimit(RLIMIT_AS, &before);
        REQUIRE_CODE(code, 2);
        REQUIRE_CODE(cuModuleLoadData(&module, text.c_str()), 0);
    });
}
#endif

}  // namespace
}  // namespace isthmus::sim::test
