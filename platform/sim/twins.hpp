// Kernels' CPU twins as registered: known before and independently of the driver's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct isthmus_sim_extent;

namespace isthmus::sim {

struct Parameter {
    std::uint32_t offset_bytes, size_bytes, element_bytes, use;
    bool is_view() const { return element_bytes != 0; }
    bool writes() const { return (use & 2) != 0; }
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
};

// The twins of the image with these bytes; empty: nobody registered it. Twins are never forgotten.
std::vector<const Twin*> twins_of_image(const void* image);

}  // namespace isthmus::sim
