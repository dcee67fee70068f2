// SPDX-License-Identifier: Apache-2.0
// Text-splitting helpers for the parsers of this folder.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace isthmus::platform::os {

inline constexpr std::string_view blanks = " \t\r\n";

inline std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Removes the text up to the next separator, and the separator, from `rest`; returns the text.
inline std::string_view next(std::string_view& rest, char separator) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
}

template <class Number>
std::optional<Number> number(std::string_view text, int base = 10) {
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace isthmus::platform::os
