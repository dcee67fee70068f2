// SPDX-License-Identifier: Apache-2.0
// The words of PTX text. Views into the text, which must stay.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::ptx {

enum class TokenKind : std::uint8_t { end, name, dotted, integer, single_float, double_float, string, sign };

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;    // of a string: without its quotes
    std::uint64_t value = 0;  // of numbers: the integer, or the bits of the float
    std::uint32_t line = 0;
    bool is(std::string_view wanted) const noexcept { return kind != TokenKind::string && text == wanted; }
};

struct TokenList {
    std::vector<Token> tokens;  // the last one is `end`
    std::string error;          // empty: all of the text was read
    std::uint32_t error_line = 0;
};
TokenList read_tokens(std::string_view text);

}  // namespace isthmus::ptx
