// SPDX-License-Identifier: Apache-2.0
// left_out(): the error that a room's calls return in a build without that room (-Dcomponents=).
#pragma once

#include <isthmus/result.hpp>

#include "base_errors.hpp"

#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

// `needs`: the components that -Dcomponents= has to name for these calls to work, including `component`.
inline Error left_out(std::string_view component, std::string_view needs) {
    return make_error<errors::component_left_out>(component, needs);
}
inline Error left_out(std::string_view component) {
    return left_out(component, component);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
