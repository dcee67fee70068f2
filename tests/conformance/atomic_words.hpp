// SPDX-License-Identifier: Apache-2.0
// Atomic operations that the conformance kernels may apply to words which the host uses too.
#pragma once

#include <isthmus/atomic_pair.hpp>
#include <isthmus/concurrent/sharded_counter_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

namespace conformance {

using AddedWords = isthmus::AtomicView<std::uint32_t, isthmus::AtomicSet::add>;
using ControlWords = isthmus::AtomicView<std::uint32_t>;
using UpdatedWords =
    isthmus::AtomicView<std::uint32_t, isthmus::AtomicSet::add | isthmus::AtomicSet::bit_or | isthmus::AtomicSet::max>;
using NarrowWords = isthmus::AtomicView<std::int32_t, isthmus::AtomicSet::all>;
using WideWords = isthmus::AtomicView<std::uint64_t, isthmus::AtomicSet::all>;
using FloatWords = isthmus::AtomicView<float, isthmus::AtomicSet::float_add>;
using DoubleWords = isthmus::AtomicView<double, isthmus::AtomicSet::float_add>;

}  // namespace conformance
