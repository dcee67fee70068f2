// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects, and what a machine without graphics answers.
#include "sim_array_scene.hpp"

#include <cstring>
#include <functional>

namespace isthmus::sim::test {
namespace {

constexpr int of_array = 0, of_levels = 1, linear = 2, pitched = 3;
constexpr unsigned as_integers = 1, normalised = 2, seamless = 64;

struct Described {
    TextureResource resource = {};
    TextureSampling sampling = {};
    TextureView view = {};
    bool with_view = false;

    Result code() const {
        TextureHandle made = 0;
        const Result answer = cuTexObjectCreate(&made, &resource, &sampling, with_view ? &view : nullptr);
        REQUIRE_THAT((made != 0) == (answer == 0));
        if (answer == 0) REQUIRE_CODE(cuTexObjectDestroy(made), 0);
        return answer;
    }
    // The code with one thing changed.
    Result with(const std::function<void(Described&)>& change) const {
        Described other = *this;
        change(other);
        return other.code();
    }
};

Described texture_of(Array* array) {
    Described d;
    d.resource.type = of_array;
    d.resource.from.array = array;
    return d;
}

TEST(SimTextures, AreDescribedAsMade) {
    in_own_process([] {
        open_device();
        Described d = texture_of(new_array(described(8, 4, 0, u8, 4)));
        d.sampling.flags = as_integers | normalised;
        d.sampling.address_mode[1] = 3;
        d.sampling.border_color[2] = 0.5f;
        d.view = {0x03, 8, 4, 0, 0, 0, 0, 0, {}};
        TextureHandle texture = 0, plain = 0;
        REQUIRE_CODE(cuTexObjectCreate(&texture, &d.resource, &d.sampling, &d.view), 0);
        REQUIRE_CODE(cuTexObjectCreate(&plain, &d.resource, &d.sampling, nullptr), 0);
        REQUIRE_THAT(texture != 0 && texture != plain && isthmus_sim_live("textures") == 2);
        Described got;
        REQUIRE_CODE(cuTexObjectGetResourceDesc(&got.resource, texture), 0);
        REQUIRE_CODE(cuTexObjectGetTextureDesc(&got.sampling, texture), 0);
        REQUIRE_CODE(cuTexObjectGetResourceViewDesc(&got.view, texture), 0);
        REQUIRE_THAT(got.resource.type == of_array && got.resource.from.array == d.resource.from.array);
        // Its floats have the same bits. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
        REQUIRE_THAT(std::memcmp(&got.sampling, &d.sampling, sizeof(got.sampling)) == 0);
        REQUIRE_THAT(got.view.format == 0x03 && got.view.width == 8);
        REQUIRE_CODE(cuTexObjectGetResourceViewDesc(&got.view, plain), 0);  // 580, H200: it has none
        REQUIRE_THAT(got.view.format == 0 && got.view.width == 0);
        REQUIRE_CODE(cuTexObjectGetResourceDesc(nullptr, texture), 1);
        REQUIRE_CODE(cuTexObjectGetTextureDesc(nullptr, texture), 1);
        REQUIRE_CODE(cuTexObjectGetResourceViewDesc(nullptr, texture), 1);
        REQUIRE_CODE(cuTexObjectDestroy(texture), 0);
        for (const TextureHandle gone : {texture, TextureHandle{0}}) {
            REQUIRE_CODE(cuTexObjectGetResourceDesc(&got.resource, gone), 1);
            REQUIRE_CODE(cuTexObjectGetTextureDesc(&got.sampling, gone), 1);
            REQUIRE_CODE(cuTexObjectGetResourceViewDesc(&got.view, gone), 1);
            REQUIRE_CODE(cuTexObjectDestroy(gone), 0);  // 580, H200
        }
        REQUIRE_CODE(cuTexObjectCreate(nullptr, &d.resource, &d.sampling, nullptr), 1);
        REQUIRE_CODE(cuTexObjectCreate(&texture, nullptr, &d.sampling, nullptr), 1);
        REQUIRE_CODE(cuTexObjectCreate(&texture, &d.resource, nullptr, nullptr), 1);
        REQUIRE_THAT(isthmus_sim_live("textures") == 1);
    });
}

TEST(SimTextures, SampleArraysAsDocumented) {
    in_own_process([] {
        open_device();
        Array* const array = new_array(described(8, 4, 0, u8, 4));
        const Described d = texture_of(array);
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.flags = 1; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.type = 4; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.array = nullptr; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.sampling.address_mode[2] = 4; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.sampling.filter_mode = 2; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.sampling.level_filter_mode = -1; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.sampling.flags = 4; }), 0);  // 580, H200: an unknown one
        REQUIRE_CODE(d.with([](Described& o) { o.sampling.flags = seamless; }), 1);
        REQUIRE_CODE(texture_of(new_array(described(8, 8, 6, u8, 1, cubemap))).with([](Described& o) {
            o.sampling.flags = seamless;
        }),
                     0);
        MipmappedArray* levels = nullptr;
        const ArrayDescription3D asked = described(8, 8, 0, u8);
        REQUIRE_CODE(cuMipmappedArrayCreate(&levels, &asked, 3), 0);
        Described mipmapped;
        mipmapped.resource.type = of_levels;
        mipmapped.resource.from.mipmapped = levels;
        REQUIRE_CODE(mipmapped.code(), 0);  // 580, H200: without normalised coordinates, too
        mipmapped.sampling.flags = normalised;
        REQUIRE_CODE(mipmapped.code(), 0);
        mipmapped.with_view = true;
        mipmapped.view = {0x01, 8, 8, 0, 1, 2, 0, 0, {}};
        REQUIRE_CODE(mipmapped.code(), 0);
        REQUIRE_CODE(mipmapped.with([](Described& o) { o.view.last_level = 3; }), 1);
        REQUIRE_CODE(mipmapped.with([](Described& o) { o.view.first_level = 3; }), 1);
        REQUIRE_CODE(cuMipmappedArrayDestroy(levels), 0);
        REQUIRE_CODE(mipmapped.code(), 1);
        REQUIRE_CODE(cuArrayDestroy(array), 0);
        REQUIRE_CODE(d.code(), 1);
    });
}

