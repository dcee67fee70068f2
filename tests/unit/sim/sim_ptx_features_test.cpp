// SPDX-License-Identifier: Apache-2.0
// Kernels of nvcc through the driver's functions: the heap of malloc(), cuda::barrier, textures, 8-bit floats,
// clusters.
#include "sim_array_scene.hpp"
#include "sim_kernel_scene.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

namespace isthmus::sim::test {
namespace {

constexpr int heap_limit = 2;  // CU_LIMIT_MALLOC_HEAP_SIZE

int capability() {
    return fact(75) * 10 + fact(76);
}

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
}

// A text of tests/unit/ptx/kernels. Older drivers take older texts; the kernels need nothing new. kernels_nvrtc_test.py
// names a folder with texts that NVRTC made for this machine.
Module* made_by_nvcc(const std::string& name) {
    if (const char* const folder = std::getenv("ISTHMUS_TEST_PTX")) {
        const std::string base = name.substr(0, std::min(name.find("_8"), name.find("_9")));
        std::string text = content_of(std::string(folder) + "/" + base + ".ptx");
        const std::size_t at = text.find(".version 9.0");
        int driver = 0;
        REQUIRE_CODE(cuDriverGetVersion(&driver), 0);
        if (driver < 13000 && at != std::string::npos) text.replace(at, 12, ".version 8.0");
        Module* module = nullptr;
        REQUIRE_CODE(cuModuleLoadData(&module, text.c_str()), 0);
        return module;
    }
    std::string text = content_of(std::string(ISTHMUS_PTX_FOLDER) + "/" + name + ".ptx");
    const std::string version = ".version 9.0";
    const std::size_t at = text.find(version);
    REQUIRE_THAT(at != std::string::npos);
    const bool is_hopper = text.find(".target sm_90") != std::string::npos;
    const bool is_ampere = text.find(".target sm_80") != std::string::npos;
    text.replace(at, version.size(), is_hopper ? ".version 7.8" : is_ampere ? ".version 7.0" : ".version 6.0");
    Module* module = nullptr;
    REQUIRE_CODE(cuModuleLoadData(&module, text.c_str()), 0);
    return module;
}
template <class... Arguments>
Result launch(Function* function, unsigned grid, unsigned block, Arguments... arguments) {
    void* parameters[] = {&arguments..., nullptr};
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr);
}
template <class... Arguments>
Result run(Function* function, unsigned grid, unsigned block, Arguments... arguments) {
    REQUIRE_CODE(launch(function, grid, block, arguments...), 0);
    return cuCtxSynchronize();
}

// What one kernel allocates, a later one reads and frees.
TEST(SimKernelHeap, OutlivesTheKernel) {  // keeps W8
    in_own_process([] {
        open_device();
        Module* const module = made_by_nvcc("heap");
        const Address heads = device_memory(64 * 8), sums = device_memory(64 * 4);
        REQUIRE_CODE(run(entry(module, "build_list"), 1, 64, heads, 5), 0);
        REQUIRE_CODE(run(entry(module, "sum_list"), 1, 64, heads, sums), 0);
        const auto found = back<int>(sums, 64);
        for (int at = 0; at < 64; ++at) REQUIRE_THAT(found[static_cast<std::size_t>(at)] == 500 * at + 10);
        REQUIRE_CODE(run(entry(module, "shapes"), 8, 64, sums), 0);
        REQUIRE_THAT(back<int>(sums, 64)[7] == 49);
    });
}

