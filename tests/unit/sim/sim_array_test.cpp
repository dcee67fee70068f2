// SPDX-License-Identifier: Apache-2.0
// Arrays: what a device can have, their memory, levels and planes, and handles that denote nothing any more.
#include "sim_array_scene.hpp"

#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

namespace isthmus::sim::test {
namespace {

auto members(const ArrayDescription3D& of) {
    return std::tie(of.width, of.height, of.depth, of.format, of.channels, of.flags);
}

TEST(SimArrays, AreDescribedAsMade) {
    in_own_process([] {
        open_device();
        const ArrayDescription plain = {32, 16, f32, 2};
        Array* array = nullptr;
        REQUIRE_CODE(cuArrayCreate_v2(&array, &plain), 0);
        ArrayDescription flat = {};
        ArrayDescription3D whole = {};
        REQUIRE_CODE(cuArrayGetDescriptor_v2(&flat, array), 0);
        REQUIRE_THAT(flat.width == 32 && flat.height == 16 && flat.format == f32 && flat.channels == 2);
        REQUIRE_CODE(cuArray3DGetDescriptor_v2(&whole, array), 0);
        REQUIRE_THAT(whole.width == 32 && whole.height == 16 && whole.depth == 0 && whole.flags == 0);
        REQUIRE_CODE(cuArrayDestroy(array), 0);
        for (const ArrayDescription3D& asked :
             {described(7, 0, 0, u8, 4), described(5, 4, 3, u16, 2, with_surface), described(8, 0, 3, u8, 1, layered),
              described(8, 4, 3, u8, 1, layered), described(4, 4, 6, u32, 1, cubemap),
              described(4, 4, 12, u32, 1, cubemap | layered), described(8, 8, 0, f32, 1, with_gather),
              described(8, 8, 0, 0xc4, 2)}) {
            array = new_array(asked);
            REQUIRE_CODE(cuArray3DGetDescriptor_v2(&whole, array), 0);
            REQUIRE_THAT(members(whole) == members(asked));
            REQUIRE_CODE(cuArrayDestroy(array), 0);
        }
        REQUIRE_THAT(isthmus_sim_live("arrays") == 0);
    });
}

TEST(SimArrays, WhatIsNoArrayIsRefused) {
    in_own_process([] {
        open_device();
        const ArrayDescription3D right = described(8, 8, 0, u8);
        Array* array = nullptr;
        REQUIRE_CODE(cuArray3DCreate_v2(nullptr, &right), 1);
        REQUIRE_CODE(cuArray3DCreate_v2(&array, nullptr), 1);
        REQUIRE_CODE(cuArrayCreate_v2(&array, nullptr), 1);
        REQUIRE_CODE(array_code(described(0, 8, 0, u8)), 1);
        REQUIRE_CODE(array_code(described(8, 0, 8, u8)), 1);  // layers without the flag
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 1, layered)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 3)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 0)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, 0x55)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, 0xc4, 4)), 1);  // a format of two channels
        REQUIRE_CODE(array_code(described(8, 4, 6, u8, 1, cubemap)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 5, u8, 1, cubemap)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 12, u8, 1, cubemap)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 8, u8, 1, with_gather)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 1, 512)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 1, sparse)), 801);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 1, mapped_later)), 801);
        REQUIRE_CODE(array_code(described(8, 8, 0, 0x91, 4)), 801);  // block-compressed
        // As a driver 580 on an H200: flags for graphics are refused, that for video is taken and NV12 needs it.
        REQUIRE_CODE(array_code(described(8, 8, 0, f32, 1, 16)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 4, 32)), 1);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8, 4, for_video)), 0);
        REQUIRE_CODE(array_code(described(8, 8, 0, nv12, 3)), 1);
        REQUIRE_CODE(array_code(right), 0);
    });
}

