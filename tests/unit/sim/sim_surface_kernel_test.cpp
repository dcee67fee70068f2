// SPDX-License-Identifier: Apache-2.0
// Kernels from PTX that load and store surfaces: coordinates, boundaries, and what they may not reach.
#include "sim_array_scene.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace isthmus::sim::test {
namespace {

// An entry with a surface, a place in device memory, and three coordinates of one thread.
std::string text_of(const std::string& instructions) {
    return ".version 6.0\n.target sm_50\n.address_size 64\n"
           ".visible .entry k(.param .u64 s, .param .u64 p, .param .u32 x, .param .u32 y, .param .u32 z) {\n"
           ".reg .b64 %s, %p, %d<3>; .reg .b32 %x, %y, %z, %r<5>; .reg .b16 %h<5>;\n"
           "ld.param.u64 %s, [s]; ld.param.u64 %p, [p];\n"
           "ld.param.u32 %x, [x]; ld.param.u32 %y, [y]; ld.param.u32 %z, [z];\n" +
           instructions + "\nret;\n}\n";
}

Function* kernel(const std::string& instructions) {
    Module* module = nullptr;
    Function* function = nullptr;
    REQUIRE_CODE(cuModuleLoadData(&module, text_of(instructions).c_str()), 0);
    REQUIRE_CODE(cuModuleGetFunction(&function, module, "k"), 0);
    return function;
}

struct Place {
    int x = 0, y = 0, z = 0;
};

Result run(Function* function, SurfaceHandle surface, Address memory, Place at = {}) {
    void* parameters[] = {&surface, &memory, &at.x, &at.y, &at.z};
    REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
    return cuCtxSynchronize();
}

SurfaceHandle surface_of(Array* array) {
    TextureResource resource = {};
    resource.from.array = array;
    SurfaceHandle made = 0;
    REQUIRE_CODE(cuSurfObjectCreate(&made, &resource), 0);
    return made;
}

Array* filled(const ArrayDescription3D& description, std::size_t row_bytes, std::size_t rows, std::size_t layers) {
    Array* const array = new_array(description);
    const auto values = ascending(row_bytes * rows * layers);
    REQUIRE_CODE(copied(array_end(array), host_end(values.data(), row_bytes, rows), row_bytes, rows, layers), 0);
    return array;
}

unsigned word_at(Address memory) {
    unsigned value = 0;
    REQUIRE_CODE(cuMemcpyDtoH_v2(&value, memory, 4), 0);
    return value;
}

constexpr unsigned word(unsigned first) {  // four ascending bytes
    return first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24;
}

TEST(SimSurfaceKernels, LoadByCoordinates) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        const SurfaceHandle plane = surface_of(filled(described(16, 4, 0, u8, 1, with_surface), 16, 4, 1));
        Function* const load = kernel("suld.b.2d.b32.trap {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(load, plane, memory, {8, 3, 0}), 0);
        REQUIRE_THAT(word_at(memory) == word(56));
        Function* const bytes = kernel(
            "suld.b.2d.v4.b8.trap {%h0, %h1, %h2, %h3}, [%s, {%x, %y}];\nst.global.v4.u8 [%p], {%h0, %h1, %h2, %h3};");
        REQUIRE_CODE(run(bytes, plane, memory, {4, 1, 0}), 0);
        REQUIRE_THAT(word_at(memory) == word(20));
        Function* const wide = kernel("suld.b.2d.v2.b64.trap {%d0, %d1}, [%s, {%x, %y}];\nst.global.u64 [%p], %d1;");
        REQUIRE_CODE(run(wide, plane, memory, {0, 2, 0}), 0);
        REQUIRE_THAT(word_at(memory) == word(40));
        const SurfaceHandle line = surface_of(filled(described(8, 0, 0, u32, 1, with_surface), 32, 1, 1));
        Function* const of_line = kernel("suld.b.1d.b32.trap {%r0}, [%s, {%x}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(of_line, line, memory, {12, 0, 0}), 0);
        REQUIRE_THAT(word_at(memory) == word(12));
        const SurfaceHandle volume = surface_of(filled(described(4, 2, 3, u8, 1, with_surface), 4, 2, 3));
        Function* const of_volume =
            kernel("suld.b.3d.b32.trap {%r0}, [%s, {%x, %y, %z, %z}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(of_volume, volume, memory, {0, 1, 2}), 0);
        REQUIRE_THAT(word_at(memory) == word(20));
        const SurfaceHandle layers = surface_of(filled(described(4, 2, 3, u8, 1, with_surface | layered), 4, 2, 3));
        Function* const of_layers =
            kernel("suld.b.a2d.b32.trap {%r0}, [%s, {%z, %x, %y, %y}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(of_layers, layers, memory, {0, 0, 1}), 0);
        REQUIRE_THAT(word_at(memory) == word(8));
        const SurfaceHandle lines = surface_of(filled(described(8, 0, 3, u8, 1, with_surface | layered), 8, 1, 3));
        Function* const of_lines = kernel("suld.b.a1d.b32.trap {%r0}, [%s, {%z, %x}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(of_lines, lines, memory, {4, 0, 2}), 0);
        REQUIRE_THAT(word_at(memory) == word(20));
    });
}

TEST(SimSurfaceKernels, StoreByCoordinates) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        Array* const array = filled(described(8, 2, 2, u16, 1, with_surface | layered), 16, 2, 2);
        Function* const store = kernel("mov.u32 %r0, 0xaabbccdd;\nsust.b.a2d.b32.trap [%s, {%z, %x, %y, %y}], {%r0};");
        REQUIRE_CODE(run(store, surface_of(array), memory, {12, 1, 1}), 0);
        auto expected = ascending(64);
        for (const auto& [at, value] : {std::pair{60, 0xdd}, {61, 0xcc}, {62, 0xbb}, {63, 0xaa}}) {
            expected[static_cast<std::size_t>(at)] = static_cast<unsigned char>(value);
        }
        REQUIRE_THAT(content(array, 16, 2, 2) == expected);
        // A level of a mipmapped array, behind another one.
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D asked = described(8, 2, 0, u8, 1, with_surface);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &asked, 2), 0);
        Array *first = nullptr, *second = nullptr;
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&first, levels, 0), 0);
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&second, levels, 1), 0);
        const std::vector<unsigned char> zeros(16);
        REQUIRE_CODE(copied(array_end(first), host_end(zeros.data(), 8, 2), 8, 2), 0);
        REQUIRE_CODE(copied(array_end(second), host_end(zeros.data(), 4, 1), 4, 1), 0);
        Function* const byte = kernel("mov.u16 %h0, 7;\nsust.b.2d.b8.trap [%s, {%x, %y}], {%h0};");
        REQUIRE_CODE(run(byte, surface_of(second), memory, {1, 0, 0}), 0);
        REQUIRE_THAT(content(second, 4)[1] == 7 && content(first, 8, 2) == zeros);
    });
}

