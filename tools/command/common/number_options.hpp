// SPDX-License-Identifier: Apache-2.0
// Options that take a number. All number options of the command are added here, so that they are parsed alike: the
// whole text must be one finite number within the option's range; otherwise the command ends with a line that states
// the range.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace isthmus::tools {

template <class T>
struct NumberRange {
    T least = std::numeric_limits<T>::lowest();  // both bounds are included
    T most = std::numeric_limits<T>::max();
};

// Returns nothing where the text is not a number of that type within the range. Blanks, a plus sign, hexadecimal digits
// and infinity are refused; a floating-point number is decimal, with or without an exponent.
template <class T>
std::optional<T> number_in(std::string_view text, NumberRange<T> range) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stopped != end) return std::nullopt;
    if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) return std::nullopt;
    }
    if (value < range.least || value > range.most) return std::nullopt;
    return value;
}

// "1 to 64"
template <class T>
std::string range_text(NumberRange<T> range) {
    std::ostringstream text;
    text.precision(15);
    text << range.least << " to " << range.most;
    return text.str();
}

// "a whole number from 1 to 64"
template <class T>
std::string wanted_number(NumberRange<T> range) {
    return (std::is_floating_point_v<T> ? "a number from " : "a whole number from ") + range_text(range);
}

// `names` have the form of CLI::App::add_option(); one of them must be long. `target` is written when the option is
// given; its present value is the default.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& target, NumberRange<T> range,
                        const std::string& description) {
    const std::string name = names.substr(names.find("--"));
    const auto read = [&target, range, name](const CLI::results_t& given) {
        const std::optional<T> number = given.size() == 1 ? number_in(given.front(), range) : std::nullopt;
        if (!number) {
            const std::string text = given.empty() ? "" : given.front();
            throw CLI::ValidationError(name, "'" + text + "' is not " + wanted_number(range));
        }
        target = *number;
        return true;
    };
    // The help omits bounds that no user reaches.
    const bool bounded = static_cast<double>(range.most) < 1e9;
    const std::string help = bounded ? description + " (" + range_text(range) + ")" : description;
    CLI::Option* const option = app.add_option(names, read, help);
    option->type_name("N")->type_size(1)->expected(1);
    option->default_function([&target] {
        std::ostringstream text;
        text << target;
        return text.str();
    });
    return option;
}

}  // namespace isthmus::tools
