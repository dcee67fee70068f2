// SPDX-License-Identifier: Apache-2.0
// The litmus programs: the accesses of each side in one instance of a shape. CPU and GPU compile the same code.
#pragma once

#include "system_words.hpp"

#include <isthmus/litmus.hpp>

#include <cstdint>

namespace isthmus::tools::litmus {

// The memory of an instance. `first` and `second` lie far apart. Shapes of one word use `first`; wide shapes use its 16
// bytes.
struct Cell {
    Word* first;
    Word* second;
};

// One side of a launch. A word that this launch wrote holds `value` (or value + 1); any other word holds an older
// value.
struct Play {
    LitmusShape shape;
    bool on_device;  // true: the GPU's side
    Access access;
    Word value;
};

// Two results of 0, 1 or 2 in one byte: a + 3 b. shapes.hpp classifies the nine outcomes.
inline constexpr int outcome_count = 9;
ISTHMUS_KERNEL_FUNCTION std::uint8_t outcome(unsigned a, unsigned b) {
    return static_cast<std::uint8_t>(a + 3 * b);
}

// 1: the first value of this launch; 2: the second; 0: an older value.
ISTHMUS_KERNEL_FUNCTION unsigned age(Word seen, Word value) {
    return seen == value ? 1u : seen == value + 1 ? 2u : 0u;
}

ISTHMUS_KERNEL_FUNCTION Wide both_halves(Word value) {
    return {value, value};
}

// The writing side of messages, coherence and tearing.
ISTHMUS_KERNEL_FUNCTION void play_writer(const Play& play, const Cell& cell) {
    switch (play.shape) {
        case LitmusShape::message_to_device:
        case LitmusShape::message_to_host:
            store_relaxed(cell.first, play.value, play.access);
            store_release(cell.second, play.value, play.access);  // pairs with the acquire in play_reader()
            break;
        case LitmusShape::coherence_to_device:
        case LitmusShape::coherence_to_host:
            store_relaxed(cell.first, play.value, play.access);
            store_relaxed(cell.first, play.value + 1, play.access);
            break;
        default: store_wide(cell.first, both_halves(play.value), play.access.ordered); break;
    }
}

// The reading side: the flag and then the data; the same word twice; or the two halves of a wide word.
ISTHMUS_KERNEL_FUNCTION std::uint8_t play_reader(const Play& play, const Cell& cell) {
    switch (play.shape) {
        case LitmusShape::message_to_device:
        case LitmusShape::message_to_host: {
            const Word flag = load_acquire(cell.second, play.access);  // pairs with the release in play_writer()
            const Word data = load_relaxed(cell.first, play.access);
            return outcome(flag == play.value, data == play.value);
        }
        case LitmusShape::coherence_to_device:
        case LitmusShape::coherence_to_host: {
            if (!play.access.ordered) (void)load_cached(cell.first);  // fills a cache line that may become stale
            const Word before = load_relaxed(cell.first, play.access);
            const Word after = play.access.ordered ? load_relaxed(cell.first, play.access) : load_cached(cell.first);
            return outcome(age(before, play.value), age(after, play.value));
        }
        default: {
            const Wide seen = load_wide(cell.first, play.access.ordered);
            return outcome(seen.low == play.value, seen.high == play.value);
        }
    }
}

ISTHMUS_KERNEL_FUNCTION bool reads(LitmusShape shape, bool on_device) {
    switch (shape) {
        case LitmusShape::store_buffering:
        case LitmusShape::load_buffering: return true;
        case LitmusShape::message_to_device:
        case LitmusShape::coherence_to_device:
        case LitmusShape::tearing_to_device: return on_device;
        case LitmusShape::lost_updates: return false;
        default: return !on_device;
    }
}

// Runs one instance. Returns what this side saw; 0 where it only writes. Shapes in which both sides do the same swap
// the words: the GPU's first word is the CPU's second.
ISTHMUS_KERNEL_FUNCTION std::uint8_t play_instance(const Play& play, const Cell& cell) {
    Word* const own = play.on_device ? cell.second : cell.first;
    Word* const others = play.on_device ? cell.first : cell.second;
    switch (play.shape) {
        case LitmusShape::store_buffering:
            store_relaxed(own, play.value, play.access);
            fence(play.access);
            return load_relaxed(others, play.access) == play.value;
        case LitmusShape::load_buffering: {
            const Word seen = load_acquire(others, play.access);
            store_release(own, play.value, play.access);
            return seen == play.value;
        }
        case LitmusShape::lost_updates: add_one(cell.first, play.access); return 0;
        case LitmusShape::message_to_device:
        case LitmusShape::coherence_to_device:
        case LitmusShape::tearing_to_device:
            if (play.on_device) return play_reader(play, cell);
            break;
        default:
            if (!play.on_device) return play_reader(play, cell);
    }
    play_writer(play, cell);
    return 0;
}

}  // namespace isthmus::tools::litmus
