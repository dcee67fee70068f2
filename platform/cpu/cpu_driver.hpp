// SPDX-License-Identifier: Apache-2.0
// The CPU device: always present, synchronous; runs the CPU twins of kernels.
#pragma once

#include <platform/driver.hpp>

#include <memory>

namespace isthmus::platform::cpu {

std::unique_ptr<Driver> open_device(const MachineFacts& machine);

}  // namespace isthmus::platform::cpu
