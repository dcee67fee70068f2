// SPDX-License-Identifier: Apache-2.0
// The driver's linker over several PTX texts: calls across them, names of their own, and what it refuses.
#include "sim_test.hpp"

#include <unistd.h>

#include <cstring>
#include <string>

namespace isthmus::sim::test {
namespace {

constexpr int cubin = 0, ptx = 1, fatbin = 2;

// Both texts have a function and a variable of the same name, which are their own.
const std::string caller = R"(.version 7.5
.target sm_75
.address_size 64
.extern .func (.param .b32 back) twice (.param .b32 given);
.extern .global .align 4 .u32 added;
.global .align 4 .u32 own = 1000;
.func (.param .b32 back) helper (.param .b32 given)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r0, [given];
    ld.global.u32 %r1, [own];
    add.u32 %r2, %r0, %r1;
    st.param.b32 [back], %r2;
    ret;
}
.visible .entry apply(.param .u64 out, .param .u32 value)
{
    .reg .b32 %r<6>;
    .reg .b64 %d<3>;
    .param .b32 a;
    .param .b32 b;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [value];
    st.param.b32 [a], %r0;
    call.uni (b), twice, (a);
    ld.param.b32 %r1, [b];
    st.param.b32 [a], %r1;
    call.uni (b), helper, (a);
    ld.param.b32 %r2, [b];
    ld.global.u32 %r3, [added];
    add.u32 %r4, %r2, %r3;
    st.global.u32 [%d0], %r4;
    ret;
}
)";

const std::string callee = R"(.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 added = 7;
.global .align 4 .u32 own = 2;
.func (.param .b32 back) helper (.param .b32 given)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r0, [given];
    ld.global.u32 %r1, [own];
    mul.lo.u32 %r2, %r0, %r1;
    st.param.b32 [back], %r2;
    ret;
}
.visible .func (.param .b32 back) twice (.param .b32 given)
{
    .reg .b32 %r<4>;
    .param .b32 a;
    .param .b32 b;
    ld.param.u32 %r0, [given];
    st.param.b32 [a], %r0;
    call.uni (b), helper, (a);
    ld.param.b32 %r1, [b];
    st.param.b32 [back], %r1;
    ret;
}
)";

// A weak definition of the same function: the ordinary one counts.
const std::string weak = R"(.version 7.5
.target sm_75
.address_size 64
.weak .func (.param .b32 back) twice (.param .b32 given)
{
    .reg .b32 %r<2>;
    mov.u32 %r0, 5;
    st.param.b32 [back], %r0;
    ret;
}
.visible .global .align 4 .u32 added = 7;
)";

struct Linker {
    LinkState* state = nullptr;
    char log[512] = {};
    // CU_JIT_ERROR_LOG_BUFFER and its size, which the linker writes as long as the state lives.
    int options[2] = {5, 6};
    void* values[2] = {log, reinterpret_cast<void*>(sizeof log)};
    Linker() { REQUIRE_CODE(cuLinkCreate_v2(2, options, values, &state), 0); }
    Result add(const std::string& text, const char* name = nullptr, int type = ptx) {
        std::string copy = text;
        return cuLinkAddData_v2(state, type, copy.data(), copy.size(), name, 0, nullptr, nullptr);
    }
    void* complete() {
        void* image = nullptr;
        REQUIRE_CODE(cuLinkComplete(state, &image, nullptr), 0);
        return image;
    }
};

unsigned apply(void* image, unsigned value) {
    Module* module = nullptr;
    Function* function = nullptr;
    REQUIRE_CODE(cuModuleLoadData(&module, image), 0);
    REQUIRE_CODE(cuModuleGetFunction(&function, module, "apply"), 0);
    Address out = device_memory(4);
    void* parameters[] = {&out, &value};
    REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
    unsigned found = 0;
    REQUIRE_CODE(cuMemcpyDtoH_v2(&found, out, 4), 0);
    REQUIRE_CODE(cuModuleUnload(module), 0);
    return found;
}

TEST(SimLinks, FunctionsAndVariablesOfOtherTextsAreFound) {
    in_own_process([] {
        open_device();
        for (const bool callee_first : {false, true}) {
            Linker link;
            REQUIRE_CODE(link.add(callee_first ? callee : caller, "a"), 0);
            REQUIRE_CODE(link.add(callee_first ? caller : callee, "b"), 0);
            REQUIRE_THAT(apply(link.complete(), 20) == 20 * 2 + 1000 + 7);
            REQUIRE_CODE(cuLinkDestroy(link.state), 0);
        }
    });
}