// Kernels in streams of a green context, or of one that is current, use the primary context's.
TEST(SimKernelHeap, OfAGreenContextIsThePrimaryOnes) {  // keeps W8
    in_own_process([] {
        open_device();
        Module* const module = made_by_nvcc("heap");
        Function *const build = entry(module, "build_list"), *const sum = entry(module, "sum_list");
        DevResource all = {}, part = {};
        ResourceDescription* description = nullptr;
        GreenContext* green = nullptr;
        Context* current = nullptr;
        unsigned count = 1;
        REQUIRE_CODE(cuDeviceGetDevResource(0, &all, 1), 0);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, 1), 0);
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, &part, 1), 0);
        REQUIRE_CODE(cuGreenCtxCreate(&green, description, 0, 1), 0);
        REQUIRE_CODE(cuCtxFromGreenCtx(&current, green), 0);
        Stream *own = nullptr, *of_current = nullptr;
        REQUIRE_CODE(cuGreenCtxStreamCreate(&own, green, 1, 0), 0);
        Address heads = device_memory(64 * 8), sums = device_memory(64 * 4);
        REQUIRE_CODE(cuCtxSetCurrent(current), 0);
        REQUIRE_CODE(cuStreamCreate(&of_current, 1), 0);
        int length = 5;
        void *of_build[] = {&heads, &length}, *of_sum[] = {&heads, &sums};
        Stream* const all_streams[] = {nullptr, own, of_current};
        for (Stream* const from : all_streams) {
            for (Stream* const to : all_streams) {
                REQUIRE_CODE(cuMemsetD8_v2(sums, 0, 64 * 4), 0);
                REQUIRE_CODE(cuLaunchKernel(build, 1, 1, 1, 64, 1, 1, 0, from, of_build, nullptr), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 0);
                REQUIRE_CODE(cuLaunchKernel(sum, 1, 1, 1, 64, 1, 1, 0, to, of_sum, nullptr), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 0);
                REQUIRE_THAT(back<int>(sums, 64)[3] == 1510);
            }
        }
    });
}

// An empty heap gives null, and what comes back is given again; its size is set before its first use.
TEST(SimKernelHeap, HasTheSizeOfItsLimit) {  // keeps W8
    in_own_process([] {
        open_device();
        Module* const module = made_by_nvcc("heap");
        const Address counts = device_memory(16);
        std::size_t bytes = 0, before = 0, after = 0, all = 0;
        REQUIRE_CODE(cuCtxGetLimit(&bytes, heap_limit), 0);
        REQUIRE_THAT(bytes == std::size_t{8} << 20);
        REQUIRE_CODE(cuCtxSetLimit(heap_limit, std::size_t{4} << 20), 0);
        REQUIRE_CODE(cuMemGetInfo_v2(&before, &all), 0);
        for (int round = 0; round < 3; ++round) {
            REQUIRE_CODE(run(entry(module, "exhaust"), 1, 1, counts, 100000ull), 0);
            const auto found = back<unsigned long long>(counts, 2);
            REQUIRE_THAT(found[0] == 41 && found[1] == 1);
        }
        REQUIRE_CODE(cuMemGetInfo_v2(&after, &all), 0);
        REQUIRE_THAT(before - after == std::size_t{4} << 20);
        REQUIRE_CODE(cuCtxSetLimit(heap_limit, std::size_t{16} << 20), 1);
        REQUIRE_CODE(run(entry(module, "keep"), 1, 1, counts, 5ull << 20), 0);
        REQUIRE_THAT(back<Address>(counts, 1)[0] == 0);
        // What was given back lies together.
        REQUIRE_CODE(run(entry(module, "keep"), 1, 1, counts, 3ull << 20), 0);
        REQUIRE_THAT(back<Address>(counts, 1)[0] != 0);
        REQUIRE_CODE(run(entry(module, "keep"), 1, 1, counts, 64ull), 0);
        const Address kept = back<Address>(counts, 1)[0];
        REQUIRE_THAT(kept != 0 && kept % 16 == 0);
        // Documented: calls of the driver may not name it.
        REQUIRE_CODE(cuMemFree_v2(kept), 1);
        REQUIRE_THAT(cuMemGetAddressRange_v2(nullptr, nullptr, kept) != 0);
    });
}

