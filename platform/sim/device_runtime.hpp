// SPDX-License-Identifier: Apache-2.0
// The device runtime (libcudadevrt.a) that programs hand to the linker. Its machine code is not read: a text with the
// functions of cooperative grids stands in for it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace isthmus::sim {

// Whether an input of the linker is that library: an archive with its object file.
bool is_device_runtime(std::span<const std::byte> input);
// PTX with cudaCGGetIntrinsicHandle and cudaCGSynchronize.
std::string_view device_runtime_text() noexcept;

}  // namespace isthmus::sim
