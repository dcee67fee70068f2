// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: views of arrays and of memory that kernels name by a number.
#pragma once

#include "array_limits.hpp"
#include "arrays.hpp"

#include <execution.hpp>

#include <optional>

namespace isthmus::sim {

struct Texture {
    TextureResource resource = {};
    TextureSampling sampling = {};
    std::optional<TextureView> view;
    Context* context = nullptr;
};

struct Surface {
    TextureResource resource = {};
    Context* context = nullptr;
};

// CUresourcetype
namespace resource_type {
inline constexpr int array = 0, mipmapped = 1, linear = 2, pitched = 3;
}  // namespace resource_type

// 0; 709 with the array's context; 1 for what is no array. Observed (580, H200) for textures: 705 for one of another
// context. Requires the driver's mutex.
Result check_array_of_object(const Driver& d, const Array* array, const Context& context);

// As kernels from PTX see it. `format`: CUarray_format, one that element_bytes_of() knows.
ptx::TexelFormat format_of(int format, unsigned channels);
// Of coordinates, layers not counted.
std::uint32_t dimensions_of(const ArrayDescription3D& description);

// The context ends: its handles denote nothing from here on. Requires the driver's mutex.
void lose_textures(Driver& d, const Context* context);

}  // namespace isthmus::sim
