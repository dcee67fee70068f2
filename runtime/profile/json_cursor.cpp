// SPDX-License-Identifier: Apache-2.0
#include "json_cursor.hpp"

#include <limits>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
// In a string: none that ends or escapes, no control character.
bool is_plain(char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
}
int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}
void add_utf8(std::string& text, unsigned code) {
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | code >> 6);
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        text += static_cast<char>(0xe0 | code >> 12);
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    }
}

}  // namespace

void JsonCursor::refuse(std::string_view fault) {
    if (good()) fault_ = fault;
}
void JsonCursor::blanks() noexcept {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}
bool JsonCursor::peek(char wanted) noexcept {
    if (!good()) return false;
    blanks();
    return at_ < text_.size() && text_[at_] == wanted;
}
bool JsonCursor::take(char wanted, std::string_view fault) {
    if (!peek(wanted)) {
        refuse(at_ < text_.size() ? fault : "it ends too early");
        return false;
    }
    ++at_;
    return true;
}
bool JsonCursor::enter(char opening, std::string_view fault) {
    if (!take(opening, fault)) return false;
    if (++depth_ > most_depth) refuse("objects and arrays are nested too deeply");
    return good();
}
bool JsonCursor::more(char closing, bool first) {
    if (peek(closing)) {
        ++at_;
        return false;
    }
    return good() && (first || take(',', "a ',' or a closing bracket was expected"));
}

std::string JsonCursor::string() {
    std::string text;
    string(&text);
    return text;
}
void JsonCursor::string(std::string* text) {
    if (!take('"', "a string was expected")) return;
    while (good()) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
        if (text != nullptr) text->append(text_.substr(begin, at_ - begin));
        if (at_ == text_.size() || text_[at_] == '"') break;
        if (text_[at_] != '\\') {
            refuse("a string has a control character");
        } else {
            escape(text);
        }
    }
    if (good()) (void)take('"', "it ends inside a string");
}

// At a backslash. A pair of \u escapes for a character beyond U+FFFF is refused: no value that is read here has one.
void JsonCursor::escape(std::string* text) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const std::size_t known = letters.find(letter); known != std::string_view::npos) {
        if (text != nullptr) *text += values[known];
        at_ += 2;
        return;
    }
    unsigned code = 0;
    bool whole = letter == 'u' && at_ + 6 <= text_.size();
    for (std::size_t i = 2; whole && i < 6; ++i) {
        const int digit = hex_digit(text_[at_ + i]);
        whole = digit >= 0;
        code = code << 4 | static_cast<unsigned>(digit);
    }
    if (!whole || (code >= 0xd800 && code < 0xe000)) return refuse("a string has an unknown escape");
    if (text != nullptr) add_utf8(*text, code);
    at_ += 6;
}

bool JsonCursor::word(std::string_view wanted) {
    if (!good()) return false;
    blanks();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
}
bool JsonCursor::boolean() {
    if (word("true")) return true;
    if (!word("false")) refuse("true or false was expected");
    return false;
}

std::uint64_t JsonCursor::whole_number() {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!good()) return 0;
    blanks();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
        const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
        if (value > (most - digit) / 10) {
            refuse("a number is too large");
            return 0;
        }
        value = value * 10 + digit;
    }
    const bool padded = at_ - begin > 1 && text_[begin] == '0';
    const bool goes_on = at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos;
    if (at_ == begin || padded || goes_on) {
        refuse("a whole number was expected");
        return 0;
    }
    return value;
}

void JsonCursor::digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin) refuse("a number has no digits");
}
void JsonCursor::skip_number() {
    const auto next_is = [this](char one, char other) {
        return at_ < text_.size() && (text_[at_] == one || text_[at_] == other);
    };
    if (next_is('-', '-')) ++at_;
    if (next_is('0', '0')) {
        ++at_;
    } else {
        digits();
    }
    if (next_is('.', '.')) {
        ++at_;
        digits();
    }
    if (good() && next_is('e', 'E')) {
        ++at_;
        if (next_is('+', '-')) ++at_;
        digits();
    }
}

// Most of a profile is skipped: measurements, which a runtime does not need.
void JsonCursor::skip() {
    if (!good()) return;
    blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '-' || is_digit(c)) return skip_number();
    if (c == '"') return string(nullptr);
    if (c == '[') return array([this] { skip(); });
    if (c == '{') {
        if (!enter('{', {})) return;
        for (bool first = true; more('}', first); first = false) {
            string(nullptr);
            if (!take(':', "a ':' was expected")) return;
            skip();
        }
        --depth_;
        return;
    }
    if (word("true") || word("false") || word("null")) return;
    refuse(at_ < text_.size() ? "a value was expected" : "it ends too early");
}

void JsonCursor::end() {
    if (!good()) return;
    blanks();
    if (at_ < text_.size()) refuse("something follows its end");
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
