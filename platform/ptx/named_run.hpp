// SPDX-License-Identifier: Apache-2.0
// Rows of operations by their names.
#pragma once

#include "code.hpp"

#include <span>
#include <string_view>

namespace isthmus::ptx {

struct NamedRun {
    std::string_view name;
    Run run;
};
// nullptr: there is none of this name.
inline Run named(std::span<const NamedRun> rows, std::string_view name) {
    for (const NamedRun& row : rows) {
        if (row.name == name) return row.run;
    }
    return nullptr;
}
inline Run first_of(Run one, Run two, Run three = nullptr) {
    return one != nullptr ? one : two != nullptr ? two : three;
}

}  // namespace isthmus::ptx
