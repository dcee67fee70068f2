// SPDX-License-Identifier: Apache-2.0
// The text and the use of a kernel's argument, for the launches and operations that check it.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/parameter_name.hpp>

#include "composed.hpp"
#include "sharing_rules.hpp"

#include <cstdint>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {

using rules::reads;
using rules::writes;

// "kernel 'scale', argument 'out',": the beginning of a message about it.
inline std::string argument_text(const KernelInfo& kernel, std::uint32_t argument) {
    return composed("kernel '{}', argument '{}',", kernel.name, parameter_name(kernel, argument));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
