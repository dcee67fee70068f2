// SPDX-License-Identifier: Apache-2.0
// The driver's types for arrays, textures and surfaces as its callers see them, and the device attributes that limit
// them. check_shapes.cpp compares them with <cuda.h> where there is one.
#pragma once

#include "types.hpp"

namespace isthmus::sim {

struct GraphicsResource;                   // that a graphics library made
using TextureHandle = unsigned long long;  // CUtexObject
using SurfaceHandle = unsigned long long;  // CUsurfObject

struct ArrayDescription {  // CUDA_ARRAY_DESCRIPTOR
    std::size_t width, height;
    int format;
    unsigned channels;
};

struct ArrayDescription3D {  // CUDA_ARRAY3D_DESCRIPTOR
    std::size_t width, height, depth;
    int format;
    unsigned channels;
    unsigned flags;
};

struct SparseProperties {  // CUDA_ARRAY_SPARSE_PROPERTIES
    unsigned tile_width, tile_height, tile_depth;
    unsigned first_level_of_tail;
    unsigned long long tail_bytes;
    unsigned flags;
    unsigned reserved[4];
};

struct ArrayMemoryRequirements {  // CUDA_ARRAY_MEMORY_REQUIREMENTS
    std::size_t bytes, alignment;
    unsigned reserved[4];
};

struct ExternalMipmappedArray {  // CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC
    unsigned long long offset;
    ArrayDescription3D description;
    unsigned levels;
    unsigned reserved[16];
};

struct LinearTexels {
    Address address;
    int format;
    unsigned channels;
    std::size_t bytes;
};
struct PitchedTexels {
    Address address;
    int format;
    unsigned channels;
    std::size_t width, height;  // in elements, and rows
    std::size_t pitch;          // in bytes
};
struct TextureResource {  // CUDA_RESOURCE_DESC
    int type;             // 0 array, 1 mipmapped array, 2 linear, 3 rows with a pitch
    union {
        Array* array;
        MipmappedArray* mipmapped;
        LinearTexels linear;
        PitchedTexels pitched;
        int reserved[32];
    } from;
    unsigned flags;
};

struct TextureSampling {  // CUDA_TEXTURE_DESC
    int address_mode[3];  // 0 wrap, 1 clamp, 2 mirror, 3 border
    int filter_mode;      // 0 point, 1 linear
    unsigned flags;       // 1 as integers, 2 normalised coordinates, 16 sRGB, 32 no trilinear, 64 seamless cubemap
    unsigned most_anisotropy;
    int level_filter_mode;
    float level_bias, least_level, most_level;
    float border_color[4];
    int reserved[12];
};

struct TextureView {  // CUDA_RESOURCE_VIEW_DESC
    int format;       // 0: that of the resource
    std::size_t width, height, depth;
    unsigned first_level, last_level;
    unsigned first_layer, last_layer;
    unsigned reserved[16];
};

namespace attribute {
inline constexpr int texture_alignment = 14, texture_1d_width = 21, texture_2d_width = 22, texture_2d_height = 23,
                     texture_3d_width = 24, texture_3d_height = 25, texture_3d_depth = 26,
                     texture_2d_layered_width = 27, texture_2d_layered_height = 28, texture_2d_layers = 29,
                     texture_1d_layered_width = 42, texture_1d_layers = 43, gather_width = 45, gather_height = 46,
                     texture_3d_width_alternate = 47, texture_3d_height_alternate = 48, texture_3d_depth_alternate = 49,
                     texture_pitch_alignment = 51, cubemap_width = 52, cubemap_layered_width = 53, cubemap_layers = 54,
                     surface_1d_width = 55, surface_2d_width = 56, surface_2d_height = 57, surface_3d_width = 58,
                     surface_3d_height = 59, surface_3d_depth = 60, surface_1d_layered_width = 61,
                     surface_1d_layers = 62, surface_2d_layered_width = 63, surface_2d_layered_height = 64,
                     surface_2d_layers = 65, surface_cubemap_width = 66, surface_cubemap_layered_width = 67,
                     surface_cubemap_layers = 68, texture_1d_linear_width = 69, texture_2d_linear_width = 70,
                     texture_2d_linear_height = 71, texture_2d_linear_pitch = 72, mipmapped_2d_width = 73,
                     mipmapped_2d_height = 74, mipmapped_1d_width = 77, timeline_semaphores = 114;
}  // namespace attribute

}  // namespace isthmus::sim
