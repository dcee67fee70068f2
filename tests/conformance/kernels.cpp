// SPDX-License-Identifier: Apache-2.0
// The kernels that the conformance tests launch.
#include "atomic_words.hpp"
#include "many_views.hpp"

#include <isthmus/kernel.hpp>
#include <isthmus/mapping/alias_fence.hpp>

#include <cstdint>

namespace conformance {

using namespace isthmus;

ISTHMUS_KERNEL(no_argument, Index) {}

ISTHMUS_KERNEL(many_views, Index i, CONFORMANCE_24_VIEWS) {
    a0[i] += 1;
}

ISTHMUS_KERNEL(add_one, Index i, View<std::int32_t> data) {
    data[i] += 1;
}

ISTHMUS_KERNEL(scale_into, Index i, Out<std::int32_t> out, View<const std::int32_t> in, std::int32_t factor) {
    out[i] = in[i] * factor;
}

ISTHMUS_KERNEL(coordinates, Index2 i, Out<std::uint64_t> out, std::uint64_t width) {
    out[i.y * width + i.x] = i.y * 100000 + i.x;
}

ISTHMUS_KERNEL(coordinates_3d, Index3 i, Out<std::uint64_t> out, std::uint64_t width, std::uint64_t height) {
    out[(i.z * height + i.y) * width + i.x] = (i.z * 1000 + i.y) * 1000 + i.x;
}

ISTHMUS_BLOCK_KERNEL(block_sums, 64, Block block, Out<std::int64_t> sums, View<const std::int32_t> in) {
    ISTHMUS_SHARED(std::int64_t, partial, 64);
    block.for_each_thread([&](std::uint32_t thread) { partial[thread] = in[block.index() * 64 + thread]; });
    for (std::uint32_t half = 32; half > 0; half /= 2) {
        block.for_each_thread([&](std::uint32_t thread) {
            if (thread < half) partial[thread] += partial[thread + half];
        });
    }
    block.for_each_thread([&](std::uint32_t thread) {
        if (thread == 0) sums[block.index()] = partial[0];
    });
}

ISTHMUS_KERNEL(churn, Index i, View<std::int32_t> data, std::int32_t rounds) {
    auto value = static_cast<std::uint32_t>(data[i]);  // unsigned, because it wraps, as in the test's expected result
    for (std::int32_t round = 0; round < rounds; ++round) value = value * 1664525u + 1013904223u;
    data[i] = static_cast<std::int32_t>(value);
}

// One writer per flag; the release of each pairs with the acquires of the others.
ISTHMUS_KERNEL_FUNCTION void raise_flag(std::int32_t& flag) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *const_cast<volatile std::int32_t*>(&flag) = 1;
#else
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
#endif
}
ISTHMUS_KERNEL_FUNCTION bool is_raised(const std::int32_t& flag) {
#if defined(__CUDA_ARCH__)
    const bool raised = *const_cast<const volatile std::int32_t*>(&flag) != 0;
    __threadfence_system();
    return raised;
#else
    return __atomic_load_n(&flag, __ATOMIC_ACQUIRE) != 0;
#endif
}

ISTHMUS_KERNEL(take_turn, Index, View<std::int32_t> word, View<std::int32_t> turns) {
    word[0] -= 1;
    turns[0] += 1;
}

ISTHMUS_KERNEL(meet, Index, View<std::int32_t> met, View<std::int32_t> flags, std::int32_t self, std::int32_t parties) {
    constexpr int stride = 32;  // meeting_stride
    raise_flag(flags[self * stride]);
    bool all = false;
    while (!all && !is_raised(flags[parties * stride])) {
        all = true;
        for (std::int32_t party = 0; party < parties; ++party) all = all && is_raised(flags[party * stride]);
    }
    met[0] = all ? 1 : 0;
}

template <class Add>
ISTHMUS_KERNEL_FUNCTION void until_told(std::uint64_t item, const ControlWords& control, Add add) {
    control.at(0).store_release(1);
    std::uint32_t added = 0;
    do {
        add();
        ++added;
    } while (control.at(1).load_acquire() == 0);
    control.at(2 + item).store_release(added);
}

