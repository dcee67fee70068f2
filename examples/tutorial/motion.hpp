// SPDX-License-Identifier: Apache-2.0
// Step 3: declares the kernel for the files that launch it.
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

ISTHMUS_DECLARE_KERNEL(mark_motion, isthmus::Index i, isthmus::Out<std::uint8_t> moved,
                       isthmus::View<const std::uint8_t> now, isthmus::View<const std::uint8_t> before, int threshold);
