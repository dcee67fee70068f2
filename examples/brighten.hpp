// SPDX-License-Identifier: Apache-2.0
// Declares the kernel for the files that launch it.
#pragma once

#include <isthmus/kernel.hpp>

ISTHMUS_DECLARE_KERNEL(brighten, isthmus::Index i, isthmus::View<std::uint8_t> pixels, int by);