// Each block counts itself, waits for the grid, and tells how many it found.
const std::string grid = R"(.version 6.0
.target sm_50
.address_size 64
.extern .func (.param .b64 out) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 out) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry meet(.param .u64 counter, .param .u64 found)
{
    .reg .b64 %c, %f, %at, %handle;
    .reg .b32 %v, %block, %code, %thread;
    .reg .pred %other;
    .param .b32 scope;
    .param .b64 handle;
    .param .b32 flags;
    .param .b32 code;
    ld.param.u64 %c, [counter];
    ld.param.u64 %f, [found];
    st.param.b32 [scope], 1;
    call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %handle, [handle];
    mov.u32 %thread, %tid.x;
    setp.ne.u32 %other, %thread, 0;
    @!%other red.global.add.u32 [%c], 1;
    st.param.b64 [handle], %handle;
    st.param.b32 [flags], 0;
    call.uni (code), cudaCGSynchronize, (handle, flags);
    ld.param.b32 %code, [code];
    ld.volatile.global.u32 %v, [%c];
    mad.lo.u32 %v, %code, 1000, %v;
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %at, %block, 4;
    add.u64 %at, %f, %at;
    @!%other st.global.u32 [%at], %v;
    ret;
}
)";

TEST(SimLinks, TheDeviceRuntimeBringsCooperativeGrids) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        Linker link;
        constexpr int library = 4;
        const std::string runtime = "!<arch>\ncuda_device_runtime.o/ 0 0 0 644 4 `\nELF ";
        REQUIRE_CODE(link.add(grid), 0);
        REQUIRE_CODE(link.add(runtime, "libcudadevrt.a", library), 0);
        REQUIRE_CODE(link.add(runtime, "libcudadevrt.a", library), 0);  // a library once more brings nothing
        REQUIRE_CODE(link.add("!<arch>\nother.o/ 0 0 0 644 4 `\nELF ", "libother.a", library), 801);
        Module* module = nullptr;
        Function* meet = nullptr;
        REQUIRE_CODE(cuModuleLoadData(&module, link.complete()), 0);
        REQUIRE_CODE(cuModuleGetFunction(&meet, module, "meet"), 0);
        constexpr unsigned blocks = 7;
        Address counter = device_memory(4), found = device_memory(4 * blocks);
        void* parameters[] = {&counter, &found};
        unsigned seen[blocks] = {};
        for (unsigned round = 1; round <= 3; ++round) {
            REQUIRE_CODE(cuMemsetD32_v2(counter, 0, 1), 0);
            REQUIRE_CODE(cuLaunchCooperativeKernel(meet, blocks, 1, 1, 40, 1, 1, 0, nullptr, parameters), 0);
            REQUIRE_CODE(cuMemcpyDtoH_v2(seen, found, sizeof seen), 0);
            for (const unsigned one : seen) REQUIRE_THAT(one == blocks);
        }
        // A grid that is not cooperative has no handle: the function says so.
        REQUIRE_CODE(cuLaunchKernel(meet, 1, 1, 1, 40, 1, 1, 0, nullptr, parameters, nullptr), 0);
        REQUIRE_CODE(cuMemcpyDtoH_v2(seen, found, 4), 0);
        REQUIRE_THAT(seen[0] >= 1000);
    });
}

TEST(SimLinks, AResultThatAFunctionDoesNotGiveIsIgnored) {  // keeps W8's ground
    in_own_process(
        [] {
            open_device();
            const std::string head = ".version 6.0\n.target sm_50\n.address_size 64\n";
            const auto calls = [&](const std::string& result, const std::string& taken, const std::string& arguments) {
                return head + ".extern .func " + result + " consume(.param .b64 place);\n" +
                       ".visible .entry apply(.param .u64 out, .param .u32 value)\n{\n    .reg .b64 %d;\n"
                       "    .param .b64 place;\n    .param .b64 back;\n    ld.param.u64 %d, [out];\n"
                       "    st.param.b64 [place], %d;\n    call.uni " +
                       taken + " consume, (" + arguments + ");\n    ret;\n}\n";
            };
            const std::string gives_nothing =
                head +
                ".visible .func consume(.param .b64 place)\n{\n    .reg .b64 %d;\n"
                "    ld.param.b64 %d, [place];\n    st.global.u32 [%d], 42;\n    ret;\n}\n";
            Linker link;
            REQUIRE_CODE(link.add(calls("(.param .b64 back)", "(back),", "place")), 0);
            REQUIRE_CODE(link.add(gives_nothing), 0);
            REQUIRE_THAT(apply(link.complete(), 0) == 42);
            // Arguments that the function lacks are a fault.
            Linker other;
            REQUIRE_CODE(other.add(calls("", "", "place, place")), 0);
            REQUIRE_CODE(other.add(gives_nothing), 0);
            Module* module = nullptr;
            Function* function = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module, other.complete()), 0);
            REQUIRE_CODE(cuModuleGetFunction(&function, module, "apply"), 0);
            Address out = device_memory(4);
            unsigned value = 0;
            void* parameters[] = {&out, &value};
            REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 718);
        },
        "parameters are not those of consume");
}

