// SPDX-License-Identifier: Apache-2.0
// Declares the kernels for the file that registers them.
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

ISTHMUS_DECLARE_KERNEL(brighten, isthmus::Index i, isthmus::View<std::uint8_t> pixels, int by);
ISTHMUS_DECLARE_KERNEL(scale, isthmus::Index2 at, isthmus::Out<float> out, isthmus::View<const float> in, float by,
                       std::uint64_t width);
ISTHMUS_DECLARE_KERNEL(churn, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint64_t rounds);
ISTHMUS_DECLARE_KERNEL(wait_for_gate, isthmus::Index i, std::uint64_t gate, isthmus::View<std::uint32_t> words,
                       std::uint64_t rounds);
