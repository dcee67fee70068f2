// SPDX-License-Identifier: Apache-2.0
// Classifies the outcomes of each shape.
#include "shapes.hpp"

namespace isthmus::tools::litmus {

Outcome judge(LitmusShape shape, unsigned code) noexcept {
    const unsigned a = code % 3;
    const unsigned b = code / 3;
    switch (shape) {
        case LitmusShape::message_to_device:
        case LitmusShape::message_to_host:  // a: the flag, read first; b: the data
            if (a != 0 && b == 0) return Outcome::weak;
            return a == 0 && b != 0 ? Outcome::interleaved : Outcome::ordinary;
        case LitmusShape::store_buffering:  // a, b: whether each side saw the other's write
            if (a == 0 && b == 0) return Outcome::weak;
            return a != 0 && b != 0 ? Outcome::interleaved : Outcome::ordinary;
        case LitmusShape::load_buffering:
            if (a != 0 && b != 0) return Outcome::weak;
            return a == 0 && b == 0 ? Outcome::interleaved : Outcome::ordinary;
        case LitmusShape::coherence_to_device:
        case LitmusShape::coherence_to_host:  // one word, read twice
            if (b < a) return Outcome::weak;
            return a < b || a == 1 ? Outcome::interleaved : Outcome::ordinary;
        case LitmusShape::tearing_to_device:
        case LitmusShape::tearing_to_host: return a != b ? Outcome::weak : Outcome::ordinary;
        case LitmusShape::lost_updates: return code == 2 ? Outcome::ordinary : Outcome::weak;
    }
    return Outcome::weak;
}

std::uint64_t total(const Counts& counts) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : counts) sum += each;
    return sum;
}

std::uint64_t count(LitmusShape shape, const Counts& counts, Outcome outcome) noexcept {
    std::uint64_t sum = 0;
    for (unsigned code = 0; code < counts.size(); ++code) {
        if (judge(shape, code) == outcome) sum += counts[code];
    }
    return sum;
}

std::optional<LitmusShape> shape_of(std::string_view text) noexcept {
    for (int code = 0; code < litmus_shape_count; ++code) {
        if (text == name(static_cast<LitmusShape>(code))) return static_cast<LitmusShape>(code);
    }
    return std::nullopt;
}

std::string_view weak_means(LitmusShape shape) noexcept {
    switch (shape) {
        case LitmusShape::message_to_device:
        case LitmusShape::message_to_host: return "the flag was new and the data old";
        case LitmusShape::store_buffering: return "neither side saw the other's write";
        case LitmusShape::load_buffering: return "both sides saw a write that came after their own read";
        case LitmusShape::coherence_to_device:
        case LitmusShape::coherence_to_host: return "one word went back to an older value";
        case LitmusShape::tearing_to_device:
        case LitmusShape::tearing_to_host: return "one half of 16 bytes was new and the other old";
        case LitmusShape::lost_updates: return "an addition was lost";
    }
    return "unknown";
}

const Mutant* find_mutant(std::string_view name) noexcept {
    for (const Mutant& mutant : mutants) {
        if (mutant.name == name) return &mutant;
    }
    return nullptr;
}

}  // namespace isthmus::tools::litmus