TEST(SimArrays, ExtentsEndWhereTheDeviceSays) {
    in_own_process([] {
        open_device();
        struct Edge {
            int id;
            ArrayDescription3D description;
            std::size_t ArrayDescription3D::*extent;
        };
        const auto w = &ArrayDescription3D::width, h = &ArrayDescription3D::height, n = &ArrayDescription3D::depth;
        const Edge edges[] = {
            {attribute::texture_1d_width, described(1, 0, 0, u8), w},
            {attribute::texture_2d_width, described(1, 1, 0, u8), w},
            {attribute::texture_2d_height, described(1, 1, 0, u8), h},
            {attribute::texture_3d_width, described(1, 1, 1, u8), w},
            {attribute::texture_3d_height, described(1, 1, 1, u8), h},
            {attribute::texture_3d_depth_alternate, described(1, 1, 1, u8), n},
            {attribute::texture_1d_layered_width, described(1, 0, 1, u8, 1, layered), w},
            {attribute::texture_1d_layers, described(1, 0, 1, u8, 1, layered), n},
            {attribute::texture_2d_layered_width, described(1, 1, 1, u8, 1, layered), w},
            {attribute::texture_2d_layered_height, described(1, 1, 1, u8, 1, layered), h},
            {attribute::texture_2d_layers, described(1, 1, 1, u8, 1, layered), n},
            {attribute::cubemap_layers, described(1, 1, 1, u8, 1, layered | cubemap), n},
            {attribute::gather_width, described(1, 1, 0, u8, 1, with_gather), w},
            {attribute::gather_height, described(1, 1, 0, u8, 1, with_gather), h},
            {attribute::surface_1d_width, described(1, 0, 0, u8, 1, with_surface), w},
            {attribute::surface_2d_height, described(1, 1, 0, u8, 1, with_surface), h},
            {attribute::surface_3d_depth, described(1, 1, 1, u8, 1, with_surface), n},
            {attribute::surface_2d_layers, described(1, 1, 1, u8, 1, with_surface | layered), n},
        };
        for (const Edge& edge : edges) {
            ArrayDescription3D asked = edge.description;
            asked.*edge.extent = static_cast<std::size_t>(fact(edge.id));
            if (asked.*edge.extent == 0) continue;  // not in this record
            REQUIRE_CODE(array_code(asked), 0);
            asked.*edge.extent += (edge.description.flags & cubemap) != 0 ? 6 : 1;
            REQUIRE_CODE(array_code(asked), 1);
        }
        // A volume fits within one of two triples, not within parts of both.
        const auto most = [](int id) { return static_cast<std::size_t>(fact(id)); };
        const std::size_t wide = most(attribute::texture_3d_width), deep = most(attribute::texture_3d_depth_alternate);
        if (wide > most(attribute::texture_3d_width_alternate) && deep > most(attribute::texture_3d_depth)) {
            REQUIRE_CODE(array_code(described(wide, 1, deep, u8)), 1);
        }
    });
}

TEST(SimArrays, TakeMemoryOfTheDevice) {
    in_own_process([] {
        open_device();
        const std::size_t before = free_memory();
        Array* const array = new_array(described(1024, 1024, 0, u8, 4));
        REQUIRE_THAT(free_memory() == before - (4u << 20));
        REQUIRE_THAT(isthmus_sim_live("arrays") == 1);
        REQUIRE_CODE(cuArrayDestroy(array), 0);
        REQUIRE_THAT(free_memory() == before && isthmus_sim_live("arrays") == 0);
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(0, 1 << 20) == 0);
        REQUIRE_CODE(array_code(described(1024, 1024, 0, u8, 4)), 2);
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D large = described(1024, 1024, 0, u8);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &large, 1), 0);
        REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 0);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &large, 2), 2);
    });
}

// The start of the only mapping of that many bytes that can be read and written.
void* mapping_of(std::size_t bytes) {
    std::FILE* const maps = std::fopen("/proc/self/maps", "r");
    REQUIRE_THAT(maps != nullptr);
    unsigned long from = 0, to = 0;
    void* found = nullptr;
    char line[512], access[5] = {};
    while (std::fgets(line, sizeof(line), maps)) {
        if (std::sscanf(line, "%lx-%lx %4s", &from, &to, access) == 3 && to - from == bytes && access[0] == 'r') {
            REQUIRE_THAT(found == nullptr);
            found = reinterpret_cast<void*>(from);
        }
    }
    std::fclose(maps);
    return found;
}