TEST(SimKernelHeap, MisuseIsAFault) {  // keeps W8
    struct Row {
        const char* kernel;
        Result code;
        const char* says;
    };
    const Row rows[] = {
        {"free_twice", 719,
         "kernel free_twice, PTX line [0-9]+, block .*, thread .*: free\\(0x[0-9a-f]+\\): it was freed already"},
        {"free_foreign", 719, "free\\(0x[0-9a-f]+\\): it is no memory of the heap of kernels"},
        {"after_free", 700,
         "a read of 4 bytes at 0x[0-9a-f]+: it is in the heap of kernels: free\\(\\) took back the 64 bytes"},
    };
    for (const Row& row : rows) {
        in_own_process(
            [&row] {
                open_device();
                const Address out = device_memory(64);
                REQUIRE_CODE(run(entry(made_by_nvcc("heap"), row.kernel), 1, 1, out), row.code);
            },
            row.says);
    }
    in_own_process(
        [] {
            open_device();
            const Address out = device_memory(64);
            Function* const beyond = entry(made_by_nvcc("heap"), "beyond");
            REQUIRE_CODE(run(beyond, 1, 1, out, 15), 0);
            REQUIRE_CODE(run(beyond, 1, 1, out, 17), 700);
        },
        "a write of 4 bytes at 0x[0-9a-f]+: it is in the heap of kernels: it lies 4 bytes behind the 64 bytes that "
        "malloc");
    in_own_process([] {
        open_device();
        REQUIRE_CODE(run(entry(made_by_nvcc("heap"), "free_null"), 1, 32), 0);
    });
}

TEST(SimKernelHeap, ItsMemoryIsNotWrittenAnew) {  // keeps W8
    in_own_process(
        [] {
            ::setenv("ISTHMUS_SIM_UNINITIALISED", "1", 1);
            open_device();
            const Address out = device_memory(64);
            Module* const module = made_by_nvcc("heap");
            REQUIRE_CODE(run(entry(module, "beyond"), 1, 1, out, 0), 0);
            REQUIRE_CODE(run(entry(module, "unwritten"), 1, 1, out), 0);
        },
        "kernel unwritten, PTX line [0-9]+.*: a read of 4 bytes at 0x[0-9a-f]+ of the global memory, of which nothing");
}

TEST(SimKernelBarriers, CopiesOfLibcudacxxAreJudged) {  // keeps W8
    in_own_process([] {
        open_device();
        if (capability() < 80) return;
        for (const char* const text : {"barriers_80", "barriers_90"}) {
            if (capability() < 90 && std::strcmp(text, "barriers_90") == 0) continue;
            Module* const module = made_by_nvcc(text);
            std::vector<int> values(1024);
            std::iota(values.begin(), values.end(), 0);
            const Address in = on_device(values), out = device_memory(4096);
            for (const char* const name : {"async_barrier", "async_aligned", "groups_copy"}) {
                REQUIRE_CODE(run(entry(module, name), 4, 128, in, out, 1024), 0);
                REQUIRE_THAT(back<int>(out, 1024)[3] == 1020);
            }
        }
    });
    in_own_process(
        [] {
            open_device();
            if (capability() < 80) {
                std::fprintf(stderr, "PTX line 1 a read of 4 bytes at 0x\n");
                return;
            }
            const Address in = device_memory(256), out = device_memory(4096);
            REQUIRE_CODE(run(entry(made_by_nvcc("barriers_80"), "async_barrier"), 1, 128, in, out, 65), 700);
        },
        "PTX line [0-9]+.*a read of (4|16) bytes at 0x");
}

struct Point {
    float x = 0, y = 0, z = 0, layer = 0;
};
TextureHandle texture_of(const TextureResource& resource, int address_mode = 1, int filter = 0, unsigned flags = 0) {
    TextureSampling sampling = {};
    for (int& mode : sampling.address_mode) mode = address_mode;
    sampling.filter_mode = filter;
    sampling.flags = flags;
    TextureHandle made = 0;
    REQUIRE_CODE(cuTexObjectCreate(&made, &resource, &sampling, nullptr), 0);
    return made;
}
TextureResource resource_of(Array* array) {
    TextureResource out = {};
    out.from.array = array;
    return out;
}
Array* plane_of(int width, int height, const std::vector<float>& values, unsigned flags = 0, int depth = 0) {
    Array* const array = new_array(described(static_cast<unsigned>(width), static_cast<unsigned>(height),
                                             static_cast<unsigned>(depth), f32, 1, flags));
    const std::size_t row = static_cast<std::size_t>(width) * 4;
    const auto rows = static_cast<std::size_t>(std::max(height, 1)),
               layers = static_cast<std::size_t>(std::max(depth, 1));
    REQUIRE_CODE(copied(array_end(array), host_end(values.data(), row, rows), row, rows, layers), 0);
    return array;
}