TEST(SimTextures, ViewsHaveTheExtentsOfTheirArray) {
    in_own_process([] {
        open_device();
        Described d = texture_of(new_array(described(8, 4, 3, u32, 2, layered)));
        d.with_view = true;
        d.view = {0x0e, 8, 4, 3, 0, 0, 0, 2, {}};
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.view.format = 0; }), 1);  // 580, H200
        REQUIRE_CODE(d.with([](Described& o) { o.view.last_layer = 3; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.first_layer = 3; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.last_level = 1; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.width = 7; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.height = 8; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.depth = 0; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.format = 0x17; }), 0);  // two floats, as large
        REQUIRE_CODE(d.with([](Described& o) { o.view.format = 0x18; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.format = 0x23; }), 1);
        d.view = {0x19, 32, 16, 3, 0, 0, 0, 2, {}};  // BC1: blocks of 4 by 4 in two words
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.view.width = 8; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.view.format = 0x1a; }), 1);  // BC2 needs four words
    });
}

TEST(SimTextures, LieInMemoryThatIsAligned) {
    in_own_process([] {
        open_device();
        const std::size_t alignment = static_cast<std::size_t>(fact(attribute::texture_alignment));
        const std::size_t pitch = 8 * static_cast<std::size_t>(fact(attribute::texture_pitch_alignment));
        const Address memory = device_memory(16 * alignment);
        Described d;
        d.resource.type = linear;
        d.resource.from.linear = {memory + alignment, f32, 1, 15 * alignment};
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.address += 4; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.address = 0; }), 1);
        // As a driver 580 on an H200: what lies there is not looked at.
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.bytes += 4; }), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.bytes = 0; }), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.address = Address{1} << 44; }), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.linear.channels = 3; }), 1);
        d.with_view = true;
        REQUIRE_CODE(d.code(), 1);  // of arrays alone
        d.with_view = false;
        d.resource.type = pitched;
        d.resource.from.pitched = {memory, u8, 4, 8, 8, pitch};
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.pitched.address += 4; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.pitched.pitch += 4; }), 1);
        REQUIRE_CODE(d.with([&](Described& o) { o.resource.from.pitched.width = pitch / 4 + 1; }), 1);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.pitched.width = 0; }), 1);
        REQUIRE_CODE(d.with([&](Described& o) { o.resource.from.pitched.height = 16 * alignment / pitch + 1; }), 0);
        REQUIRE_CODE(d.with([](Described& o) { o.resource.from.pitched.height = 0; }), 0);  // 580, H200
        const auto beyond = [&](std::size_t PitchedTexels::*extent, int id) {
            Described o = d;
            o.resource.from.pitched.*extent = static_cast<std::size_t>(fact(id)) / 32 * 32 + 32;
            return o.code();
        };
        REQUIRE_CODE(beyond(&PitchedTexels::pitch, attribute::texture_2d_linear_pitch), 1);
        REQUIRE_CODE(beyond(&PitchedTexels::height, attribute::texture_2d_linear_height), 1);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
        REQUIRE_CODE(d.code(), 0);
    });
}

