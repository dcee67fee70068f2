// The names of a kernel's parameters, found in its text when a message needs them.
#pragma once

#include <cstdint>
#include <string_view>

namespace isthmus::inline v0::detail {

// "out" for parameter 1 of "Index i, View<float> out". Counts from 0, the index space included; "?" outside.
constexpr std::string_view parameter_name(std::string_view text, std::uint32_t index) {
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
        const char c = at < text.size() ? text[at] : ',';
        if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
        if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
        if (c != ',' || (depth != 0 && at < text.size())) continue;
        if (index-- == 0) {
            std::string_view parameter = text.substr(begin, at - begin);
            while (!parameter.empty() && parameter.back() == ' ') parameter.remove_suffix(1);
            const std::size_t blank = parameter.find_last_of(" >&*");
            return blank == std::string_view::npos ? parameter : parameter.substr(blank + 1);
        }
        begin = at + 1;
    }
    return "?";
}

}  // namespace isthmus::inline v0::detail