TEST(SimKernelTextures, FetchArraysAndMemory) {  // keeps W8
    in_own_process([] {
        open_device();
        Module* const module = made_by_nvcc("textures");
        std::vector<float> values(4 * 3 * 5);
        std::iota(values.begin(), values.end(), 100.0f);
        const Address points = on_device(std::vector<Point>{{1.5f, 2.5f, 3.5f, 2}, {3.5f, 0.5f, 0.5f, 9}});
        const Address out = device_memory(64);
        const auto first_two = [&](const char* kernel, TextureHandle texture, Address from) {
            REQUIRE_CODE(run(entry(module, kernel), 1, 32, texture, from, out, 2), 0);
            return back<float>(out, 2);
        };
        using Two = std::vector<float>;
        REQUIRE_THAT(first_two("line", texture_of(resource_of(plane_of(60, 0, values))), points) == (Two{101, 103}));
        REQUIRE_THAT(first_two("plane", texture_of(resource_of(plane_of(4, 15, values))), points) == (Two{109, 103}));
        REQUIRE_THAT(first_two("volume", texture_of(resource_of(plane_of(4, 3, values, 0, 5))), points) ==
                     (Two{145, 103}));
        REQUIRE_THAT(first_two("lines", texture_of(resource_of(plane_of(4, 0, values, layered, 15))), points) ==
                     (Two{109, 139}));
        REQUIRE_THAT(first_two("planes", texture_of(resource_of(plane_of(4, 3, values, layered, 5))), points) ==
                     (Two{133, 151}));
        // Linear filtering, with the weights of a plane.
        const Address between = on_device(std::vector<Point>{{2, 1}, {1.75f, 0.5f}});
        REQUIRE_THAT(first_two("plane", texture_of(resource_of(plane_of(4, 15, values)), 1, 1), between) ==
                     (Two{103.5f, 101.25f}));
        TextureResource line = {}, rows = {};
        line.type = 2;
        line.from.linear = {on_device(values), f32, 1, values.size() * 4};
        REQUIRE_THAT(first_two("fetches", texture_of(line), on_device(std::vector<int>{7, 59})) == (Two{107, 159}));
        const auto pitch = static_cast<std::size_t>(std::max(fact(51), 32));
        const Address memory = device_memory(pitch * 3);
        for (std::size_t row = 0; row < 3; ++row) {
            REQUIRE_CODE(cuMemcpyHtoD_v2(memory + row * pitch, &values[4 * row], 16), 0);
        }
        rows.type = 3;
        rows.from.pitched = {memory, f32, 1, 4, 3, pitch};
        REQUIRE_THAT(first_two("plane", texture_of(rows), points) == (Two{109, 103}));
    });
}