TEST(SimTextures, OfManyElementsEndAtTheLimit) {
    in_own_process([] {
        open_device();
        const std::size_t most = static_cast<std::size_t>(fact(attribute::texture_1d_linear_width));
        Described d;
        d.resource.type = linear;
        d.resource.from.linear = {device_memory(most + 1), u8, 1, most};
        REQUIRE_CODE(d.code(), 0);
        REQUIRE_CODE(d.with([](Described& o) { ++o.resource.from.linear.bytes; }), 1);
    });
}

TEST(SimSurfaces, AreOfArrays) {
    in_own_process([] {
        open_device();
        TextureResource resource = {};
        resource.from.array = new_array(described(8, 4, 0, u8, 4, with_surface));
        SurfaceHandle surface = 0;
        REQUIRE_CODE(cuSurfObjectCreate(&surface, &resource), 0);
        TextureResource got = {};
        REQUIRE_CODE(cuSurfObjectGetResourceDesc(&got, surface), 0);
        REQUIRE_THAT(got.from.array == resource.from.array && isthmus_sim_live("textures") == 1);
        REQUIRE_CODE(cuSurfObjectGetResourceDesc(nullptr, surface), 1);
        REQUIRE_CODE(cuSurfObjectDestroy(surface), 0);
        for (const SurfaceHandle gone : {surface, SurfaceHandle{0}}) {
            REQUIRE_CODE(cuSurfObjectGetResourceDesc(&got, gone), 1);
            REQUIRE_CODE(cuSurfObjectDestroy(gone), 0);  // 580, H200 for 0
        }
        REQUIRE_CODE(cuSurfObjectCreate(nullptr, &resource), 1);
        REQUIRE_CODE(cuSurfObjectCreate(&surface, nullptr), 1);
        const auto refused = [&](const std::function<void(TextureResource&)>& change) {
            TextureResource other = resource;
            change(other);
            SurfaceHandle none = 0;
            REQUIRE_CODE(cuSurfObjectCreate(&none, &other), 1);
            REQUIRE_THAT(none == 0);
        };
        refused([](TextureResource& r) { r.flags = 1; });
        refused([](TextureResource& r) { r.type = linear; });
        refused([](TextureResource& r) { r.from.array = nullptr; });
        REQUIRE_CODE(cuArrayDestroy(resource.from.array), 0);
        refused([](TextureResource&) {});
        resource.from.array = new_array(described(8, 4, 0, u8, 4));  // 580, H200: without the flag, too
        REQUIRE_CODE(cuSurfObjectCreate(&surface, &resource), 0);
        REQUIRE_CODE(cuArrayDestroy(resource.from.array), 0);
        refused([](TextureResource&) {});
    });
}

