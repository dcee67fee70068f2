// SPDX-License-Identifier: Apache-2.0
// Places of small allocations in chunks.
#include "chunks.hpp"

namespace isthmus::sim {
namespace {

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

std::uint64_t whole_steps(std::uint64_t bytes) {
    constexpr std::uint64_t step = 512;  // observed: the alignment of small allocations
    return (bytes + step - 1) / step * step;
}

}  // namespace

std::uint64_t Chunks::first_place(const Chunk& chunk, std::uint64_t bytes) {
    std::uint64_t start = 0;
    for (const auto& [taken, end] : chunk.ends) {
        if (taken - start >= whole_steps(bytes)) return start;
        start = end;
    }
    return chunk_bytes - start >= whole_steps(bytes) ? start : nowhere;
}

std::optional<Chunks::Place> Chunks::find(const Context* context, std::uint64_t bytes) {
    for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
        if (chunk->context != context) continue;
        if (const std::uint64_t start = first_place(*chunk, bytes); start != nowhere) return Place{chunk, start};
    }
    return std::nullopt;
}

void Chunks::take(std::uint64_t id, const Context* context, std::uint64_t bytes, const std::optional<Place>& found) {
    const Place place = found ? *found : Place{chunks_.insert(chunks_.end(), Chunk{context, {}}), 0};
    place.first->ends[place.second] = place.second + whole_steps(bytes);
    places_[id] = place;
}

bool Chunks::give_back(std::uint64_t id) {
    const auto place = places_.find(id);
    if (place == places_.end()) return false;
    const auto [chunk, start] = place->second;
    places_.erase(place);
    chunk->ends.erase(start);
    if (!chunk->ends.empty()) return false;
    chunks_.erase(chunk);
    return true;
}

}  // namespace isthmus::sim
