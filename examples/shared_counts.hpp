// SPDX-License-Identifier: Apache-2.0
// Declares the kernels of the histogram and of the work queue for the files that launch them.
#pragma once

#include <isthmus/concurrent/sharded_counter_view.hpp>
#include <isthmus/kernel.hpp>

// The type states which updates a kernel makes: a launch over memory where they are not atomic is refused.
using Counts = isthmus::AtomicView<std::uint32_t, isthmus::AtomicSet::add>;

ISTHMUS_DECLARE_KERNEL(count_values, isthmus::Index i, isthmus::View<const std::uint8_t> values, Counts counts);
ISTHMUS_DECLARE_KERNEL(count_values_apart, isthmus::Index i, isthmus::View<const std::uint8_t> values,
                       isthmus::ShardedCounterView counts);
// Takes task numbers until none are left, and computes each task: results[task] = task squared.
ISTHMUS_DECLARE_KERNEL(work_off, isthmus::Index i, Counts next, std::uint32_t end,
                       isthmus::View<std::uint64_t> results);
ISTHMUS_DECLARE_KERNEL(work_share, isthmus::Index i, std::uint32_t first, isthmus::View<std::uint64_t> results);
