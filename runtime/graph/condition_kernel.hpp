// SPDX-License-Identifier: Apache-2.0
// The kernel that sets the condition of a graph's loop or branch from a word of memory.
#pragma once

#include <isthmus/kernel_info.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Its pack is a platform::SetCondition. GPU code only: CPU devices read the word, and the CPU function is empty.
extern const KernelInfo set_condition;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