ISTHMUS_KERNEL(add_until_told, Index i, AddedWords words, ControlWords control) {
    until_told(i, control, [&] { words.at(0).add_relaxed(1); });
}

ISTHMUS_KERNEL(add_unguarded_until_told, Index i, ControlWords words, ControlWords control) {
    until_told(i, control, [&] { AtomicRef<std::uint32_t>(words.data[0]).add_relaxed(1); });
}

ISTHMUS_KERNEL(count_until_told, Index i, ShardedCounterView counter, ControlWords control) {
    until_told(i, control, [&] { counter.add(i % counter.size(), 1); });
}

ISTHMUS_KERNEL(count_items, Index i, ShardedCounterView counter) {
    counter.add(i % counter.size(), i + 1);
}

ISTHMUS_KERNEL(store_pairs_until_told, Index i, AtomicView<Pair64> pairs, ControlWords control) {
    std::uint64_t number = 0;
    until_told(i, control, [&] {
        ++number;
        pairs.at(0).store_release({number, number});
    });
}

template <class Words>
ISTHMUS_KERNEL_FUNCTION void update_every_way(const Words& words, const View<std::int64_t>& old, std::uint64_t at) {
    const auto word = words.at(0);
    const auto note = [&](auto value) { old[at++] = static_cast<std::int64_t>(value); };
    note(word.add_relaxed(5));
    note(word.sub_acq_rel(7));
    note(word.min_relaxed(9));
    note(word.max_acq_rel(11));
    note(word.and_relaxed(6));
    note(word.or_acq_rel(9));
    note(word.xor_relaxed(3));
    note(word.exchange_acq_rel(20));
    typename std::remove_cvref_t<decltype(word)>::value_type expected = 21;
    const bool wrong = word.compare_exchange_relaxed(expected, 1);
    note(wrong ? -1 : static_cast<int>(expected));
    note(word.compare_exchange_acq_rel(expected, 33) ? 1 : -1);
}

ISTHMUS_KERNEL(every_update, Index, NarrowWords words, WideWords wide, View<std::int64_t> old) {
    update_every_way(words, old, 0);
    update_every_way(wide, old, 10);
}

ISTHMUS_KERNEL(add_floats, Index, FloatWords single, DoubleWords twice) {
    single.at(0).add_relaxed(1);
    twice.at(0).add_acq_rel(2);
}

ISTHMUS_KERNEL(update_words, Index i, UpdatedWords words) {
    words.at(0).add_relaxed(1);
    words.at(1).or_relaxed(std::uint32_t{1} << (i % 32));
    words.at(2).max_relaxed(static_cast<std::uint32_t>(i));
}

ISTHMUS_KERNEL(when_raised, Index, AtomicView<std::int32_t> gate, View<std::int32_t> data, std::int32_t by) {
    constexpr int line = 32;  // gate_line
    while (!is_raised(gate.data[0])) {
    }
    for (std::uint64_t at = 0; at < data.size(); ++at) data[at] += by;
    raise_flag(gate.data[line]);
}

ISTHMUS_KERNEL(write_and_read_alias, Index i, View<std::int32_t> ring, std::uint64_t capacity, Out<std::int32_t> seen) {
    ring[i] = static_cast<std::int32_t>(i) + 1;
    isthmus::alias_fence();
    seen[i] = ring[capacity + i];
}

// The mistake that the fence prevents.
ISTHMUS_KERNEL(write_and_read_alias_unfenced, Index i, View<std::int32_t> ring, std::uint64_t capacity,
               Out<std::int32_t> seen) {
    ring[i] = static_cast<std::int32_t>(i) + 1;
    seen[i] = ring[capacity + i];
}

ISTHMUS_KERNEL(leave_mark, Index, AtomicView<std::int32_t> words) {
    raise_flag(words.data[0]);
}

}  // namespace conformance
