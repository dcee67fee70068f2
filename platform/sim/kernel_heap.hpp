// SPDX-License-Identifier: Apache-2.0
// The heap of malloc() and free() in kernels: one for each context, of the size CU_LIMIT_MALLOC_HEAP_SIZE when the
// first kernel that uses it is launched. Kernels alone reach it, and only what malloc() gave.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace isthmus::sim {

class Driver;
struct Region;

// Where blocks lie in a heap: the first gap that is large enough. Pure.
class HeapPlaces {
public:
    static constexpr std::size_t unit = 16;    // of places and of sizes
    static constexpr std::size_t header = 16;  // before each block; assumed
    static constexpr std::size_t none = ~std::size_t{0};

    explicit HeapPlaces(std::size_t bytes) : gaps_{{0, bytes}} {}
    // The offset of a block; `none`: there is no room.
    std::size_t take(std::size_t bytes);
    // Empty: done; otherwise why not.
    std::string give_back(std::size_t offset);
    struct Block {
        std::size_t offset = 0, bytes = 0;
    };
    // The block around an offset; bytes 0: there is none.
    Block around(std::size_t offset) const;
    // For messages: what lies at an offset that no block has, for a heap that begins at `base`.
    std::string described(std::size_t offset, std::uint64_t base) const;

private:
    std::map<std::size_t, std::size_t> gaps_;        // their bytes, by offset
    std::map<std::size_t, std::size_t> blocks_;      // bytes that were asked for
    std::map<std::size_t, std::size_t> given_back_;  // blocks of before whose place nothing has taken since
};

struct KernelHeap {
    KernelHeap(std::uint64_t id, std::size_t bytes) : region(id), places(bytes) {}
    std::uint64_t region = 0;
    HeapPlaces places;
};

// The heap of the context, made if it is not there; nullptr: the device has no memory for it. Requires the driver's
// mutex, as all that follows.
KernelHeap* make_heap(Driver& d, const Context* context, int device);
// nullptr: no kernel has used it.
KernelHeap* heap_of(Driver& d, const Context* context);
void forget_heap(Driver& d, const Context* context);
// The heap's memory, if the address lies in it; nullptr otherwise.
Region* heap_region(Driver& d, const Context* context, Address address);

}  // namespace isthmus::sim
