// SPDX-License-Identifier: Apache-2.0
// Declares the kernels of the excerpts in several pages.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/concurrent/sharded_counter_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

// show: declare
ISTHMUS_DECLARE_KERNEL(scale, isthmus::Index i, isthmus::View<float> out, isthmus::View<const float> in, float factor);
// end
ISTHMUS_DECLARE_KERNEL(sums, isthmus::Block block, isthmus::Out<int> out, isthmus::View<const int> in);
ISTHMUS_DECLARE_KERNEL(mean, isthmus::Block block, isthmus::Out<float> out, isthmus::View<const float> in,
                       std::uint32_t width);
ISTHMUS_DECLARE_KERNEL(negate, isthmus::Index i, isthmus::View<float> data);
ISTHMUS_DECLARE_KERNEL(count_one, isthmus::Index i, isthmus::AtomicView<std::uint32_t, isthmus::AtomicSet::add> words);
ISTHMUS_DECLARE_KERNEL(count_apart, isthmus::Index i, isthmus::View<const std::uint8_t> values,
                       isthmus::ShardedCounterView counts);

using Squares = isthmus::MailboxView<std::uint32_t, std::uint64_t>;
ISTHMUS_DECLARE_KERNEL(squares, isthmus::Index i, Squares mailbox);
