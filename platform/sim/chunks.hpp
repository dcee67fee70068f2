// SPDX-License-Identifier: Apache-2.0
// Chunks of a device's memory that small allocations share: first fit, as a driver 580 places them on an H100.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

namespace isthmus::sim {

struct Context;

inline constexpr std::uint64_t chunk_bytes = std::uint64_t{2} << 20;

// Requires the driver's mutex.
class Chunks {
public:
    // Whether one of the context's chunks has a place for fewer than chunk_bytes.
    bool have_room(const Context* context, std::uint64_t bytes) const;
    // Takes the first place, in a new chunk where there is none. `id`: not in use.
    void take(std::uint64_t id, const Context* context, std::uint64_t bytes);
    // Gives the place back. true: its chunk is empty and has ended.
    bool give_back(std::uint64_t id);

private:
    struct Chunk {
        const Context* context = nullptr;
        std::map<std::uint64_t, std::uint64_t> ends;  // of the places that are taken, by their start
    };
    using Place = std::pair<std::list<Chunk>::iterator, std::uint64_t>;

    static std::uint64_t first_place(const Chunk& chunk, std::uint64_t bytes);

    std::list<Chunk> chunks_;
    std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace isthmus::sim