TEST(SimArrays, AreClosedToTheCpuOnEveryMachine) {  // keeps A6's ground
    in_own_process_faults(
        [] {
            open_device();
            constexpr std::size_t bytes = 4096 * 1237;  // of no other mapping
            new_array(described(4096, 1237, 0, u8));
            const std::string protection = isthmus_sim_protection();
            if (protection != "keys") {
                REQUIRE_THAT(protection != "pages" || mapping_of(bytes) == nullptr);
                std::fprintf(stderr, "memory of device 0 that no CPU can reach\n");
                std::raise(SIGSEGV);
            }
            volatile char* const at = static_cast<char*>(mapping_of(bytes));
            REQUIRE_THAT(at != nullptr);
            (void)*at;
            std::_Exit(1);
        },
        "memory of device 0 that no CPU can reach");
}

TEST(SimArrays, HandlesThatDenoteNothingAreRefused) {
    in_own_process([] {
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(array_code(described(8, 0, 0, u8)), 201);
        open_device();
        Array* const array = new_array(described(8, 0, 0, u8));
        ArrayDescription3D whole = {};
        ArrayDescription flat = {};
        char bytes[8] = {};
        REQUIRE_CODE(cuArray3DGetDescriptor_v2(nullptr, array), 1);
        REQUIRE_CODE(cuArrayGetDescriptor_v2(nullptr, array), 1);
        REQUIRE_CODE(cuArrayDestroy(array), 0);
        Array* const invented = reinterpret_cast<Array*>(&whole);
        for (Array* const none : {invented, static_cast<Array*>(nullptr)}) {
            REQUIRE_CODE(cuArrayDestroy(none), 400);
            REQUIRE_CODE(cuArray3DGetDescriptor_v2(&whole, none), 400);
            REQUIRE_CODE(cuArrayGetDescriptor_v2(&flat, none), 400);
            REQUIRE_CODE(cuArrayGetSparseProperties(nullptr, none), none ? 400 : 1);  // 580, H200
            REQUIRE_CODE(cuArrayGetMemoryRequirements(nullptr, none, 0), 400);
        }
        REQUIRE_CODE(cuMemcpyAtoH_v2(bytes, nullptr, 0, 8), 1);
        REQUIRE_CODE(copied(host_end(bytes), array_end(nullptr), 8), 1);
        // With its context.
        Context* made = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&made, 0, 0), 0);
        Array* const lost = new_array(described(8, 0, 0, u8));
        const std::size_t before = free_memory();
        Context* const primary = open_device();
        REQUIRE_CODE(cuMemcpyAtoH_v2(bytes, lost, 0, 8), 0);  // 580, H200: of another context of the device
        REQUIRE_CODE(cuCtxDestroy_v2(made), 0);
        REQUIRE_THAT(free_memory() == before + 8 && isthmus_sim_live("arrays") == 0);
        REQUIRE_CODE(cuCtxSetCurrent(primary), 0);
        REQUIRE_CODE(cuMemcpyAtoH_v2(bytes, lost, 0, 8), 709);
        REQUIRE_CODE(cuArrayDestroy(lost), 709);
    });
}

// As a driver 580 on an H200, where each of these ended in a segmentation fault.
TEST(SimArrays, CallsForADestroyedOneEndTheProcess) {
    const auto crashes = [](const std::function<void(Array*)>& use, const char* says) {
        in_own_process_faults(
            [&] {
                open_device();
                Array* const array = new_array(described(8, 0, 0, u8));
                REQUIRE_CODE(cuArrayDestroy(array), 0);
                use(array);
            },
            says);
    };
    static char bytes[8];
    static ArrayDescription3D whole;
    crashes([](Array* gone) { cuArray3DGetDescriptor_v2(&whole, gone); },
            "cuArray3DGetDescriptor_v2 of an array that is destroyed: the real driver ends here");
    crashes([](Array* gone) { cuArrayDestroy(gone); }, "cuArrayDestroy of an array that is destroyed");
    crashes([](Array* gone) { cuMemcpyAtoH_v2(bytes, gone, 0, 8); }, "a copy of an array that is destroyed");
    crashes([](Array* gone) { copied(host_end(bytes), array_end(gone), 8); }, "a copy of an array that is destroyed");
}

