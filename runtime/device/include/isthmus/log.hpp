// What the library would like to say. It never prints: without a callback it is silent.
#pragma once

#include <isthmus/export.hpp>

#include <functional>
#include <string_view>

namespace isthmus::inline v0 {

enum class Severity : unsigned char { info, warning, error };

// Called from whichever thread has something to say, possibly from several at once; must not throw and must not
// call the runtime.
using LogCallback = std::function<void(Severity, std::string_view line)>;

}  // namespace isthmus::inline v0
