// SPDX-License-Identifier: Apache-2.0
// Chunks of a device's memory that small allocations share: first fit, as a driver 580 places them on an H100.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace isthmus::sim {

struct Context;

inline constexpr std::uint64_t chunk_bytes = std::uint64_t{2} << 20;

// Requires the driver's mutex.
class Chunks {
    struct Chunk {
        const Context* context = nullptr;
        std::map<std::uint64_t, std::uint64_t> ends;  // of the places that are taken, by their start
    };

public:
    using Place = std::pair<std::list<Chunk>::iterator, std::uint64_t>;

    // The first place for fewer than chunk_bytes in one of the context's chunks, until something is taken or given
    // back. nullopt: none has room.
    std::optional<Place> find(const Context* context, std::uint64_t bytes);
    // Takes what find() has found, or the first place of a new chunk. `id`: not in use.
    void take(std::uint64_t id, const Context* context, std::uint64_t bytes, const std::optional<Place>& found);
    // Gives the place back. true: its chunk is empty and has ended.
    bool give_back(std::uint64_t id);

private:
    static std::uint64_t first_place(const Chunk& chunk, std::uint64_t bytes);

    std::list<Chunk> chunks_;
    std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace isthmus::sim
