// SPDX-License-Identifier: Apache-2.0
// Escapes text in one pass over its UTF-8.
#include "printable.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace isthmus::tools {
namespace {

struct Character {
    std::uint32_t code = 0;
    std::size_t bytes = 0;  // 0: invalid UTF-8
};

Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
    std::uint32_t code = lead & (0xffu >> (bytes + 1));
    for (std::size_t at = 1; at < bytes; ++at) {
        if ((byte(at) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(at) & 0x3fu);
    }
    // Smallest code for each length: longer encodings are invalid UTF-8.
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
    return {code, bytes};
}

bool is_control(std::uint32_t code) {
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
}

// Line separators, and marks that change the order in which a terminal shows text.
bool reorders(std::uint32_t code) {
    return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

// Allowed parameters of a colour sequence: weight, slant, underline, and text colours other than black. None of them
// hides text.
bool is_colour(unsigned parameter) {
    return parameter <= 4 || (parameter >= 22 && parameter <= 24) || (parameter >= 31 && parameter <= 39) ||
           (parameter >= 91 && parameter <= 97);
}

// The length of a colour sequence at the front, ESC [ numbers and semicolons m; 0: there is none.
std::size_t colour_length(std::string_view text) {
    if (text.substr(0, 2) != "\033[") return 0;
    unsigned parameter = 0;
    for (std::size_t at = 2; at < text.size(); ++at) {
        if (text[at] >= '0' && text[at] <= '9' && parameter < 1000) {
            parameter = 10 * parameter + static_cast<unsigned>(text[at] - '0');
            continue;
        }
        if ((text[at] != ';' && text[at] != 'm') || !is_colour(parameter)) return 0;
        if (text[at] == 'm') return at + 1;
        parameter = 0;
    }
    return 0;
}

std::string escaped(const char* form, unsigned value) {
    char digits[16];
    std::snprintf(digits, sizeof digits, form, value);
    return digits;
}

}  // namespace

std::string printable(std::string_view text, Colours colours) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        std::size_t taken = colours == Colours::kept ? colour_length(text) : 0;
        const Character character = first_of(text);
        if (taken != 0) {
            out.append(text.substr(0, taken));
        } else if (character.bytes == 0) {
            taken = 1;
            out += escaped("\\x%02x", static_cast<unsigned char>(text[0]));
        } else {
            taken = character.bytes;
            if (is_control(character.code) || reorders(character.code)) {
                out += escaped("\\u%04x", character.code);
            } else {
                out.append(text.substr(0, taken));
            }
        }
        text.remove_prefix(taken);
    }
    return out;
}

}  // namespace isthmus::tools
