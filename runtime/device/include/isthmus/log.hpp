// SPDX-License-Identifier: Apache-2.0
// Log callback. The library never prints: without a callback it is silent.
#pragma once

#include <isthmus/export.hpp>

#include <functional>
#include <string_view>

namespace isthmus {
inline namespace v0 {

enum class Severity : unsigned char { info, warning, error };

// May be called from any thread, and from several at once. Must not throw and must not call the runtime. `line` is
// valid only during the call.
using LogCallback = std::function<void(Severity, std::string_view line)>;

}  // namespace v0
}  // namespace isthmus
