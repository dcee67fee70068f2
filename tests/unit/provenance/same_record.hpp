// SPDX-License-Identifier: Apache-2.0
// Whether two answers of the address map are the same record, field by field.
#pragma once

#include <address_map.hpp>

namespace isthmus::provenance {

inline bool same(const Record& a, const Record& b) {
    return a.base == b.base && a.bytes == b.bytes && a.id == b.id && a.device == b.device && a.kind == b.kind &&
           a.flags == b.flags;
}

}  // namespace isthmus::provenance