TEST(SimKernelTextures, FetchLevelsCubesViewsAndColours) {  // keeps W8
    in_own_process([] {
        open_device();
        Module* const module = made_by_nvcc("textures");
        const Address out = device_memory(64);
        const auto fetched = [&](const char* kernel, TextureHandle texture, Point at) {
            const Address from = on_device(std::vector<Point>{at});
            REQUIRE_CODE(run(entry(module, kernel), 1, 32, texture, from, out, 1), 0);
            return back<float>(out, 1)[0];
        };
        // Three levels of 8 × 4 texels, each with its number.
        const ArrayDescription3D whole = described(8, 4, 0, f32);
        MipmappedArray* levels = nullptr;
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &whole, 3), 0);
        for (unsigned level = 0; level < 3; ++level) {
            Array* array = nullptr;
            REQUIRE_CODE(cuMipmappedArrayGetLevel(&array, levels, level), 0);
            const std::vector<float> values(32, static_cast<float>(level + 1));
            const std::size_t row = std::size_t{32} >> level, rows = std::size_t{4} >> level;
            REQUIRE_CODE(copied(array_end(array), host_end(values.data(), row, rows), row, rows), 0);
        }
        TextureResource mipmapped = {};
        mipmapped.type = 1;
        mipmapped.from.mipmapped = levels;
        TextureSampling sampling = {};
        sampling.flags = 2;
        sampling.level_filter_mode = 1;
        sampling.most_level = 9;
        TextureHandle texture = 0, behind = 0;
        REQUIRE_CODE(cuTexObjectCreate(&texture, &mipmapped, &sampling, nullptr), 0);
        REQUIRE_THAT(fetched("levels", texture, {0.3f, 0.6f, 0}) == 1 &&
                     fetched("levels", texture, {0.3f, 0.6f, 1}) == 2);
        REQUIRE_THAT(fetched("levels", texture, {0.3f, 0.6f, 0.25f}) == 1.25f);
        REQUIRE_THAT(fetched("levels", texture, {0.3f, 0.6f, 7}) == 3);
        TextureView view = {22, 8, 4, 0, 1, 2, 0, 0, {}};  // CU_RES_VIEW_FORMAT_FLOAT_1X32
        REQUIRE_CODE(cuTexObjectCreate(&behind, &mipmapped, &sampling, &view), 0);
        REQUIRE_THAT(fetched("levels", behind, {0.3f, 0.6f, 0}) == 2 &&
                     fetched("levels", behind, {0.3f, 0.6f, 5}) == 3);
        REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 0);
        // Faces of 2 × 2 texels.
        std::vector<float> values(24);
        std::iota(values.begin(), values.end(), 0.0f);
        const TextureHandle cube = texture_of(resource_of(plane_of(2, 2, values, cubemap, 6)), 1, 0, 2);
        REQUIRE_THAT(fetched("cubes", cube, {9, 1, -1}) == 1 && fetched("cubes", cube, {1, -1, -9}) == 22);
        // Bytes as colours, and seen as floats.
        Array* const bytes = new_array(described(4, 2, 0, u8, 4));
        std::vector<unsigned char> colours(32, 188);
        const float seen = 2.5f;
        std::memcpy(&colours[16], &seen, sizeof seen);
        REQUIRE_CODE(copied(array_end(bytes), host_end(colours.data(), 16, 2), 16, 2), 0);
        REQUIRE_THAT(fetched("plane", texture_of(resource_of(bytes), 1, 0, 16), {0.5f, 0.5f}) == 0.50390625f);
        view = {22, 4, 2, 0, 0, 0, 0, 0, {}};
        const TextureResource resource = resource_of(bytes);
        sampling.flags = 0;
        REQUIRE_CODE(cuTexObjectCreate(&behind, &resource, &sampling, &view), 0);
        REQUIRE_THAT(fetched("plane", behind, {0.5f, 1.5f}) == 2.5f);
    });
}

// Each refusal: the object's end, the memory's end, other dimensions, and what is not modelled.
TEST(SimKernelTextures, WhatTheyMayNotReachIsAFault) {  // keeps W8
    const auto body = [](auto make, Result code) {
        return [=] {
            open_device();
            const Address points = on_device(std::vector<Point>{{1.5f, 1.5f}}), out = device_memory(64);
            const TextureHandle texture = make();
            REQUIRE_CODE(run(entry(made_by_nvcc("textures"), "plane"), 1, 32, texture, points, out, 1), code);
        };
    };
    const auto plain = [] { return plane_of(4, 2, std::vector<float>(8)); };
    in_own_process(body(
                       [plain] {
                           const TextureHandle texture = texture_of(resource_of(plain()));
                           REQUIRE_CODE(cuTexObjectDestroy(texture), 0);
                           return texture;
                       },
                       700),
                   "kernel plane, PTX line [0-9]+.*a fetch of texture 0x[0-9a-f]+: it is no texture object, or it was");
    in_own_process(body(
                       [plain] {
                           Array* const array = plain();
                           const TextureHandle texture = texture_of(resource_of(array));
                           REQUIRE_CODE(cuArrayDestroy(array), 0);
                           return texture;
                       },
                       700),
                   "its array was destroyed");
    in_own_process(body([] { return texture_of(resource_of(plane_of(2, 2, std::vector<float>(8), 0, 2))); }, 700),
                   "it has other dimensions than the instruction");
    in_own_process(body([] { return texture_of(resource_of(new_array(described(8, 4, 0, nv12, 3, for_video)))); }, 715),
                   "textures of whole NV12 arrays are not modelled");
    in_own_process(body(
                       [] {
                           TextureResource rows = {};
                           const auto pitch = static_cast<std::size_t>(std::max(fact(51), 32));
                           const Address memory = device_memory(pitch * 2);
                           rows.type = 3;
                           rows.from.pitched = {memory, f32, 1, 4, 2, pitch};
                           const TextureHandle texture = texture_of(rows);
                           REQUIRE_CODE(cuMemFree_v2(memory), 0);
                           return texture;
                       },
                       700),
                   "a fetch of texture|an access at");
}

