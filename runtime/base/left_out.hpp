// left_out(): what the calls of a room answer in a build without that room (-Dcomponents=).
#pragma once

#include <isthmus/result.hpp>

#include "composed.hpp"

#include <string_view>

namespace isthmus::inline v0::detail {

// `needs`: what -Dcomponents= has to name for these calls to work, the component itself included.
inline Error left_out(std::string_view component, std::string_view needs) {
    return {Code::unsupported, composed("this libisthmus was built without its component '{}'", component),
            composed("build it with the Meson option -Dcomponents={} (the default has every component)", needs)};
}
inline Error left_out(std::string_view component) {
    return left_out(component, component);
}

}  // namespace isthmus::inline v0::detail
