// SPDX-License-Identifier: Apache-2.0
// Which pointers are registered kernels.
#pragma once

#include <isthmus/kernel_info.hpp>

namespace isthmus::c {

// nullptr: it is none.
const KernelInfo* registered(const void* kernel);

}  // namespace isthmus::c
