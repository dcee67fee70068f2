// SPDX-License-Identifier: Apache-2.0
// Constant expressions (PTX ISA): 64-bit integers with and without a sign, and floats.
#pragma once

#include "syntax.hpp"
#include "tokens.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace isthmus::ptx {

struct Constant {
    OperandKind kind = OperandKind::integer;  // or single_float, double_float
    std::uint64_t bits = 0;
    bool is_unsigned = false;  // of an integer
};

// The operator that begins with these tokens, and how strongly it binds; 0: none does.
std::pair<std::string_view, int> binary_operator(const Token& first, const Token& second) noexcept;

struct CombinedConstant {
    Constant value;
    std::string_view error;  // empty: there is a value
};
CombinedConstant combined(std::string_view sign, const Constant& left, const Constant& right);

}  // namespace isthmus::ptx