// No kernel reads the texture that is made after the one that it names.
TEST(SimKernelTextures, NumbersAreNotGivenAgain) {  // keeps W8
    in_own_process(
        [] {
            open_device();
            const Address points = on_device(std::vector<Point>{{1.5f, 1.5f}}), out = device_memory(64);
            Array* const array = plane_of(4, 2, std::vector<float>(8));
            const TextureResource resource = resource_of(array);
            const TextureHandle first = texture_of(resource);
            REQUIRE_CODE(cuTexObjectDestroy(first), 0);
            REQUIRE_THAT(texture_of(resource) != first);
            REQUIRE_CODE(cuTexObjectDestroy(first), 0);  // once more
            SurfaceHandle one = 0, two = 0;
            REQUIRE_CODE(cuSurfObjectCreate(&one, &resource), 0);
            REQUIRE_CODE(cuSurfObjectDestroy(one), 0);
            REQUIRE_CODE(cuSurfObjectCreate(&two, &resource), 0);
            REQUIRE_THAT(one != two);
            REQUIRE_CODE(run(entry(made_by_nvcc("textures"), "plane"), 1, 32, first, points, out, 1), 700);
        },
        "it is no texture object, or it was destroyed");
}

TEST(SimKernelTextures, TellWhatTheyAre) {  // keeps W8
    in_own_process([] {
        open_device();
        Array* const array = new_array(described(9, 6, 3, u16, 2, with_surface | layered));
        const TextureHandle texture = texture_of(resource_of(array), 1, 0, 1);
        SurfaceHandle surface = 0;
        const TextureResource resource = resource_of(array);
        REQUIRE_CODE(cuSurfObjectCreate(&surface, &resource), 0);
        const Address out = device_memory(64);
        REQUIRE_CODE(run(entry(made_by_nvcc("textures"), "facts"), 1, 1, texture, surface, out), 0);
        REQUIRE_THAT(back<unsigned>(out, 14) ==
                     (std::vector<unsigned>{9, 6, 0, 0x10db, 0x10b2, 0, 3, 1, 9, 6, 0, 0x10db, 0x10b2, 3}));
    });
}

