// SPDX-License-Identifier: Apache-2.0
// Column counts, line breaks and colours of text on a terminal.
#include "terminal_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace isthmus::tools {
namespace {

struct Range {
    char32_t first;
    char32_t last;
};
template <std::size_t count>
bool is_in(const std::array<Range, count>& ranges, char32_t point) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [point](const Range& range) { return range.first <= point && point <= range.last; });
}

// Combining marks, and characters without a glyph.
constexpr std::array<Range, 9> no_columns = {{{0x0300, 0x036f},
                                              {0x0483, 0x0489},
                                              {0x0591, 0x05bd},
                                              {0x1ab0, 0x1aff},
                                              {0x1dc0, 0x1dff},
                                              {0x200b, 0x200f},
                                              {0x20d0, 0x20ff},
                                              {0xfe00, 0xfe0f},
                                              {0xfe20, 0xfe2f}}};
// East Asian characters and pictographs.
constexpr std::array<Range, 11> two_columns = {{{0x1100, 0x115f},
                                                {0x2e80, 0x303e},
                                                {0x3041, 0x4dbf},
                                                {0x4e00, 0xa4cf},
                                                {0xac00, 0xd7a3},
                                                {0xf900, 0xfaff},
                                                {0xfe30, 0xfe6f},
                                                {0xff00, 0xff60},
                                                {0xffe0, 0xffe6},
                                                {0x1f300, 0x1faff},
                                                {0x20000, 0x3fffd}}};

// A piece of text that is never split, and its width in columns.
struct Piece {
    std::size_t bytes = 1;
    std::size_t columns = 1;
};

// The length of a sequence such as "\033[1;31m" at the front; 0: there is none.
std::size_t colour_sequence(std::string_view text) {
    if (text.size() < 3 || text[0] != '\033' || text[1] != '[') return 0;
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

Piece first_piece(std::string_view text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    if (const std::size_t bytes = colour_sequence(text)) return {bytes, 0};
    if (byte(0) < 0x80) return {1, byte(0) < 0x20 || byte(0) == 0x7f ? 0u : 1u};
    const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 1;
    if (length == 1 || length > text.size()) return {1, 1};
    char32_t point = byte(0) & (0xffu >> (length + 1));
    for (std::size_t at = 1; at < length; ++at) {
        if ((byte(at) & 0xc0) != 0x80) return {1, 1};
        point = (point << 6) | (byte(at) & 0x3fu);
    }
    if (is_in(no_columns, point)) return {length, 0};
    return {length, is_in(two_columns, point) ? 2u : 1u};
}

// The length of the longest part of the word that fits; at least one character.
std::size_t bytes_that_fit(std::string_view word, std::size_t width) {
    std::size_t bytes = 0;
    std::size_t columns = 0;
    while (bytes < word.size()) {
        const Piece piece = first_piece(word.substr(bytes));
        if (bytes > 0 && columns + piece.columns > width) break;
        bytes += piece.bytes;
        columns += piece.columns;
    }
    return bytes;
}

// Returns the next word and removes it from `text`; empty: there is none.
std::string_view next_word(std::string_view& text, std::string_view blanks) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    return word;
}

}  // namespace

std::string coloured(std::string_view text, Colour colour, bool has_colour) {
    if (!has_colour || colour == Colour::plain || text.empty()) return std::string(text);
    std::string_view begin;
    switch (colour) {
        case Colour::bold: begin = "\033[1m"; break;
        case Colour::red: begin = "\033[1;31m"; break;
        case Colour::yellow: begin = "\033[33m"; break;
        case Colour::green: begin = "\033[32m"; break;
        case Colour::dim: begin = "\033[2m"; break;
        case Colour::plain: break;
    }
    return std::string(begin).append(text).append("\033[0m");
}

std::size_t display_columns(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const Piece piece = first_piece(text);
        columns += piece.columns;
        text.remove_prefix(piece.bytes);
    }
    return columns;
}

std::vector<std::string> lines_of(std::string_view text, std::size_t width) {
    width = std::max<std::size_t>(width, 1);
    std::vector<std::string> lines(1);
    std::size_t column = 0;
    const auto begin_line = [&] {
        lines.emplace_back();
        column = 0;
    };
    for (std::string_view word = next_word(text, " \t\r\n"); !word.empty(); word = next_word(text, " \t\r\n")) {
        if (column > 0 && column + 1 + display_columns(word) > width) begin_line();
        if (column > 0) {
            lines.back() += ' ';
            ++column;
        }
        while (display_columns(word) > width) {
            const std::size_t bytes = bytes_that_fit(word, width);
            lines.back().append(word.substr(0, bytes));
            word.remove_prefix(bytes);
            if (!word.empty()) begin_line();
        }
        lines.back().append(word);
        column += display_columns(word);
    }
    return lines;
}

std::vector<std::string> lines_of_items(const std::vector<std::string>& items, std::string_view separator,
                                        std::size_t width) {
    const std::string_view line_end = separator.substr(0, separator.find_last_not_of(' ') + 1);
    std::vector<std::string> lines(1);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const bool is_last = i + 1 == items.size();
        const std::size_t end = is_last ? 0 : display_columns(line_end);
        // The separator begins with a blank, which is not needed at the start of a line.
        const std::size_t begin = lines.back().empty() ? 0 : 1;
        if (begin != 0 && display_columns(lines.back()) + begin + display_columns(items[i]) + end > width) {
            lines.emplace_back();
        }
        if (!lines.back().empty()) lines.back() += ' ';
        std::vector<std::string> parts = lines_of(items[i] + std::string(is_last ? "" : line_end), width);
        lines.back() += parts.front();
        lines.insert(lines.end(), parts.begin() + 1, parts.end());
    }
    return lines;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    std::string out;
    std::size_t column = indent;
    for (std::string_view word = next_word(text, " "); !word.empty(); word = next_word(text, " ")) {
        const std::size_t columns = display_columns(word);
        if (column > indent && column + 1 + columns > width) {
            out.append("\n").append(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out.append(word);
        column += columns;
    }
    return out;
}

bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang) {
    for (const char* const variable : {lc_all, lc_ctype, lang}) {
        if (variable == nullptr || *variable == '\0') continue;
        std::string text(variable);
        std::transform(text.begin(), text.end(), text.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
    }
    return false;
}

}  // namespace isthmus::tools
