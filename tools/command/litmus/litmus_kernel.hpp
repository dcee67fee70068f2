// SPDX-License-Identifier: Apache-2.0
// The GPU's side of the trials: one kernel that plays many rounds, each when the CPU opens it.
#pragma once

#include "cells.hpp"

#include <isthmus/kernel.hpp>

#include <cstdint>

namespace isthmus::tools::litmus {

inline constexpr std::uint32_t block_threads = 256;

// Indices of the words in `signals`, 128 bytes apart; the memory holds nothing else.
inline constexpr std::uint32_t go_signal = 0;  // CPU → GPU: rounds that may be played, counted from the first launch
inline constexpr std::uint32_t progress_signal = 32;  // GPU → CPU: rounds that the first block has played
inline constexpr std::uint32_t gave_up_signal = 64;   // GPU → CPU: not 0: a block gave up waiting for a round
inline constexpr std::uint32_t signal_words = 96;

// The parameters of one launch. Instance `round * slots + slot` belongs to thread `slot` of the grid. The CPU's threads
// take the slots in order, `piece` slots each.
struct LaunchPlan {
    std::uint32_t shape = 0;  // a LitmusShape
    std::uint32_t ordered = 1;
    std::uint32_t narrow = 0;
    Word value = 0;
    std::uint32_t first_round = 0;
    std::uint32_t rounds = 0;
    std::uint32_t piece = 1;
    std::uint32_t second_at = 0;      // words from an instance's `first` to its `second`
    std::uint32_t words_apart = 1;    // words from instance to instance: 4 for wide shapes
    std::uint32_t lead_clocks = 0;    // delay of every warp,
    std::uint32_t piece_clocks = 0;   // plus a delay in proportion to its place in the piece,
    std::uint32_t jitter_clocks = 0;  // plus a random delay of at most this, drawn for every warp and round
    std::uint32_t seed = 0;
    std::uint32_t max_polls = 0;  // polls of a block for one round; then the kernel ends
};

ISTHMUS_DECLARE_KERNEL(litmus_rounds, isthmus::Block block, isthmus::View<std::uint32_t> cells,
                       isthmus::View<std::uint32_t> signals, isthmus::View<std::uint8_t> seen,
                       isthmus::tools::litmus::LaunchPlan plan);

}  // namespace isthmus::tools::litmus
