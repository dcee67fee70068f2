// SPDX-License-Identifier: Apache-2.0
// What the loader and the linker make of a PTX text: its managed variables, and what an assembler refuses.
#include "sim_kernel_scene.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

namespace isthmus::sim::test {
namespace {

std::string text_of(const std::string& body) {
    return ".version 7.5\n.target sm_75\n.address_size 64\n" + body;
}

Result load(const std::string& text, Module** out = nullptr, std::string* log = nullptr) {
    char buffer[512] = {};
    int options[] = {5, 6};
    void* values[] = {buffer, reinterpret_cast<void*>(sizeof buffer)};
    Module* module = nullptr;
    const Result code = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    if (log) *log = buffer;
    if (out) *out = module;
    return code;
}

Result launch(Module* module, const char* name, Stream* stream = nullptr) {
    return cuLaunchKernel(entry(module, name), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

// As nvcc writes a variable of __managed__.
const std::string with_managed = text_of(R"(
.visible .global .attribute(.managed) .align 4 .u32 shared_count = 7;
.visible .global .align 4 .u32 own = 7;
.visible .entry add()
{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [shared_count];
    add.u32 %r1, %r1, 1;
    st.global.u32 [shared_count], %r1;
    ret;
}
.visible .entry nothing() { ret; }
)");

Address variable(Module* module, const char* name) {
    Address place = 0;
    std::size_t bytes = 0;
    REQUIRE_CODE(cuModuleGetGlobal_v2(&place, &bytes, module, name), 0);
    REQUIRE_THAT(bytes == 4);
    return place;
}

TEST(SimPtxTexts, ManagedVariablesLieInManagedMemory) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        Module* module = nullptr;
        REQUIRE_CODE(load(with_managed, &module), 0);
        const Address count = variable(module, "shared_count"), own = variable(module, "own");
        constexpr int is_managed = 8;  // CU_POINTER_ATTRIBUTE_IS_MANAGED
        unsigned answer = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&answer, is_managed, count), 0);
        REQUIRE_THAT(answer == 1);
        REQUIRE_CODE(cuPointerGetAttribute(&answer, is_managed, own), 0);
        REQUIRE_THAT(answer == 0);
        REQUIRE_THAT(*as_pointer(count) == 7);
        REQUIRE_CODE(launch(module, "add"), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(*as_pointer(count) == 8);
        *as_pointer(count) = 20;
        REQUIRE_CODE(launch(module, "add"), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(*as_pointer(count) == 21);
        // The machine's rules for memory that is attached to a stream.
        Stream* const mine = new_stream();
        Stream* const other = new_stream();
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, count, 0, 4), 0);
        REQUIRE_CODE(launch(module, "add", mine), 0);
        REQUIRE_CODE(cuStreamSynchronize(mine), 0);
        REQUIRE_CODE(cuStreamAttachMemAsync(mine, own, 0, 4), 1);
        REQUIRE_CODE(launch(module, "add", other), 0);
        REQUIRE_CODE(cuStreamSynchronize(other), concurrent_managed() ? 0 : 700);
    });
}

TEST(SimPtxTexts,
     TheHostMayNotTouchAManagedVariableBeforeItSynchronisesWhereThatIsNotConcurrent) {  // keeps A8's ground
    const auto touch_too_early = [] {
        open_device();
        Module* module = nullptr;
        REQUIRE_CODE(load(with_managed, &module), 0);
        const Address count = variable(module, "shared_count");
        Stream* const stream = new_stream();
        auto* gate = new Gate();
        REQUIRE_CODE(launch_hold(stream, *gate), 0);
        wait_until(gate->begun);
        gate->released = 1;
        // Page protection closes the memory when no work runs any more.
        if (std::strcmp(isthmus_sim_protection(), "pages") == 0) {
            while (isthmus_sim_live("gpu_work") != 0) {
            }
        }
        *as_pointer(count) = 2;  // nothing has synchronised with the kernel
        if (concurrent_managed()) std::_Exit(0);
        std::_Exit(2);  // not reached
    };
    const char* const machine = std::getenv("ISTHMUS_SIM");
    const bool guarded = machine && (std::strcmp(machine, "orin") == 0 || std::strcmp(machine, "rtx-wsl2") == 0);
    if (guarded) {
        in_own_process_faults(touch_too_early, "CONCURRENT_MANAGED_ACCESS is 0");
    } else {
        in_own_process(touch_too_early);
    }
}