TEST(SimSurfaceKernels, OutsideTheyClampDropOrTrap) {
    in_own_process(
        [] {
            open_device();
            const Address memory = device_memory(64);
            Array* const array = filled(described(16, 4, 0, u8, 1, with_surface), 16, 4, 1);
            const SurfaceHandle surface = surface_of(array);
            Function* const clamped = kernel("suld.b.2d.b32.clamp {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
            const std::pair<Place, unsigned> edges[] = {
                {{16, 0, 0}, 12}, {{-4, 1, 0}, 16}, {{4, 4, 0}, 52}, {{4, -9, 0}, 4}, {{1 << 30, 1 << 30, 0}, 60}};
            for (const auto& [at, first] : edges) {
                REQUIRE_CODE(run(clamped, surface, memory, at), 0);
                REQUIRE_THAT(word_at(memory) == word(first));
            }
            Function* const zero = kernel("suld.b.2d.b32.zero {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
            for (const Place at : {Place{16, 0, 0}, {-4, 0, 0}, {0, 4, 0}, {0, -1, 0}}) {
                REQUIRE_CODE(run(zero, surface, memory, at), 0);
                REQUIRE_THAT(word_at(memory) == 0);
            }
            REQUIRE_CODE(run(zero, surface, memory, {4, 0, 0}), 0);
            REQUIRE_THAT(word_at(memory) == word(4));
            Function* const drop = kernel("mov.u32 %r0, 5;\nsust.b.2d.b32.zero [%s, {%x, %y}], {%r0};");
            REQUIRE_CODE(run(drop, surface, memory, {16, 3, 0}), 0);
            REQUIRE_THAT(content(array, 16, 4) == ascending(64));
            Function* const nearest = kernel("mov.u32 %r0, 5;\nsust.b.2d.b32.clamp [%s, {%x, %y}], {%r0};");
            REQUIRE_CODE(run(nearest, surface, memory, {16, 9, 0}), 0);
            REQUIRE_THAT(content(array, 16, 4)[60] == 5 && content(array, 16, 4)[59] == 59);
            Function* const trap = kernel("mov.u32 %r0, 5;\nsust.b.2d.b32.trap [%s, {%x, %y}], {%r0};");
            REQUIRE_CODE(run(trap, surface, memory, {16, 0, 0}), 700);  // 580, H200
        },
        "a write of 4 bytes at x = 16 bytes, y = 0, z = 0 of a surface of 16 bytes by 4 by 1: it lies outside");
}

TEST(SimSurfaceKernels, WhatTheyMayNotReachLosesTheDevice) {
    const auto ends = [](Result code, const char* says, Place at, bool destroyed_array, bool destroyed_surface) {
        in_own_process(
            [&] {
                open_device();
                Array* const array = filled(described(16, 4, 0, u8, 1, with_surface), 16, 4, 1);
                const SurfaceHandle surface = surface_of(array);
                Function* const load = kernel("suld.b.2d.b32.zero {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
                const Address memory = device_memory(64);
                if (destroyed_surface) REQUIRE_CODE(cuSurfObjectDestroy(surface), 0);
                if (destroyed_array) REQUIRE_CODE(cuArrayDestroy(array), 0);
                REQUIRE_CODE(run(load, surface, memory, at), code);
            },
            says);
    };
    ends(716, "x is no multiple of them", {2, 0, 0}, false, false);
    ends(700, "its array was destroyed", {0, 0, 0}, true, false);
    ends(700, "it is no surface object, or it was destroyed", {0, 0, 0}, false, true);
}

// The number of a destroyed array is not given to another one: a surface or texture object may still name it.
TEST(SimSurfaceKernels, AnObjectOfADestroyedArrayDoesNotReachTheNextOne) {  // keeps W8
    const auto ends = [](const char* says, const std::string& instruction, bool of_texture, bool of_level) {
        in_own_process(
            [&] {
                open_device();
                const ArrayDescription3D description = described(16, 4, 0, u8, 1, with_surface);
                MipmappedArray* levels = nullptr;
                Array* array = nullptr;
                if (of_level) {
                    REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &description, 2), 0);
                    REQUIRE_CODE(cuMipmappedArrayGetLevel(&array, levels, 0), 0);
                } else {
                    array = filled(description, 16, 4, 1);
                }
                TextureHandle object = 0;
                if (of_texture) {
                    TextureResource resource = {};
                    resource.from.array = array;
                    const TextureSampling sampling = {};
                    REQUIRE_CODE(cuTexObjectCreate(&object, &resource, &sampling, nullptr), 0);
                } else {
                    object = surface_of(array);
                }
                Function* const load = kernel(instruction);
                const Address memory = device_memory(64);
                REQUIRE_CODE(run(load, object, memory), 0);
                REQUIRE_CODE(of_level ? cuMipmappedArrayDestroy(levels) : cuArrayDestroy(array), 0);
                Array* const other = filled(description, 16, 4, 1);
                REQUIRE_THAT(other != array);
                REQUIRE_CODE(run(load, object, memory), 700);
            },
            says);
    };
    const std::string load = "suld.b.2d.b32.zero {%r0}, [%s, {%x, %y}];";
    const std::string fetch = "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%s, {%x, %y}];";
    for (const bool of_level : {false, true}) {
        ends("of a surface: its array was destroyed", load, false, of_level);
        ends("a fetch of texture 0x.*: its array was destroyed", fetch, true, of_level);
    }
}

// A kernel that is queued reads the array: its destruction waits for the device. Also a level's, and the whole's.
TEST(SimSurfaceKernels, ArraysEndAfterTheKernelsThatAreQueued) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        Function* const load = kernel("suld.b.2d.b32.trap {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
        const auto reads_until = [&](Array* array, auto destroy) {
            SurfaceHandle surface = surface_of(array);
            Address to = memory;
            Place at = {4, 1, 0};
            void* parameters[] = {&surface, &to, &at.x, &at.y, &at.z};
            REQUIRE_CODE(cuMemsetD8_v2(memory, 0, 64), 0);
            REQUIRE_CODE(
                cuLaunchHostFunc(
                    nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr),
                0);
            REQUIRE_CODE(cuLaunchKernel(load, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
            REQUIRE_CODE(destroy(), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            REQUIRE_THAT(word_at(memory) == word(20));
        };
        Array* const plain = filled(described(16, 4, 0, u8, 1, with_surface), 16, 4, 1);
        reads_until(plain, [&] { return cuArrayDestroy(plain); });
        const ArrayDescription3D asked = described(16, 4, 0, u8, 1, with_surface);
        for (const bool whole : {false, true}) {
            MipmappedArray* levels = nullptr;
            Array* level = nullptr;
            REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &asked, 2), 0);
            REQUIRE_CODE(cuMipmappedArrayGetLevel(&level, levels, 0), 0);
            const auto values = ascending(64);
            REQUIRE_CODE(copied(array_end(level), host_end(values.data(), 16, 4), 16, 4), 0);
            reads_until(level, [&] { return whole ? cuMipmappedArrayDestroy(levels) : cuArrayDestroy(level); });
        }
    });
}

