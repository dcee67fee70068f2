// SPDX-License-Identifier: Apache-2.0
// The registered CPU twins of kernels, independent of the driver's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct isthmus_sim_extent;
struct isthmus_sim_updates;
namespace isthmus::ptx {
class Program;
struct Entry;
}  // namespace isthmus::ptx

namespace isthmus::sim {

struct Parameter {
    std::uint32_t offset_bytes, size_bytes, element_bytes, use;
    bool is_view() const { return element_bytes != 0; }
    bool writes() const { return (use & 6) != 0; }  // ArgumentUse: write 2, read_write 3, concurrent 4
};

// One loading of an image by the program: libraries that are closed leave images behind, and equal content may lie at
// several addresses with twins of its own.
struct ImageName {
    std::string hash;                        // empty: none
    const unsigned char* address = nullptr;  // for comparisons alone: the image may be gone
    std::uint64_t first_use = 0;
    friend bool operator==(const ImageName&, const ImageName&) = default;
};

// Where a parameter of an entry of a ready-made image lies in its parameter block.
struct BlockParameter {
    std::uint32_t offset_bytes, size_bytes;
};

struct Twin {
    ImageName image;
    std::shared_ptr<const std::vector<unsigned char>> content;  // of the image
    std::string symbol;
    std::vector<Parameter> parameters;
    std::uint32_t pack_bytes = 0;
    std::uint32_t rank = 1;
    std::uint32_t block_threads = 0;
    void (*run)(const isthmus_sim_extent* extent, std::uint64_t first, std::uint64_t last, const void* pack) = nullptr;
    void (*play_gpu)(const isthmus_sim_updates* updates) = nullptr;
    // Of an entry of a ready-made image: the pack is its parameter block, and a stand-in runs instead of `run`. What it
    // may touch is in `pointers`: a view by its address alone (8 bytes), or with its count (16).
    bool ready_made = false;
    std::vector<BlockParameter> block;
    std::vector<Parameter> pointers;
    void (*stand_in)(void* self, const isthmus_sim_extent* grid, const isthmus_sim_extent* threads,
                     std::uint32_t shared_bytes, void* const* parameters) = nullptr;
    void* self = nullptr;
    // Its PTX, which runs where there is no stand-in; nullptr: the image has none that can be read.
    std::shared_ptr<const ptx::Program> program;
    const ptx::Entry* entry = nullptr;
};

// The newest image with these bytes, one at this address first; an empty name: none is registered.
ImageName name_of_image(const void* image);
// nullptr: not registered yet; kernels of a loaded image may still be registered. Twins are never removed.
const Twin* find_twin(const ImageName& image, const char* symbol);
std::vector<std::string> twins_of_image(const ImageName& image);  // their symbols, in the order of their registration

}  // namespace isthmus::sim
