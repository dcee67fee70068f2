// SPDX-License-Identifier: Apache-2.0
// The CPU device: always present, synchronous; runs the CPU twins of kernels.
#pragma once

#include <platform/driver.hpp>

#include <cstdint>
#include <memory>

namespace isthmus::platform::cpu {

// `threads` run a kernel, the launching one included; 0 and 1: it alone.
std::unique_ptr<Driver> open_device(const MachineFacts& machine, std::uint32_t threads = 0);

}  // namespace isthmus::platform::cpu
