// SPDX-License-Identifier: Apache-2.0
// left_out(): what the calls of a room answer in a build without that room (-Dcomponents=).
#pragma once

#include <isthmus/result.hpp>

#include "base_errors.hpp"

#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

// `needs`: what -Dcomponents= has to name for these calls to work, the component itself included.
inline Error left_out(std::string_view component, std::string_view needs) {
    return make_error<errors::component_left_out>(component, needs);
}
inline Error left_out(std::string_view component) {
    return left_out(component, component);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
