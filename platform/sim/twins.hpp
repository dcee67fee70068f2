// SPDX-License-Identifier: Apache-2.0
// The registered CPU twins of kernels, independent of the driver's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct isthmus_sim_extent;
struct isthmus_sim_updates;

namespace isthmus::sim {

struct Parameter {
    std::uint32_t offset_bytes, size_bytes, element_bytes, use;
    bool is_view() const { return element_bytes != 0; }
    bool writes() const { return (use & 6) != 0; }  // ArgumentUse: write 2, read_write 3, concurrent 4
};

struct Twin {
    std::string image_hash;
    const unsigned char* image = nullptr;
    std::size_t image_bytes = 0;
    std::string symbol;
    std::vector<Parameter> parameters;
    std::uint32_t pack_bytes = 0;
    std::uint32_t rank = 1;
    std::uint32_t block_threads = 0;
    void (*run)(const isthmus_sim_extent* extent, std::uint64_t first, std::uint64_t last, const void* pack) = nullptr;
    void (*play_gpu)(const isthmus_sim_updates* updates) = nullptr;
};

// The hash under which an image with these bytes was registered; empty: none was.
std::string hash_of_image(const void* image);
// nullptr: not registered yet; kernels of a loaded image may still be registered. Twins are never removed.
const Twin* find_twin(const std::string& image_hash, const char* symbol);

}  // namespace isthmus::sim