TEST(SimArrays, AreNeverSparse) {
    in_own_process([] {
        open_device();
        Array* const array = new_array(described(8, 8, 0, u8));
        SparseProperties properties = {};
        ArrayMemoryRequirements requirements = {};
        REQUIRE_CODE(cuArrayGetSparseProperties(&properties, array), 1);
        REQUIRE_CODE(cuArrayGetMemoryRequirements(&requirements, array, 0), 1);
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D plain = described(8, 8, 0, u8);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &plain, 2), 0);
        REQUIRE_CODE(cuMipmappedArrayGetSparseProperties(&properties, levels), 1);
        REQUIRE_CODE(cuMipmappedArrayGetMemoryRequirements(&requirements, levels, 0), 1);
        REQUIRE_CODE(cuMipmappedArrayGetSparseProperties(&properties, nullptr), 400);
        REQUIRE_CODE(cuMipmappedArrayGetMemoryRequirements(&requirements, nullptr, 0), 400);
    });
}

TEST(SimArrays, PlannedFaultsAndLostDevicesAreAnswered) {
    in_own_process([] {
        Context* const context = open_device();
        REQUIRE_THAT(isthmus_sim_fault_plan("call=cuArray3DCreate:n=1:code=2;call=cuTexObjectCreate:n=1:code=999") ==
                     0);
        const std::size_t before = free_memory();
        REQUIRE_CODE(array_code(described(8, 8, 0, u8)), 2);
        REQUIRE_THAT(free_memory() == before);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8)), 0);
        REQUIRE_CODE(cuTexObjectCreate(nullptr, nullptr, nullptr, nullptr), 999);
        REQUIRE_THAT(isthmus_sim_fault_plan("") == 0);
        Array* const array = new_array(described(8, 8, 0, u8));
        REQUIRE_CODE(launch_wild_store(nullptr, nullptr), 0);
        const Result lost = cuCtxSynchronize();
        REQUIRE_CODE(lost, 700);
        REQUIRE_CODE(array_code(described(8, 8, 0, u8)), 700);
        REQUIRE_CODE(cuArrayDestroy(array), 700);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
    });
}

TEST(SimMipmappedArrays, HaveLevelsOfHalfTheExtents) {
    in_own_process([] {
        open_device();
        const std::size_t before = free_memory();
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D asked = described(20, 6, 0, u8, 2);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &asked, 100), 0);  // clamped to 5
        REQUIRE_THAT(free_memory() == before - 2 * (20 * 6 + 10 * 3 + 5 * 1 + 2 + 1));
        const std::size_t extents[5][2] = {{20, 6}, {10, 3}, {5, 1}, {2, 1}, {1, 1}};
        std::vector<Array*> all(5);
        for (unsigned i = 0; i < 5; ++i) {
            REQUIRE_CODE(cuMipmappedArrayGetLevel(&all[i], levels, i), 0);
            ArrayDescription3D one = {};
            REQUIRE_CODE(cuArray3DGetDescriptor_v2(&one, all[i]), 0);
            REQUIRE_THAT(one.width == extents[i][0] && one.height == extents[i][1] && one.depth == 0);
            const auto values =
                std::vector<unsigned char>(2 * one.width * one.height, static_cast<unsigned char>(i + 1));
            REQUIRE_CODE(copied(array_end(all[i]), host_end(values.data()), 2 * one.width, one.height), 0);
        }
        for (unsigned i = 0; i < 5; ++i) {  // levels lie beside each other
            const auto got = content(all[i], 2 * extents[i][0], extents[i][1]);
            REQUIRE_THAT(got == std::vector<unsigned char>(got.size(), static_cast<unsigned char>(i + 1)));
        }
        Array* again = nullptr;
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&again, levels, 1), 0);
        REQUIRE_THAT(again == all[1]);
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&again, levels, 5), 1);
        REQUIRE_CODE(cuMipmappedArrayGetLevel(nullptr, levels, 0), 1);
        REQUIRE_CODE(cuArrayDestroy(all[1]), 0);  // 580, H200: by itself, and the whole stays
        REQUIRE_THAT(isthmus_sim_live("arrays") == 5);
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&again, levels, 1), 0);
        REQUIRE_THAT(content(again, 20, 3) == std::vector<unsigned char>(60, 2));
        REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 0);
        REQUIRE_THAT(free_memory() == before && isthmus_sim_live("arrays") == 0);
        REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 400);
        REQUIRE_CODE(cuMipmappedArrayGetLevel(&again, levels, 0), 400);
    });
}

