// SPDX-License-Identifier: Apache-2.0
// Arrays as tests make, fill and read them.
#pragma once

#include "sim_test.hpp"

#include <numeric>
#include <vector>

namespace isthmus::sim::test {

// CUarray_format and CUDA_ARRAY3D_*
inline constexpr int u8 = 1, u16 = 2, u32 = 3, f32 = 0x20, nv12 = 0xb0;
inline constexpr unsigned layered = 1, with_surface = 2, cubemap = 4, with_gather = 8, sparse = 64, mapped_later = 128,
                          for_video = 256;

inline ArrayDescription3D described(std::size_t width, std::size_t height, std::size_t depth, int format,
                                    unsigned channels = 1, unsigned flags = 0) {
    return {width, height, depth, format, channels, flags};
}

inline Array* new_array(const ArrayDescription3D& description) {
    Array* made = nullptr;
    REQUIRE_CODE(cuArray3DCreate_v2(&made, &description), 0);
    REQUIRE_THAT(made != nullptr);
    return made;
}
inline Result array_code(const ArrayDescription3D& description) {
    Array* made = nullptr;
    const Result code = cuArray3DCreate_v2(&made, &description);
    REQUIRE_THAT((made != nullptr) == (code == 0));
    if (code == 0) REQUIRE_CODE(cuArrayDestroy(made), 0);
    return code;
}

inline std::size_t free_memory() {
    std::size_t free_bytes = 0, total_bytes = 0;
    REQUIRE_CODE(cuMemGetInfo_v2(&free_bytes, &total_bytes), 0);
    return free_bytes;
}

// 0, 1, 2, …
inline std::vector<unsigned char> ascending(std::size_t bytes) {
    std::vector<unsigned char> all(bytes);
    std::iota(all.begin(), all.end(), static_cast<unsigned char>(0));
    return all;
}

// The ends of copies.
inline Copy3DEnd host_end(const void* pointer, std::size_t pitch = 0, std::size_t height = 0) {
    Copy3DEnd end = {};
    end.type = 1;
    end.host = pointer;
    end.pitch = pitch;
    end.height = height;
    return end;
}
inline Copy3DEnd device_end(Address address, std::size_t pitch = 0, std::size_t height = 0) {
    Copy3DEnd end = {};
    end.type = 2;
    end.device = address;
    end.pitch = pitch;
    end.height = height;
    return end;
}
inline Copy3DEnd array_end(Array* array, std::size_t x_bytes = 0, std::size_t y = 0, std::size_t z = 0) {
    Copy3DEnd end = {};
    end.type = 3;
    end.array = array;
    end.x_bytes = x_bytes;
    end.y = y;
    end.z = z;
    return end;
}
inline Result copied(const Copy3DEnd& to, const Copy3DEnd& from, std::size_t width_bytes, std::size_t height = 1,
                     std::size_t depth = 1) {
    const Copy3D copy = {from, to, width_bytes, height, depth};
    return cuMemcpy3D_v2(&copy);
}

// All bytes of an array, row by row and layer by layer.
inline std::vector<unsigned char> content(Array* array, std::size_t row_bytes, std::size_t rows = 1,
                                          std::size_t layers = 1) {
    std::vector<unsigned char> all(row_bytes * rows * layers);
    REQUIRE_CODE(copied(host_end(all.data(), row_bytes, rows), array_end(array), row_bytes, rows, layers), 0);
    return all;
}

}  // namespace isthmus::sim::test
