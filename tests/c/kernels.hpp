// SPDX-License-Identifier: Apache-2.0
// Declares the kernels for the file that registers them.
#pragma once

#include "kernels.h"

#include <isthmus/kernel.hpp>

#include <cstdint>

ISTHMUS_DECLARE_KERNEL(scale, isthmus::Index i, isthmus::Out<float> out, isthmus::View<const float> in, weights by);
ISTHMUS_DECLARE_KERNEL(add_position, isthmus::Index2 i, isthmus::View<std::uint32_t> cells, std::uint32_t width);
