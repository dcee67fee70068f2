// SPDX-License-Identifier: Apache-2.0
// Text for terminals: how many columns it takes, where lines break, colours. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

enum class Colour : std::uint8_t { plain, bold, red, yellow, green, dim };
std::string coloured(std::string_view text, Colour colour, bool has_colour);

// Columns that a terminal shows the text in: wide characters take two, combining marks and SGR sequences ("\033[1m")
// none, a byte that is not UTF-8 one.
std::size_t display_columns(std::string_view text);

// Lines of at most `width` columns (at least 1), broken at blanks, tabs and line ends. A word longer than a line is
// broken between characters. No text: one empty line.
std::vector<std::string> lines_of(std::string_view text, std::size_t width);

// Items with a separator between them, in such lines; items are kept whole where a line has room for them.
std::vector<std::string> lines_of_items(const std::vector<std::string>& items, std::string_view separator,
                                        std::size_t width);

// Breaks text at blanks into lines of at most `width` columns; later lines begin with `indent` blanks. The first line
// is taken to begin in column `indent`. Words are never broken, so that paths and commands can be copied.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Whether the variables of the environment that decide the character encoding (LC_ALL, LC_CTYPE, LANG, in this order;
// null where unset) ask for UTF-8.
bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang);

}  // namespace isthmus::tools
