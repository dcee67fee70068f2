// SPDX-License-Identifier: Apache-2.0
// Names of kernel parameters, read from the text of the parameter list, for messages.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <string_view>

namespace isthmus {
inline namespace v0 {

namespace detail {
constexpr bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The n-th part of a parameter list; commas inside <>, () and {} do not count. Empty if there is none.
constexpr std::string_view nth_parameter(std::string_view list, std::size_t n) noexcept {
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        const char c = i < list.size() ? list[i] : ',';
        if (c == '<' || c == '(' || c == '{') ++depth;
        if (c == '>' || c == ')' || c == '}') --depth;
        if (c != ',' || (depth > 0 && i < list.size())) continue;
        if (n == 0) return list.substr(start, i - start);
        --n;
        start = i + 1;
    }
    return {};
}

// The last word of "View<const float> in"; empty if the parameter has no name ("float", "View<float>").
constexpr std::string_view declared_name(std::string_view parameter) noexcept {
    while (!parameter.empty() && parameter.back() == ' ') parameter.remove_suffix(1);
    while (!parameter.empty() && parameter.front() == ' ') parameter.remove_prefix(1);
    std::size_t start = parameter.size();
    while (start > 0 && is_word(parameter[start - 1])) --start;
    const std::string_view word = parameter.substr(start);
    if (start == 0 || parameter[start - 1] == ':') return {};
    for (std::string_view type : {"int", "char", "short", "long", "unsigned", "signed", "float", "double", "bool"})
        if (word == type) return {};
    return word;
}
}  // namespace detail

// "out" for parameter 0 of "Index i, View<float> out": numbered as in KernelInfo::parameter, without the index space.
// Empty if it has no name. Points into kernel.parameters.
constexpr std::string_view parameter_name(const KernelInfo& kernel, std::uint32_t number) noexcept {
    return detail::declared_name(detail::nth_parameter(kernel.parameters, std::size_t{number} + 1));
}

}  // namespace v0
}  // namespace isthmus
