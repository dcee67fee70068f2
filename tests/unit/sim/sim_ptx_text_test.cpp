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

TEST(SimPtxTexts, TheHostMayNotTouchAManagedVariableWhileWorkRunsWhereThatIsNotConcurrent) {  // keeps A8's ground
    const auto touch_too_early = [] {
        open_device();
        Module* module = nullptr;
        REQUIRE_CODE(load(with_managed, &module), 0);
        const Address count = variable(module, "shared_count");
        Stream* const stream = new_stream();
        auto* gate = new Gate();
        REQUIRE_CODE(launch_hold(stream, *gate), 0);
        wait_until(gate->begun);
        *as_pointer(count) = 2;
        gate->released = 1;
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

}  // namespace
}  // namespace isthmus::sim::test