TEST(SimSurfaceKernels, WholeNv12ArraysAreNotModelled) {
    in_own_process(
        [] {
            open_device();
            const SurfaceHandle surface = surface_of(new_array(described(8, 4, 0, nv12, 3, for_video)));
            Function* const load = kernel("suld.b.2d.b32.zero {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
            REQUIRE_CODE(run(load, surface, device_memory(64)), 715);
        },
        "surfaces of whole NV12 arrays are not modelled");
    in_own_process([] {  // their planes are
        open_device();
        Array* luma = nullptr;
        REQUIRE_CODE(cuArrayGetPlane(&luma, new_array(described(8, 4, 0, nv12, 3, for_video)), 0), 0);
        const auto values = ascending(32);
        REQUIRE_CODE(copied(array_end(luma), host_end(values.data(), 8, 4), 8, 4), 0);
        const Address memory = device_memory(64);
        Function* const load = kernel("suld.b.2d.b32.zero {%r0}, [%s, {%x, %y}];\nst.global.u32 [%p], %r0;");
        REQUIRE_CODE(run(load, surface_of(luma), memory, {4, 1, 0}), 0);
        REQUIRE_THAT(word_at(memory) == word(12));
    });
}

TEST(SimSurfaceKernels, FormattedAccessesAndTexturesAreRefusedByName) {
    const auto refused = [](const std::string& instruction) {
        const std::string name = instruction.substr(0, instruction.find('.'));
        in_own_process(
            [&] {
                open_device();
                Module* module = nullptr;
                Function* function = nullptr;
                SurfaceHandle surface = 0;
                Address memory = 0;
                Place at;
                void* parameters[] = {&surface, &memory, &at.x, &at.y, &at.z};
                const Result loaded = cuModuleLoadData(&module, text_of(instruction).c_str());
                if (loaded != 0) return;
                REQUIRE_CODE(cuModuleGetFunction(&function, module, "k"), 0);
                REQUIRE_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 801);
            },
            name.c_str());
    };
    refused("sust.p.2d.b32.trap [%s, {%x, %y}], {%r0};");
    refused("suld.b.2d.b32 {%r0}, [%s, {%x, %y}];");
    refused("suld.b.2d.v4.b64.trap {%d0, %d1, %d0, %d1}, [%s, {%x, %y}];");
    refused("suld.b.2d.b32.trap {%r0}, [%s, {%x}];");
    refused("suld.b.2d.b32.trap {%r0, %r1}, [%s, {%x, %y}];");
    refused("suld.b.2d.b32.trap {%r0}, [%s];");
    refused("txq.num_samples.b32 %r0, [%s];");
    refused("tex.2dms.v4.s32.s32 {%r0, %r1, %r2, %r3}, [%s, {%x, %y, %z, %z}];");
}

}  // namespace
}  // namespace isthmus::sim::test