Result launch_in_clusters(Function* function, unsigned grid, unsigned block, unsigned cluster, void** parameters) {
    LaunchAttribute attributes[1] = {};
    attributes[0].id = 4;
    attributes[0].value.cluster = {cluster, 1, 1};
    LaunchConfig config = {};
    config.grid_x = grid;
    config.block_x = block;
    config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
    config.attributes = attributes;
    config.attribute_count = cluster != 0 ? 1 : 0;
    return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

TEST(SimKernelClusters, BlocksOfAClusterShareMemory) {  // keeps W8
    in_own_process([] {
        open_device();
        if (capability() < 90) return;
        Module* const module = made_by_nvcc("clusters");
        Address out = device_memory(16 * 64 * 4);
        void* parameters[] = {&out};
        REQUIRE_CODE(launch_in_clusters(entry(module, "exchange"), 16, 64, 4, parameters), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        const auto found = back<int>(out, 16 * 64);
        for (int block = 0; block < 16; ++block) {
            REQUIRE_THAT(found[static_cast<std::size_t>(block * 64)] == 1000 * (block / 4 * 4 + (block + 1) % 4) + 63);
        }
        // The size of __cluster_dims__ needs no attribute, and admits no other.
        Address in = on_device(std::vector<unsigned char>(1000, 200));
        Address bins = on_device(std::vector<int>(256));
        int count = 1000;
        void* of_bins[] = {&in, &count, &bins};
        Function* const histogram = entry(module, "histogram");
        REQUIRE_CODE(launch_in_clusters(histogram, 8, 64, 0, of_bins), 0);
        REQUIRE_CODE(launch_in_clusters(histogram, 8, 64, 4, of_bins), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(back<int>(bins, 256)[200] == 2000);
        REQUIRE_CODE(launch_in_clusters(histogram, 8, 64, 2, of_bins), 912);
        REQUIRE_CODE(launch_in_clusters(histogram, 6, 64, 0, of_bins), 912);
        REQUIRE_CODE(launch_in_clusters(entry(module, "exchange"), 16, 64, 16, parameters), 912);
    });
}

// cuFuncSetAttribute(REQUIRED_CLUSTER_WIDTH, ...) needs no attribute of the launch, and admits no other size.
TEST(SimKernelClusters, TheSizeThatAFunctionRequiresIsTaken) {  // keeps W8
    in_own_process([] {
        open_device();
        if (capability() < 90) return;
        constexpr int width = 11;
        Function* const exchange = entry(made_by_nvcc("clusters"), "exchange");
        Address out = device_memory(16 * 64 * 4);
        void* parameters[] = {&out};
        REQUIRE_CODE(cuFuncSetAttribute(exchange, width, 4), 0);
        REQUIRE_CODE(launch_in_clusters(exchange, 16, 64, 0, parameters), 912);  // no height and no depth
        for (int axis = 1; axis < 3; ++axis) REQUIRE_CODE(cuFuncSetAttribute(exchange, width + axis, 1), 0);
        REQUIRE_CODE(run(exchange, 16, 64, out), 0);
        const auto found = back<int>(out, 16 * 64);
        for (int block = 0; block < 16; ++block) {
            REQUIRE_THAT(found[static_cast<std::size_t>(block * 64)] == 1000 * (block / 4 * 4 + (block + 1) % 4) + 63);
        }
        REQUIRE_CODE(launch_in_clusters(exchange, 16, 64, 4, parameters), 0);
        REQUIRE_CODE(launch_in_clusters(exchange, 16, 64, 2, parameters), 912);
        REQUIRE_CODE(launch_in_clusters(exchange, 6, 64, 0, parameters), 912);
        for (int axis = 0; axis < 3; ++axis) REQUIRE_CODE(cuFuncSetAttribute(exchange, width + axis, 0), 0);
        REQUIRE_CODE(launch_in_clusters(exchange, 16, 64, 2, parameters), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

// .explicitcluster: a launch states its clusters; .maxclusterrank: how large they are at most.
TEST(SimKernelClusters, AnEntryMayNeedAndBoundThem) {  // keeps W8
    in_own_process(
        [] {
            open_device();
            if (capability() < 90) {
                std::fputs("explicit states .explicitcluster\n", stderr);
                return;
            }
            Module* module = nullptr;
            REQUIRE_CODE(cuModuleLoadData(&module,
                                          ".version 7.8\n.target sm_90\n.address_size 64\n"
                                          ".visible .entry explicit() .explicitcluster { ret; }\n"
                                          ".visible .entry bound() .maxclusterrank 4 { ret; }\n"
                                          ".visible .entry both() .explicitcluster .reqnctapercluster 2 { ret; }"),
                         0);
            int value = -1;
            for (const auto& [name, needs] : {std::pair{"explicit", 1}, {"bound", 0}, {"both", 1}}) {
                REQUIRE_CODE(cuFuncGetAttribute(&value, 10, entry(module, name)), 0);
                REQUIRE_THAT(value == needs);
            }
            REQUIRE_CODE(launch_in_clusters(entry(module, "explicit"), 8, 32, 0, nullptr), 912);
            const LaunchConfig plain = {8, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
            REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&value, entry(module, "explicit"), &plain), 912);
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&value, entry(module, "explicit"), &plain), 912);
            REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&value, entry(module, "bound"), &plain), 0);
            REQUIRE_THAT(value == 8);
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&value, entry(module, "both"), &plain), 0);
            REQUIRE_THAT(value > 0);
            REQUIRE_CODE(cuLaunchKernel(entry(module, "explicit"), 8, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
                         912);
            REQUIRE_CODE(launch_in_clusters(entry(module, "explicit"), 8, 32, 1, nullptr), 0);
            REQUIRE_CODE(launch_in_clusters(entry(module, "explicit"), 8, 32, 4, nullptr), 0);
            REQUIRE_CODE(launch_in_clusters(entry(module, "both"), 8, 32, 0, nullptr), 0);
            REQUIRE_CODE(launch_in_clusters(entry(module, "bound"), 8, 32, 0, nullptr), 0);
            REQUIRE_CODE(launch_in_clusters(entry(module, "bound"), 8, 32, 4, nullptr), 0);
            REQUIRE_CODE(launch_in_clusters(entry(module, "bound"), 8, 32, 8, nullptr), 912);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
        },
        "explicit states .explicitcluster");
}

// The size of __cluster_dims__ is told, counted, and not changed.
TEST(SimKernelClusters, TheSizeThatAnEntryStatesIsTold) {  // keeps W8
    in_own_process([] {
        open_device();
        if (capability() < 90) return;
        constexpr int required = 10, width = 11;
        Module* const module = made_by_nvcc("clusters");
        Function* const histogram = entry(module, "histogram");
        const int expected[] = {1, 4, 1, 1};
        for (int at = 0; at < 4; ++at) {
            int value = -1;
            REQUIRE_CODE(cuFuncGetAttribute(&value, required + at, histogram), 0);
            REQUIRE_THAT(value == expected[at]);
            REQUIRE_CODE(cuFuncGetAttribute(&value, required + at, entry(module, "exchange")), 0);
            REQUIRE_THAT(value == 0);
        }
        for (int axis = 0; axis < 3; ++axis) REQUIRE_CODE(cuFuncSetAttribute(histogram, width + axis, 1), 800);
        LaunchAttribute four = {}, two = {};
        four.id = two.id = 4;
        four.value.cluster = {4, 1, 1};
        two.value.cluster = {2, 1, 1};
        LaunchConfig stated = {64, 1, 1, 128, 1, 1, 0, nullptr, &four, 1}, plain = stated;
        plain.attribute_count = 0;
        int of_four = -1, found = -1;
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&of_four, histogram, &stated), 0);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, histogram, &plain), 0);
        REQUIRE_THAT(of_four > 0 && found == of_four);
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, histogram, &plain), 0);
        REQUIRE_THAT(found == 8);  // 580: whatever the entry states
        stated.attributes = &two;
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, histogram, &stated), 912);
    });
}

