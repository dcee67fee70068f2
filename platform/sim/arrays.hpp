// SPDX-License-Identifier: Apache-2.0
// Arrays: device memory without an address, reached by copies, textures and surfaces alone. Rows lie without gaps.
#pragma once

#include "array_limits.hpp"
#include "copies.hpp"

#include <vector>

namespace isthmus::sim {

struct Array {
    ArrayDescription3D description = {};
    Context* context = nullptr;
    int device = -1;
    std::uint64_t region = 0;      // its memory
    std::size_t offset_bytes = 0;  // in that memory
    MipmappedArray* level_of = nullptr;
    const Array* plane_of = nullptr;
    std::vector<Array*> planes;  // handles that were given out, by index
};

struct MipmappedArray {
    ArrayDescription3D description = {};
    Context* context = nullptr;
    int device = -1;
    std::uint64_t region = 0;
    unsigned level_count = 0;
    std::vector<Array*> levels;  // handles that were given out, by level
};

// All functions below require the driver's mutex, unless they say otherwise.

// Memory of a device that only arrays have: accounted like other device memory, closed to the CPU on every machine, and
// known by no address. nullptr: there is no room.
Region* allocate_array_memory(Driver& d, int device, Context* context, std::size_t bytes);
void release_array_memory(Driver& d, std::uint64_t region);
// Waits for the device's work, as before cuMemFree (assumed): kernels name arrays by their handles, so that these end
// after it. Expects no lock.
Result wait_before_destruction(Driver& d, int device);

// 0; 709 with its context, 400 for null and for what never was an array. Observed (580, H200): a destroyed one crashes
// the driver, and so it does here. `call`: for the message.
Result check_alive(const Driver& d, const Array* array, const char* call);

// The same, with 1 for null. Observed (580, H200): another context of the same device may copy it. Assumed: 400 on
// another device.
Result check_handle(const Driver& d, const Array* array, const Context* context, const char* call);

// Where a box lies in an array.
struct ArrayPlace {
    Array* array = nullptr;
    std::size_t x_bytes = 0, y = 0, z = 0;
};
// 1 where the box leaves the array.
Result place_in_array(const Driver& d, const Context* context, const ArrayPlace& place, const Box& box, Side& side,
                      Layout& layout);

// The context ends: its handles denote nothing from here on.
void lose_arrays(Driver& d, const Context* context);

}  // namespace isthmus::sim
