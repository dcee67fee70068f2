// SPDX-License-Identifier: Apache-2.0
#include "constants.hpp"

#include <bit>

namespace isthmus::ptx {

std::pair<std::string_view, int> binary_operator(const Token& first, const Token& second) noexcept {
    constexpr std::pair<std::string_view, int> rows[] = {
        {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"|", 3},
        {"^", 4},  {"&", 5},  {"<", 7},  {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
    if (first.kind != TokenKind::sign) return {};
    const bool adjoin = second.kind == TokenKind::sign && second.text.data() == first.text.data() + 1;
    const std::string_view two(first.text.data(), adjoin ? 2 : 1);
    for (const auto& row : rows) {
        if (row.first == two || row.first == first.text) return row;
    }
    return {};
}

CombinedConstant combined(std::string_view sign, const Constant& left, const Constant& right) {
    if (left.kind != right.kind || left.kind == OperandKind::single_float) {
        return {{}, "a constant expression of two types, or of 0f numbers"};
    }
    if (left.kind == OperandKind::double_float) {
        const double a = std::bit_cast<double>(left.bits), b = std::bit_cast<double>(right.bits);
        if (sign.size() != 1 || std::string_view("+-*/").find(sign[0]) == std::string_view::npos) {
            return {{}, "an operator of integers between floats"};
        }
        const double made = sign == "+" ? a + b : sign == "-" ? a - b : sign == "*" ? a * b : a / b;
        return {{OperandKind::double_float, std::bit_cast<std::uint64_t>(made), false}, {}};
    }
    const std::uint64_t a = left.bits, b = right.bits;
    const auto c = static_cast<std::int64_t>(a), d = static_cast<std::int64_t>(b);
    const bool is_unsigned = left.is_unsigned || right.is_unsigned;
    const auto number = [&](std::uint64_t bits) {
        return CombinedConstant{{OperandKind::integer, bits, is_unsigned}, {}};
    };
    const auto truth = [](bool is_true) {
        return CombinedConstant{{OperandKind::integer, std::uint64_t{is_true}, false}, {}};
    };
    const auto less = [&](std::int64_t x, std::int64_t y) {
        return is_unsigned ? static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y) : x < y;
    };
    if ((sign == "/" || sign == "%") && b == 0) {
        return {{}, "a division by 0 in a constant expression"};
    }
    if (sign == "*") return number(a * b);
    if (sign == "/") return number(is_unsigned ? a / b : d == -1 ? 0 - a : static_cast<std::uint64_t>(c / d));
    if (sign == "%") return number(a % b);  // without a sign (ptxas 13.0)
    if (sign == "+") return number(a + b);
    if (sign == "-") return number(a - b);
    if (sign == "<<" || sign == ">>") {
        const std::uint64_t fill = !left.is_unsigned && c < 0 && sign == ">>" ? ~std::uint64_t{0} : 0;
        if (b > 63) return {{OperandKind::integer, fill, left.is_unsigned}, {}};
        const std::uint64_t made = sign == "<<" ? a << b : (a >> b) | (b == 0 ? 0 : fill << (64 - b));
        return {{OperandKind::integer, made, left.is_unsigned}, {}};
    }
    if (sign == "<") return truth(less(c, d));
    if (sign == ">") return truth(less(d, c));
    if (sign == "<=") return truth(!less(d, c));
    if (sign == ">=") return truth(!less(c, d));
    if (sign == "==") return truth(a == b);
    if (sign == "!=") return truth(a != b);
    if (sign == "&&") return truth(a != 0 && b != 0);
    if (sign == "||") return truth(a != 0 || b != 0);
    return number(sign == "&" ? a & b : sign == "|" ? a | b : a ^ b);
}

}  // namespace isthmus::ptx
