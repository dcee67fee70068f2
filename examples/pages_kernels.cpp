// SPDX-License-Identifier: Apache-2.0
// The kernels of the excerpts in several pages.
#include "pages_kernels.hpp"

#include <isthmus/atomic_ref.hpp>

using namespace isthmus;

// show: scale
ISTHMUS_KERNEL(scale, Index i, View<float> out, View<const float> in, float factor) {
    out[i] = in[i] * factor;
}
// end

// show: sums
ISTHMUS_BLOCK_KERNEL(sums, 64, Block block, Out<int> out, View<const int> in) {
    ISTHMUS_SHARED(int, part, 64);
    block.for_each_thread([&](std::uint32_t t) { part[t] = in[block.index() * 64 + t]; });
    for (std::uint32_t step = 32; step > 0; step /= 2) {
        block.for_each_thread([&](std::uint32_t t) {
            if (t < step) part[t] += part[t + step];
        });
    }
    block.for_each_thread([&](std::uint32_t t) {
        if (t == 0) out[block.index()] = part[0];
    });
}
// end

// show: tile
// The mean of 5 × 5 pixels, by columns and then by rows. `in` has two more pixels than `out` on each side.
ISTHMUS_BLOCK_KERNEL(mean, 128, Block block, Out<float> out, View<const float> in, std::uint32_t width) {
    ISTHMUS_SHARED_TILE(float, column, 36, 16);  // column[y][x] is the sum of five pixels below each other
    const std::uint64_t left = block.position.x * 32, top = block.position.y * 16;
    block.for_each_cell(Cells<36, 16>{}, [&](std::uint32_t x, std::uint32_t y) {
        const float* const pixel = &in[(top + y) * (width + 4) + left + x];
        float sum = 0;
        for (std::uint32_t n = 0; n < 5; ++n) sum += pixel[n * (width + 4)];
        column[y][x] = sum;
    });
    block.for_each_cell(Cells<32, 16>{}, [&](std::uint32_t x, std::uint32_t y) {
        const float* const sum = &column[y][x];
        out[(top + y) * width + left + x] = (sum[0] + sum[1] + sum[2] + sum[3] + sum[4]) / 25;
    });
}
// end

ISTHMUS_KERNEL(negate, Index i, View<float> data) {
    data[i] = -data[i];
}

// show: count
// The parameter's type says what the kernel does; a launch over memory where that is not lawful is refused.
ISTHMUS_KERNEL(count_one, Index, AtomicView<std::uint32_t, AtomicSet::add> words) {
    words.at(0).add_relaxed(1);
}
// end

// show: count_apart
ISTHMUS_KERNEL(count_apart, Index i, View<const std::uint8_t> values, ShardedCounterView counts) {
    counts.add(values[i], 1);
}
// end

// show: squares
ISTHMUS_KERNEL(squares, Index, MailboxView<std::uint32_t, std::uint64_t> mailbox) {
    auto server = mailbox.serve();
    for (std::uint32_t number; server.receive(number);) {  // false: the host said stop
        if (!server.reply(std::uint64_t{number} * number)) return;
    }
}
// end
