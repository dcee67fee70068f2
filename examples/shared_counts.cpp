// SPDX-License-Identifier: Apache-2.0
// The kernels of the histogram and of the work queue.
#include "shared_counts.hpp"

#include <isthmus/atomic_ref.hpp>

using namespace isthmus;

ISTHMUS_KERNEL(count_values, Index i, View<const std::uint8_t> values, Counts counts) {
    counts.at(values[i]).add_relaxed(1);
}

ISTHMUS_KERNEL(count_values_apart, Index i, View<const std::uint8_t> values, ShardedCounterView counts) {
    counts.add(values[i], 1);
}

ISTHMUS_KERNEL(work_off, Index, Counts next, std::uint32_t end, View<std::uint64_t> results) {
    for (;;) {
        const std::uint64_t task = next.at(0).add_relaxed(1);
        if (task >= end) return;
        results[task] = task * task;
    }
}

ISTHMUS_KERNEL(work_share, Index i, std::uint32_t first, View<std::uint64_t> results) {
    const std::uint64_t task = first + i;
    results[task] = task * task;
}