TEST(SimMipmappedArrays, LayersStayAndVolumesShrink) {
    in_own_process([] {
        open_device();
        const auto level = [](const ArrayDescription3D& asked, unsigned count, unsigned index) {
            MipmappedArray* levels = nullptr;
            Array* one = nullptr;
            ArrayDescription3D got = {};
            REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &asked, count), 0);
            REQUIRE_CODE(cuMipmappedArrayGetLevel(&one, levels, index), 0);
            REQUIRE_CODE(cuArray3DGetDescriptor_v2(&got, one), 0);
            REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 0);
            return got;
        };
        REQUIRE_THAT(level(described(8, 8, 5, u8, 1, layered), 3, 2).depth == 5);
        REQUIRE_THAT(level(described(8, 8, 8, u8), 3, 2).depth == 2);
        REQUIRE_THAT(level(described(8, 0, 0, u8), 0, 0).width == 8);  // at least one level
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D right = described(8, 8, 0, u8);
        REQUIRE_CODE(cuMipmappedArrayCreate(nullptr, &right, 1), 1);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, nullptr, 1), 1);
        ArrayDescription3D wide =
            described(static_cast<std::size_t>(fact(attribute::mipmapped_2d_width)) + 1, 1, 0, u8);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &wide, 1), 1);
        --wide.width;
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &wide, 1), 0);
        const ArrayDescription3D video = described(8, 8, 0, nv12, 3, for_video);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &video, 1), 1);
    });
}

TEST(SimArrayPlanes, OfNv12AreArraysOfBytes) {
    in_own_process([] {
        open_device();
        Array* const whole = new_array(described(8, 4, 0, nv12, 3, for_video));
        Array *luma = nullptr, *chroma = nullptr, *none = nullptr;
        REQUIRE_CODE(cuArrayGetPlane(&luma, whole, 0), 0);
        REQUIRE_CODE(cuArrayGetPlane(&chroma, whole, 1), 0);
        ArrayDescription3D one = {};
        REQUIRE_CODE(cuArray3DGetDescriptor_v2(&one, luma), 0);
        REQUIRE_THAT(one.width == 8 && one.height == 4 && one.format == u8 && one.channels == 1);
        REQUIRE_CODE(cuArray3DGetDescriptor_v2(&one, chroma), 0);
        REQUIRE_THAT(one.width == 4 && one.height == 2 && one.format == u8 && one.channels == 2);
        const auto values = ascending(48);
        REQUIRE_CODE(copied(array_end(luma), host_end(values.data()), 8, 4), 0);
        REQUIRE_CODE(copied(array_end(chroma), host_end(values.data() + 32), 8, 2), 0);
        auto got = content(luma, 8, 4);
        const auto more = content(chroma, 8, 2);
        got.insert(got.end(), more.begin(), more.end());
        REQUIRE_THAT(got == values);
        REQUIRE_CODE(copied(array_end(whole), host_end(values.data()), 8, 4), 1);  // its planes are copied
        REQUIRE_CODE(cuArrayGetPlane(&none, whole, 2), 1);
        REQUIRE_CODE(cuArrayGetPlane(nullptr, whole, 0), 1);
        REQUIRE_CODE(cuArrayGetPlane(&none, new_array(described(8, 4, 0, u8)), 0), 1);
        REQUIRE_CODE(cuArrayDestroy(luma), 400);
        REQUIRE_CODE(cuArrayDestroy(whole), 0);
        REQUIRE_CODE(array_code(described(7, 4, 0, nv12, 3, for_video)), 1);
        REQUIRE_CODE(array_code(described(8, 4, 0, nv12, 1, for_video)), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
