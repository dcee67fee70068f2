// SPDX-License-Identifier: Apache-2.0
// The text and the use of a kernel's argument, for the launches and operations that check it.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/parameter_name.hpp>

#include "composed.hpp"
#include "sharing_rules.hpp"

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

using rules::reads;
using rules::writes;

// Work of other code is described as a kernel without an entry in an image.
inline bool is_native(const KernelInfo& kernel) noexcept {
    return kernel.symbol == nullptr;
}
// "kernel 'scale', argument 'out',", or "work 'blur', argument 0,": the beginning of a message about it.
inline Words argument_text(const KernelInfo& kernel, std::uint32_t argument) {
    if (is_native(kernel)) return worded("work '{}', argument {},", kernel.name, argument);
    return worded("kernel '{}', argument '{}',", kernel.name, parameter_name(kernel, argument));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
