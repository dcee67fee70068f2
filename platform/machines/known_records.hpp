// SPDX-License-Identifier: Apache-2.0
// The built-in records; their list is generated.
#pragma once

#include <string_view>

namespace isthmus::platform::machines {

struct KnownRecord {
    std::string_view name;
    std::string_view text;
};
struct KnownRecords {
    const KnownRecord* first;
    const KnownRecord* last;
    const KnownRecord* begin() const noexcept { return first; }
    const KnownRecord* end() const noexcept { return last; }
};
KnownRecords known_records() noexcept;  // ascending by name

}  // namespace isthmus::platform::machines
