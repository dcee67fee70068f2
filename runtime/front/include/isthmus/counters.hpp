// SPDX-License-Identifier: Apache-2.0
// Counter: one number of Runtime::counters(). docs/observing.md has them all, with what is not counted.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {

struct Counter {
    std::string_view name;  // "isthmus_uploaded_bytes_total"; the unit is in it. Static storage, as is help
    std::string_view help;  // one sentence
    std::uint64_t value = 0;
    bool falls = false;  // it may become less ("gauge"); otherwise it only grows while the runtime lives
    int device = -1;     // Device::index(); -1: of the whole runtime
};

// Prometheus' text exposition format, version 0.0.4: HELP and TYPE once for each name, then its values. Counters of one
// name stand together.
ISTHMUS_API std::string prometheus_text(const std::vector<Counter>& counters);

}  // namespace v0
}  // namespace isthmus
