// SPDX-License-Identifier: Apache-2.0
// Which arrays a device can have: formats, kinds, and the largest extents. Decisions alone, by facts of the machine.
#pragma once

#include "array_types.hpp"
#include "driver.hpp"

namespace isthmus::sim {

// CUDA_ARRAY3D_*
namespace array_flag {
inline constexpr unsigned layered = 1, surface = 2, cubemap = 4, gather = 8, depth_texture = 16, color_attachment = 32,
                          sparse = 64, deferred_mapping = 128, video = 256;
}  // namespace array_flag

constexpr int nv12_format = 0xb0;

// The bytes of one element; 0: no format for arrays, or not with that many channels. NV12 has no elements.
std::size_t element_bytes_of(int format, unsigned channels);
// Whether cuda.h has the format, but the simulator cannot lay it out.
bool is_format_not_modelled(int format);

// 0, or why the device has no such array. `call`: for messages.
Result check_array(const Driver& d, int device, const ArrayDescription3D& description, bool mipmapped,
                   const char* call);

// Documented: the number of levels is clamped to this.
unsigned most_levels(const ArrayDescription3D& description);
// The description of one level.
ArrayDescription3D level_of(const ArrayDescription3D& description, unsigned level);

// Rows and layers for copies: an extent of 0 is one.
inline std::size_t rows_of(const ArrayDescription3D& description) {
    return description.height != 0 ? description.height : 1;
}
inline std::size_t layers_of(const ArrayDescription3D& description) {
    return description.depth != 0 ? description.depth : 1;
}
// Without gaps.
std::size_t bytes_of(const ArrayDescription3D& description);

}  // namespace isthmus::sim
