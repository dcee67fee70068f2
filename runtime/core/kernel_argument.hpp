// A kernel's argument in words and by use, for the launches and operations that judge it.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/parameter_name.hpp>

#include "composed.hpp"
#include "sharing_rules.hpp"

#include <cstdint>
#include <string>

namespace isthmus::inline v0::detail {

using rules::reads;
using rules::writes;

// "kernel 'scale', argument 'out',": how a message about it begins.
inline std::string argument_text(const KernelInfo& kernel, std::uint32_t argument) {
    return composed("kernel '{}', argument '{}',", kernel.name, parameter_name(kernel, argument));
}

}  // namespace isthmus::inline v0::detail
