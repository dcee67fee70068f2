// SPDX-License-Identifier: Apache-2.0
// Messages: a format and its fields.
#include "composed.hpp"

#include <charconv>
#include <cstring>

namespace isthmus {
inline namespace v0 {

// Markers, identified by their addresses.
const char TextField::signed_number[] = "signed";
const char TextField::unsigned_number[] = "unsigned";

std::string_view TextField::text(Digits& digits) const noexcept {
    if (text_ != signed_number && text_ != unsigned_number) {
        return {text_, value_ == terminated ? std::strlen(text_) : static_cast<std::size_t>(value_)};
    }
    char* const end = digits.data() + digits.size();
    const std::to_chars_result made = text_ == signed_number
                                          ? std::to_chars(digits.data(), end, static_cast<std::int64_t>(value_))
                                          : std::to_chars(digits.data(), end, value_);
    return {digits.data(), static_cast<std::size_t>(made.ptr - digits.data())};
}

namespace detail {
namespace {

template <class Line>
Line filled_in(const char* format, std::initializer_list<TextField> fields) {
    Line line;
    for (const TextField& field : fields) {
        const char* const place = std::strstr(format, "{}");
        if (place == nullptr) break;
        TextField::Digits digits;
        line.append(std::string_view(format, static_cast<std::size_t>(place - format))).append(field.text(digits));
        format = place + 2;
    }
    line.append(std::string_view(format));
    return line;
}

}  // namespace

std::string compose(const char* format, std::initializer_list<TextField> fields) {
    return filled_in<std::string>(format, fields);
}
Words compose_words(const char* format, std::initializer_list<TextField> fields) {
    return filled_in<Words>(format, fields);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
