// SPDX-License-Identifier: Apache-2.0
// Arguments of a launch whose types are known at run time alone: checked against the kernel's parameters, and packed.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <cstddef>

namespace isthmus::c {

// Fills `pack` and `described` (one for each parameter). Errors: invalid_argument; the message names the kernel, the
// argument from 1 on and by its name, and what the parameter takes.
Result<void> pack_arguments(const Call& call, const KernelInfo& kernel, const isthmus_argument* arguments,
                            std::size_t count, std::byte* pack, detail::LaunchArgument* described);

}  // namespace isthmus::c