TEST(SimTextures, EndWithTheirContext) {
    in_own_process([] {
        open_device();
        Context* made = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&made, 0, 0), 0);
        TextureResource resource = {};
        const TextureSampling sampling = {};
        resource.from.array = new_array(described(8, 4, 0, u8, 4, with_surface));
        TextureHandle texture = 0;
        SurfaceHandle surface = 0;
        REQUIRE_CODE(cuTexObjectCreate(&texture, &resource, &sampling, nullptr), 0);
        REQUIRE_CODE(cuSurfObjectCreate(&surface, &resource), 0);
        open_device();
        TextureHandle other = 0;
        REQUIRE_CODE(cuTexObjectCreate(&other, &resource, &sampling, nullptr), 705);  // 580, H200: of another context
        REQUIRE_CODE(cuCtxDestroy_v2(made), 0);
        open_device();
        REQUIRE_CODE(cuTexObjectDestroy(texture), 709);
        REQUIRE_CODE(cuSurfObjectDestroy(surface), 709);
        REQUIRE_CODE(cuTexObjectCreate(&other, &resource, &sampling, nullptr), 709);
        REQUIRE_THAT(isthmus_sim_live("textures") == 0);
    });
}

TEST(SimGraphics, NothingIsRegisteredWithoutOpenGl) {
    in_own_process([] {
        GraphicsResource* resource = nullptr;
        REQUIRE_CODE(cuGraphicsGLRegisterBuffer(&resource, 1, 0), 3);
        open_device();
        unsigned count = 7;
        int devices[4] = {};
        // 304: as a driver 580 on an H200 without OpenGL.
        REQUIRE_CODE(cuGLGetDevices_v2(&count, devices, 4, 1), 304);
        REQUIRE_CODE(cuGLGetDevices_v2(nullptr, devices, 4, 1), 1);
        REQUIRE_CODE(cuGraphicsGLRegisterBuffer(&resource, 1, 0), 304);
        REQUIRE_CODE(cuGraphicsGLRegisterBuffer(nullptr, 1, 0), 1);
        REQUIRE_CODE(cuGraphicsGLRegisterImage(&resource, 1, 0x0DE1, 0), 304);
        REQUIRE_CODE(cuGraphicsGLRegisterImage(nullptr, 1, 0x0DE1, 0), 1);
        REQUIRE_THAT(resource == nullptr && count == 7);
        resource = reinterpret_cast<GraphicsResource*>(0x1000);
        Array* array = nullptr;
        MipmappedArray* levels = nullptr;
        Address address = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuGraphicsMapResources(1, &resource, nullptr), 400);
        REQUIRE_CODE(cuGraphicsMapResources(1, nullptr, nullptr), 1);
        REQUIRE_CODE(cuGraphicsMapResources(0, nullptr, nullptr), 1);  // 580, H200
        REQUIRE_CODE(cuGraphicsUnmapResources(1, &resource, nullptr), 400);
        REQUIRE_CODE(cuGraphicsUnregisterResource(resource), 400);
        REQUIRE_CODE(cuGraphicsSubResourceGetMappedArray(&array, resource, 0, 0), 400);
        REQUIRE_CODE(cuGraphicsResourceGetMappedMipmappedArray(&levels, resource), 400);
        REQUIRE_CODE(cuGraphicsResourceGetMappedPointer_v2(&address, &bytes, resource), 400);
        REQUIRE_CODE(cuGraphicsResourceSetMapFlags_v2(resource, 0), 400);
        const char* name = nullptr;
        REQUIRE_CODE(cuGetErrorName(219, &name), 0);
        REQUIRE_THAT(std::strcmp(name, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT") == 0);
        void* function = nullptr;
        REQUIRE_CODE(cuGetProcAddress("cuGraphicsGLRegisterBuffer", &function, version(), 0), 0);
        REQUIRE_THAT(function == reinterpret_cast<void*>(&cuGraphicsGLRegisterBuffer));
        REQUIRE_CODE(cuGetProcAddress("cuArray3DCreate", &function, version(), 0), 0);
        REQUIRE_THAT(function == reinterpret_cast<void*>(&cuArray3DCreate_v2));
    });
}

}  // namespace
}  // namespace isthmus::sim::test
