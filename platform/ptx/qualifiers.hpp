// SPDX-License-Identifier: Apache-2.0
// The words behind an instruction's name.
#pragma once

#include "syntax.hpp"
#include "types.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus::ptx {

// The qualifiers of an instruction. What is left at the end was not understood.
class Qualifiers {
public:
    explicit Qualifiers(const Instruction& instruction);
    bool take(std::string_view dotted);
    // The one that is there, without its dot; empty: none is.
    std::string_view take_one_of(std::span<const std::string_view> dotted);
    void ignore(std::span<const std::string_view> dotted);
    void ignore_prefixed(std::string_view prefix);
    Type type(std::size_t at = 0) const { return at < types.size() ? types[at] : Type::none; }
    std::vector<Type> types;
    std::vector<std::string_view> left;
};

// nullopt: the instruction names none.
std::optional<Space> take_space(Qualifiers& words);

inline constexpr std::string_view memory_orders[] = {".acquire", ".release", ".relaxed"};

}  // namespace isthmus::ptx