TEST(SimKernelFloats, SmallOnesAreConverted) {  // keeps W8
    in_own_process([] {
        open_device();
        if (capability() < 90) return;
        const Address in = on_device(std::vector<float>{1, -2, 500, 0.001953125f}), a = device_memory(4),
                      b = device_memory(4);
        REQUIRE_CODE(run(entry(made_by_nvcc("small_floats"), "from_singles"), 1, 32, in, a, b, 4), 0);
        REQUIRE_THAT(back<unsigned char>(a, 4) == (std::vector<unsigned char>{0x38, 0xc0, 0x7e, 0x01}));
        REQUIRE_THAT(back<unsigned char>(b, 4) == (std::vector<unsigned char>{0x3c, 0xc0, 0x60, 0x18}));
    });
}

TEST(SimKernelStack, BreakpointsTrapAndAllocaIsBounded) {  // keeps W8
    in_own_process(
        [] {
            open_device();
            const Address out = device_memory(256);
            Module* const module = made_by_nvcc("stack");
            REQUIRE_CODE(run(entry(module, "squares"), 1, 64, out), 0);
            REQUIRE_CODE(run(entry(module, "stop"), 1, 32, out), 719);
        },
        "kernel stop, PTX line [0-9]+.*thread \\(3, 0, 0\\): brkpt was executed");
}

}  // namespace
}  // namespace isthmus::sim::test
