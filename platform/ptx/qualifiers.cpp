// SPDX-License-Identifier: Apache-2.0
// What qualifiers of an instruction are there, and which are left.
#include "qualifiers.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::ptx {

Qualifiers::Qualifiers(const Instruction& instruction) {
    for (const std::string_view word : instruction.qualifiers) {
        if (const auto type = type_named(word)) {
            types.push_back(*type);
        } else {
            left.push_back(word);
        }
    }
}
bool Qualifiers::take(std::string_view dotted) {
    const auto found = std::find(left.begin(), left.end(), dotted);
    if (found == left.end()) return false;
    left.erase(found);
    return true;
}
std::string_view Qualifiers::take_one_of(std::span<const std::string_view> dotted) {
    for (const std::string_view word : dotted) {
        if (take(word)) return word.substr(1);
    }
    return {};
}
void Qualifiers::ignore(std::span<const std::string_view> dotted) {
    for (const std::string_view word : dotted) take(word);
}
void Qualifiers::ignore_prefixed(std::string_view prefix) {
    std::erase_if(left, [&](std::string_view word) { return word.starts_with(prefix); });
}

std::optional<Space> take_space(Qualifiers& words) {
    constexpr std::pair<std::string_view, Space> rows[] = {
        {".global", Space::global},      {".shared", Space::shared},     {".shared::cta", Space::shared},
        {".local", Space::local},        {".const", Space::constant},    {".param", Space::param},
        {".param::entry", Space::param}, {".param::func", Space::param}, {".shared::cluster", Space::shared}};
    for (const auto& [name, space] : rows) {
        if (words.take(name)) return space;
    }
    return std::nullopt;
}

}  // namespace isthmus::ptx
