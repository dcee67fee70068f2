// SPDX-License-Identifier: Apache-2.0
// Names, errors and UUIDs print with << and, where the standard library has it, with std::format.
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/uuid.hpp>

#include <concepts>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <version>
#if defined(__cpp_lib_format)
#include <format>
#endif

namespace isthmus {
inline namespace v0 {

namespace detail {
// The enumerations of this library that have a name(): Code, MemoryKind, Verdict, Feature, ….
template <class T>
concept Named = std::is_enum_v<T> && requires(T value) {
    { name(value) } -> std::same_as<std::string_view>;
};
// Types whose text() is the whole content in one line.
template <class T>
concept Text = std::same_as<T, Error> || std::same_as<T, Uuid>;
}  // namespace detail

template <detail::Named T>
std::ostream& operator<<(std::ostream& out, T value) {
    return out << name(value);
}
template <detail::Text T>
std::ostream& operator<<(std::ostream& out, const T& value) {
    return out << value.text();
}

}  // namespace v0
}  // namespace isthmus

#if defined(__cpp_lib_format)
template <isthmus::detail::Named T>
struct std::formatter<T> : std::formatter<std::string_view> {
    template <class Context>
    auto format(T value, Context& context) const {
        return std::formatter<std::string_view>::format(name(value), context);
    }
};
template <isthmus::detail::Text T>
struct std::formatter<T> : std::formatter<std::string_view> {
    template <class Context>
    auto format(const T& value, Context& context) const {
        return std::formatter<std::string_view>::format(value.text(), context);
    }
};
#endif
