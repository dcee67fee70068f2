// SPDX-License-Identifier: Apache-2.0
// Fatbins whose PTX is compressed, as nvcc writes them unless --compress-mode=none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace isthmus::sim {

// The same fatbin with its PTX as plain text; empty: `image` is no fatbin, or none of its PTX was unpacked. Says why
// compressed PTX was left as it is. Machine code stays compressed.
std::vector<std::byte> unpacked_image(std::span<const std::byte> image);

}  // namespace isthmus::sim
