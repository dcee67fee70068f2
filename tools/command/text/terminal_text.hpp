// SPDX-License-Identifier: Apache-2.0
// Text for terminals: widths in columns, line breaks, colours. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

enum class Colour : std::uint8_t { plain, bold, red, yellow, green, dim };
std::string coloured(std::string_view text, Colour colour, bool has_colour);

// The columns that the text takes on a terminal: wide characters take two, combining marks and SGR sequences
// ("\033[1m") none, and a byte that is not UTF-8 one.
std::size_t display_columns(std::string_view text);

// Splits text into lines of at most `width` columns (at least 1), broken at blanks, tabs and line ends. A word longer
// than a line is broken between characters. Empty text gives one empty line.
std::vector<std::string> lines_of(std::string_view text, std::size_t width);

// Joins items with a separator, in such lines. An item is split only where it is longer than a line.
std::vector<std::string> lines_of_items(const std::vector<std::string>& items, std::string_view separator,
                                        std::size_t width);

// Breaks text at blanks into lines of at most `width` columns; later lines begin with `indent` blanks. The first line
// is assumed to begin in column `indent`. Words are never broken, so that paths and commands can be copied.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Whether the environment asks for UTF-8. Takes the variables that decide the character encoding (LC_ALL, LC_CTYPE,
// LANG, in this order; null where unset).
bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang);

}  // namespace isthmus::tools
