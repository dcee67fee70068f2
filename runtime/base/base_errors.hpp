// SPDX-License-Identifier: Apache-2.0
// The errors that calls of every room may return, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto component_left_out =
    error_entry("X001", Code::unsupported,
                "this libisthmus was built without its component '{component}'",
                "build it with the Meson option -Dcomponents={components} (the default has every component)");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
