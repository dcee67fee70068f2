// SPDX-License-Identifier: Apache-2.0
// Messages: a format and its fields.
#include "composed.hpp"

#include <cstring>

namespace isthmus {
inline namespace v0 {

// Markers, identified by their addresses.
const char TextField::signed_number[] = "signed";
const char TextField::unsigned_number[] = "unsigned";

void TextField::append_to(std::string& line) const {
    if (text_ == signed_number) {
        line += std::to_string(static_cast<std::int64_t>(value_));
    } else if (text_ == unsigned_number) {
        line += std::to_string(value_);
    } else {
        line.append(text_, value_ == terminated ? std::strlen(text_) : static_cast<std::size_t>(value_));
    }
}

namespace detail {

std::string compose(const char* format, std::initializer_list<TextField> fields) {
    std::string line;
    for (const TextField& field : fields) {
        const char* const place = std::strstr(format, "{}");
        if (place == nullptr) break;
        line.append(format, place);
        field.append_to(line);
        format = place + 2;
    }
    return line.append(format);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