TEST(SimLinks, AWeakDefinitionGivesWay) {
    in_own_process([] {
        open_device();
        std::string strong = callee;
        strong.replace(strong.find(".visible .global .align 4 .u32 added = 7;"), 41, "");
        for (const bool weak_first : {false, true}) {
            Linker link;
            REQUIRE_CODE(link.add(caller), 0);
            REQUIRE_CODE(link.add(weak_first ? weak : strong), 0);
            REQUIRE_CODE(link.add(weak_first ? strong : weak), 0);
            REQUIRE_THAT(apply(link.complete(), 20) == 20 * 2 + 1000 + 7);
        }
        Linker link;
        REQUIRE_CODE(link.add(caller), 0);
        REQUIRE_CODE(link.add(weak), 0);
        REQUIRE_THAT(apply(link.complete(), 20) == 5 + 1000 + 7);
    });
}

TEST(SimLinks, OfCommonVariablesTheLargestStays) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        const auto text = [](const char* entry, int words) {
            return ".version 7.5\n.target sm_75\n.address_size 64\n.common .global .align 4 .u32 table[" +
                   std::to_string(words) + "];\n.visible .entry " + entry +
                   "() { .reg .b32 %r; mov.u32 %r, 9; st.global.u32 [table+" + std::to_string(4 * words - 4) +
                   "], %r; ret; }\n";
        };
        for (const bool large_first : {false, true}) {
            Linker link;
            REQUIRE_CODE(link.add(text("one", large_first ? 4 : 1)), 0);
            REQUIRE_CODE(link.add(text("two", large_first ? 1 : 4)), 0);
            Module* module = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module, link.complete()), 0);
            Address place = 0;
            std::size_t bytes = 0;
            REQUIRE_CODE(cuModuleGetGlobal_v2(&place, &bytes, module, "table"), 0);
            REQUIRE_THAT(bytes == 16);
            for (const char* const name : {"one", "two"}) {
                Function* function = nullptr;
                REQUIRE_CODE(cuModuleGetFunction(&function, module, name), 0);
                REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 0);
            }
        }
    });
}

TEST(SimLinks, WhatNothingOrTwoTextsDefineIsNamed) {
    in_own_process([] {
        open_device();
        Linker twice;
        REQUIRE_CODE(twice.add(callee, "first.ptx"), 0);
        REQUIRE_CODE(twice.add(callee, "second.ptx"), 300);
        REQUIRE_THAT(std::strstr(twice.log, "Multiple definition of 'added' in 'second.ptx'"));
        void* image = nullptr;
        REQUIRE_CODE(cuLinkComplete(twice.state, &image, nullptr), 300);  // 580
        Linker missing;
        REQUIRE_CODE(missing.add(caller, "a"), 0);
        // As a driver 580 on an H200, which takes nothing more then.
        REQUIRE_CODE(cuLinkComplete(missing.state, &image, nullptr), 300);
        REQUIRE_THAT(std::string(missing.log) == "error   : Undefined reference to 'twice' in 'a'");
        REQUIRE_CODE(missing.add(callee, "b"), 1);
        REQUIRE_CODE(cuLinkAddFile_v2(missing.state, ptx, "/nowhere.ptx", 0, nullptr, nullptr), 1);
        REQUIRE_CODE(cuLinkComplete(missing.state, &image, nullptr), 1);
    });
}

TEST(SimLinks, FilesAndEarlierResultsAreInputsToo) {
    in_own_process(
        [] {
            open_device();
            char path[] = "/tmp/isthmus-link-XXXXXX";
            const int file = ::mkstemp(path);
            REQUIRE_THAT(file >= 0 && ::write(file, callee.data(), callee.size()) == static_cast<long>(callee.size()));
            ::close(file);
            Linker link;
            REQUIRE_CODE(link.add(caller), 0);
            REQUIRE_CODE(cuLinkAddFile_v2(link.state, ptx, path, 0, nullptr, nullptr), 0);
            ::unlink(path);
            const std::string first(static_cast<char*>(link.complete()));
            REQUIRE_THAT(apply(link.complete(), 3) == 1013);
            Linker again;
            REQUIRE_CODE(again.add(first, "cubin", cubin), 0);
            REQUIRE_THAT(apply(again.complete(), 3) == 1013);
            REQUIRE_CODE(link.add(caller), 1);  // 580: nothing behind cuLinkComplete
            Linker other;
            REQUIRE_CODE(cuLinkAddFile_v2(other.state, ptx, "/nowhere.ptx", 0, nullptr, nullptr), 301);
            REQUIRE_CODE(cuLinkAddFile_v2(other.state, ptx, nullptr, 0, nullptr, nullptr), 1);
            REQUIRE_CODE(other.add("\x7f"
                                   "ELF",
                                   nullptr, cubin),
                         801);
            REQUIRE_CODE(other.add("nothing", nullptr, fatbin), 801);
            REQUIRE_CODE(other.add(callee, nullptr, 6), 1);
            REQUIRE_CODE(other.add(callee, nullptr, -1), 1);
            REQUIRE_CODE(cuLinkAddFile_v2(nullptr, ptx, "/dev/null", 0, nullptr, nullptr), 400);
        },
        "has no PTX");
}

}  // namespace
}  // namespace isthmus::sim::test