TEST(SimPtxTexts, ALibraryTellsItsManagedVariables) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        Module* library = nullptr;
        REQUIRE_CODE(cuLibraryLoadData(&library, with_managed.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
        Address place = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuLibraryGetManaged(&place, &bytes, library, "shared_count"), 0);
        REQUIRE_THAT(bytes == 4 && *as_pointer(place) == 7);
        REQUIRE_CODE(cuLibraryGetManaged(&place, &bytes, library, "own"), 500);
        REQUIRE_CODE(cuLibraryGetManaged(&place, &bytes, library, "unheard"), 500);
        REQUIRE_CODE(cuLibraryGetManaged(&place, &bytes, library, nullptr), 1);
    });
}

// PTX ISA, .target: with `a` for one architecture alone, with `f` for its family.
TEST(SimPtxTexts, CodeForAnotherArchitectureIsRefused) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        const int capability = fact(attribute::cc_major) * 10 + fact(attribute::cc_minor);
        const int ptx_of_driver = version() >= 13000 ? 90 : 70;
        std::string log;
        const auto load_for = [&](int target, const char* suffix) {
            return load(".version " + std::string(ptx_of_driver == 90 ? "9.0" : "7.0") + "\n.target sm_" +
                            std::to_string(target) + suffix + "\n.address_size 64\n.visible .entry k() { ret; }",
                        nullptr, &log);
        };
        REQUIRE_CODE(load_for(capability, "a"), 0);
        REQUIRE_CODE(load_for(capability, "f"), 0);
        REQUIRE_CODE(load_for(70, ""), 0);
        REQUIRE_CODE(load_for(70, "a"), 218);
        REQUIRE_THAT(log.find("'sm_70a' cannot be compiled to future architecture") != std::string::npos);
        REQUIRE_CODE(load_for(60, "f"), 218);
        REQUIRE_THAT(log.find("different SM-family") != std::string::npos);
        REQUIRE_CODE(load_for(capability + 10, "a"), 218);
        REQUIRE_THAT(log.find("higher than") != std::string::npos);
    });
}

// Each as ptxas 13.0 answers, with the line.
TEST(SimPtxTexts, WhatAnAssemblerRefusesIsNoModule) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        const auto entry_with = [](const std::string& body) {
            return text_of(
                ".global .align 4 .u32 there;\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<5>; .reg .u32 %u<5>; "
                ".reg .b64 %d<5>; .reg .f32 %f<5>; .reg .f64 %e<5>; .reg .pred %p<5>;\n" +
                body + "\nret;\n}\n");
        };
        const std::pair<const char*, const char*> wrong[] = {
            {"mov.u32 %r9, 1;", "Unknown symbol '%r9'"},
            {"add.u32 %r1, %r2, %r5;", "Unknown symbol '%r5'"},
            {"mov.u64 %d1, nowhere;", "Unknown symbol 'nowhere'"},
            {"ld.global.u32 %r1, [nowhere];", "Unknown symbol 'nowhere'"},
            {"@%p9 ret;", "Unknown symbol '%p9'"},
            {"bra NOWHERE;", "Unknown symbol 'NOWHERE'"},
            {"bra IN; { IN: }", "Unknown symbol 'IN'"},
            {"call nowhere;", "Unknown symbol 'nowhere'"},
            {"L: L: bra L;", "Duplicate definition of label 'L'"},
            {".reg .b32 a; .reg .b64 a;", "Duplicate definition of variable 'a'"},
            {".reg .b32 %r1;", "Duplicate definition of variable '%r1'"},
            {".local .u32 v; .local .u32 v;", "Duplicate definition of variable 'v'"},
            {".reg .b32 p;", "Duplicate definition of variable 'p'"},
            {"mov.u32 %r1, %d1;", "Arguments mismatch for instruction 'mov'"},
            {"mov.u32 %f1, %r1;", "Arguments mismatch for instruction 'mov'"},
            {"add.u32 %r1, %f1, %f2;", "Arguments mismatch for instruction 'add'"},
            {"add.s32 %d1, %r1, %r2;", "Arguments mismatch for instruction 'add'"},
            {"add.f32 %f1, %u1, %f1;", "Arguments mismatch for instruction 'add'"},
            {"add.u32 %r1, %r2;", "Arguments mismatch for instruction 'add'"},
            {"shl.b64 %d1, %d2, %d3;", "Arguments mismatch for instruction 'shl'"},
            {"div.f32 %f1, %f2, %f3;", "Rounding modifier"},
            {"sqrt.f64 %e1, %e2;", "Rounding modifier"},
            {"fma.f32 %f1, %f2, %f3, %f4;", "Rounding modifier"},
            {"cvt.s32.f32 %r1, %f1;", "Rounding modifier"}};
        for (const auto& [body, why] : wrong) {
            std::string log;
            const Result code = load(entry_with(body), nullptr, &log);
            if (code != 218 || log.find("line 8; error   : " + std::string(why)) == std::string::npos) {
                std::fprintf(stderr, "%s: %d, %s\n", body, code, log.c_str());
                std::_Exit(1);
            }
        }
        for (const char* const right :
             {"mov.b32 %f1, %r1;", "add.f32 %f1, %r1, %f2;", "and.b32 %f1, %f2, %r3;", "add.s32 %u1, %u2, %r3;",
              "ld.global.u32 %d1, [%d2];", "cvt.u16.u32 %r1, %r2;", "{ .reg .b32 %r1; mov.u32 %r1, 1; }",
              "{ L: } { L: bra L; }", "mov.b64 {%f1, %r1}, %d1;", "mul.wide.u32 %d1, %r1, %u2;",
              "shl.b64 %d1, %d2, %r3;", "div.approx.f32 %f1, %f2, %f3;", "fma.rn.f64 %e1, %e2, %e3, %e4;",
              ".local .u32 there;"}) {
            const Result code = load(entry_with(right));
            if (code != 0) std::fprintf(stderr, "%s: %d\n", right, code);
            REQUIRE_THAT(code == 0);
        }
        std::string log;
        REQUIRE_CODE(load(text_of(".global .u32 a;\n.global .u32 a;\n"), nullptr, &log), 218);
        REQUIRE_THAT(log.find("line 5; error   : Duplicate definition of variable 'a'") != std::string::npos);
        REQUIRE_CODE(load(text_of(".entry k() { ret; }\n.entry k() { ret; }\n"), nullptr, &log), 218);
        REQUIRE_THAT(log.find("Duplicate definition of function 'k'") != std::string::npos);
        REQUIRE_CODE(load(text_of(".weak .global .u32 a;\n.weak .global .u32 a;\n")), 0);
        // Register names that this simulator may not know, and entries that it refuses, are no fault of the text.
        REQUIRE_CODE(load(entry_with("mov.u32 %r1, %envreg31;")), 0);
        REQUIRE_CODE(load(entry_with("wgmma.fence.sync.aligned; mov.u32 %r9, 1;")), 0);
    });
}

