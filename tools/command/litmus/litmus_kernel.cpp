// SPDX-License-Identifier: Apache-2.0
// The GPU's side of the trials. No block waits for a later block, so that the kernel ends also where blocks run one
// after the other.
#include "litmus_kernel.hpp"

#if !defined(__CUDACC__)
#include <thread>
#endif

namespace isthmus::tools::litmus {

// Returns 1: the round may be played; 0: the CPU did not open it in time.
ISTHMUS_KERNEL_FUNCTION std::uint32_t wait_for_round(Word* signals, std::uint32_t round, std::uint32_t max_polls) {
    for (std::uint32_t polls = 0; polls < max_polls; ++polls) {
        // Pairs with the release in Field::play_rounds(). Round numbers wrap around; a number counts as later where it
        // is less than half of the range ahead.
        if (static_cast<std::int32_t>(load_acquire(signals + go_signal, {}) - round) >= 0) return 1;
#if !defined(__CUDACC__)
        std::this_thread::yield();
#endif
    }
    store_release(signals + gave_up_signal, 1, {});
    return 0;
}

ISTHMUS_KERNEL_FUNCTION std::uint32_t mixed(std::uint32_t seed, std::uint32_t warp, std::uint32_t round) {
    std::uint32_t x = seed ^ (warp * 0x9e3779b9u) ^ (round * 0x85ebca6bu);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// All threads of a warp wait equally long, so that their accesses stay together.
ISTHMUS_KERNEL_FUNCTION void stagger([[maybe_unused]] const LaunchPlan& plan, [[maybe_unused]] std::uint32_t slot,
                                     [[maybe_unused]] std::uint32_t round) {
#if defined(__CUDA_ARCH__)
    const std::uint32_t warp = slot / 32;
    const std::uint64_t place = std::uint64_t{warp * 32 % plan.piece} * plan.piece_clocks / plan.piece;
    const std::uint32_t jitter = plan.jitter_clocks ? mixed(plan.seed, warp, round) % plan.jitter_clocks : 0;
    const long long clocks = static_cast<long long>(plan.lead_clocks + place + jitter);
    const long long begin = clock64();
    while (clock64() - begin < clocks) {
    }
#endif
}

ISTHMUS_BLOCK_KERNEL(litmus_rounds, 256, isthmus::Block block, isthmus::View<std::uint32_t> cells,
                     isthmus::View<std::uint32_t> signals, isthmus::View<std::uint8_t> seen,
                     isthmus::tools::litmus::LaunchPlan plan) {
    ISTHMUS_SHARED(std::uint32_t, may_play, 1);
    const auto slots = static_cast<std::uint32_t>(block.count.x) * block_threads;
    const Play play{static_cast<LitmusShape>(plan.shape), true, {plan.ordered != 0, plan.narrow != 0}, plan.value};
    for (std::uint32_t round = 0; round < plan.rounds; ++round) {
        block.for_each_thread([&](std::uint32_t thread) {
            if (thread == 0) may_play[0] = wait_for_round(signals.data, plan.first_round + round + 1, plan.max_polls);
        });
        if (may_play[0] == 0) return;
        block.for_each_thread([&](std::uint32_t thread) {
            const std::uint32_t slot = static_cast<std::uint32_t>(block.index()) * block_threads + thread;
            const std::uint64_t instance = std::uint64_t{round} * slots + slot;
            Word* const first = cells.data + instance * plan.words_apart;
            stagger(plan, slot, round);
            const std::uint8_t saw = play_instance(play, {first, first + plan.second_at});
            if (reads(play.shape, true)) seen[instance] = saw;
        });
        if (block.index() != 0) continue;
        block.for_each_thread([&](std::uint32_t thread) {
            if (thread == 0) store_release(signals.data + progress_signal, plan.first_round + round + 1, {});
        });
    }
}

}  // namespace isthmus::tools::litmus
