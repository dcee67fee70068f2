// SPDX-License-Identifier: Apache-2.0
// Kernels that go over a buffer at the speed of the memory: each thread takes every `threads`-th word.
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

namespace bench {

inline constexpr std::uint64_t threads = 256 * 1024;

// Every thread reads its words and stores their sum.
ISTHMUS_DECLARE_KERNEL(keep_sums, isthmus::Index i, isthmus::Out<std::uint64_t> sums,
                       isthmus::View<const std::uint64_t> words, std::int32_t salt);
ISTHMUS_DECLARE_KERNEL(write_words, isthmus::Index i, isthmus::Out<std::uint64_t> words, std::int32_t salt);

}  // namespace bench