TEST(SimPtxTexts, ConstantsHave64KiB) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        const auto text = [](const char* bytes) {
            return text_of(".visible .const .align 1 .b8 a[65530];\n.visible .const .align 2 .b8 b[" +
                           std::string(bytes) + "];\n.visible .entry k() { ret; }\n");
        };
        std::string log;
        REQUIRE_CODE(load(text("6")), 0);
        REQUIRE_CODE(load(text("7"), nullptr, &log), 222);  // as a driver 580 on an H100
        REQUIRE_THAT(log.find("too much global constant data (0x10001 bytes, 0x10000 max)") != std::string::npos);
    });
}

TEST(SimPtxTexts, AVariableThatNothingDefinesIsNamed) {  // keeps W8's ground
    in_own_process([] {
        open_device();
        const std::string declared = text_of(".extern .global .align 4 .u32 elsewhere;\n");
        const std::string used =
            declared + ".visible .entry k() { .reg .b32 %r; ld.global.u32 %r, [elsewhere]; ret; }\n";
        // As a driver 580 on an H100: the loader makes it a variable of the module, unless it has no size.
        Module* module = nullptr;
        REQUIRE_CODE(load(used, &module), 0);
        Address place = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuModuleGetGlobal_v2(&place, &bytes, module, "elsewhere"), 0);
        REQUIRE_THAT(bytes == 4);
        std::string log;
        const std::string without_size = ".extern .global .align 4 .b8 table[];\n.visible .entry k() { ret; }\n";
        REQUIRE_CODE(load(text_of(without_size), nullptr, &log), 218);
        REQUIRE_THAT(log.find("fatal   : Unresolved extern variable 'table'") != std::string::npos);
        REQUIRE_CODE(load(declared + ".visible .entry k() { ret; }\n"), 0);
        LinkState* link = nullptr;
        char text[256] = {};
        int options[] = {5, 6};
        void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
        void* image = nullptr;
        REQUIRE_CODE(cuLinkCreate_v2(2, options, values, &link), 0);
        std::string input = used;
        REQUIRE_CODE(cuLinkAddData_v2(link, 1, input.data(), input.size() + 1, "a", 0, nullptr, nullptr), 0);
        REQUIRE_CODE(cuLinkComplete(link, &image, nullptr), 300);
        REQUIRE_THAT(std::string(text) == "error   : Undefined reference to 'elsewhere' in 'a'");
    });
}

}  // namespace
}  // namespace isthmus::sim::test
