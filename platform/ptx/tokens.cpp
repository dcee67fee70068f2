// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into words.
#include "tokens.hpp"

#include "types.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

namespace isthmus::ptx {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool in_name(char c) {
    return is_letter(c) || is_digit(c);
}

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    TokenList read() {
        while (skip_blanks() && out_.error.empty()) one();
        add(TokenKind::end, at_, at_);
        return std::move(out_);
    }

private:
    char here(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    void fail(std::string why) {
        if (out_.error.empty()) {
            out_.error = std::move(why);
            out_.error_line = line_;
        }
    }
    void add(TokenKind kind, std::size_t from, std::size_t to, std::uint64_t value = 0) {
        out_.tokens.push_back({kind, text_.substr(from, to - from), value, line_});
    }
    // false: the text is at its end.
    bool skip_blanks() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') ++line_;
            if (c == ' ' || (c >= '\t' && c <= '\r')) {
                ++at_;
            } else if (c == '/' && here(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (c == '/' && here(1) == '*') {
                at_ += 2;
                while (at_ < text_.size() && !(text_[at_] == '*' && here(1) == '/')) {
                    if (text_[at_] == '\n') ++line_;
                    ++at_;
                }
                at_ = at_ + 2 < text_.size() ? at_ + 2 : text_.size();
            } else {
                return true;
            }
        }
        return false;
    }
    void one() {
        const std::size_t from = at_;
        const char c = text_[at_];
        if (is_letter(c) || (c == '%' && is_letter(here(1)))) {
            ++at_;
            while (in_name(here())) ++at_;
            add(TokenKind::name, from, at_);
        } else if (c == '.' && (in_name(here(1)))) {
            ++at_;
            // A qualifier may hold "::", such as .L2::128B.
            while (in_name(here()) || (here() == ':' && here(1) == ':' && in_name(here(2))))
                at_ += here() == ':' ? 2 : 1;
            add(TokenKind::dotted, from, at_);
        } else if (is_digit(c)) {
            number();
        } else if (c == '"') {
            while (++at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
            }
            if (here() != '"') return fail("a string has no end");
            ++at_;
            out_.tokens.push_back({TokenKind::string, text_.substr(from + 1, at_ - from - 2), 0, line_});
        } else if (std::string_view(",;:{}()[]<>+-@!|=*/%&^~?").find(c) != std::string_view::npos) {
            ++at_;
            add(TokenKind::sign, from, at_);
        } else {
            fail("a character that is not part of PTX");
        }
    }
    void number() {
        const std::size_t from = at_;
        std::size_t end = at_;
        while (end < text_.size() && in_name(text_[end])) ++end;
        const std::string_view word = text_.substr(from, end - from);
        const char second = word.size() > 1 && word[0] == '0' ? word[1] : '\0';
        if (second == 'f' || second == 'F' || second == 'd' || second == 'D') {
            const bool is_single = second == 'f' || second == 'F';
            if (word.size() != (is_single ? 10u : 18u)) return fail("a float must have 8 or 16 hexadecimal digits");
            return whole(is_single ? TokenKind::single_float : TokenKind::double_float, word, 2, 16);
        }
        const char behind = end + 1 < text_.size() ? text_[end + 1] : '\0';
        if (end < text_.size() && text_[end] == '.' && !is_letter(behind) && behind != '.') return decimal(from);
        if (second != 'x' && second != 'X' && word.find_first_of("eE") != std::string_view::npos) return decimal(from);
        if (second == 'x' || second == 'X') return whole(TokenKind::integer, word, 2, 16);
        if (second == 'b' || second == 'B') return whole(TokenKind::integer, word, 2, 2);
        return whole(TokenKind::integer, word, 0, word.size() > 1 && word[0] == '0' ? 8 : 10);
    }
    void whole(TokenKind kind, std::string_view word, std::size_t skip, int base) {
        std::string_view digits = word.substr(skip);
        if (kind == TokenKind::integer && digits.ends_with('U')) digits.remove_suffix(1);
        std::uint64_t value = 0;
        const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
        if (code != std::errc() || stop != digits.data() + digits.size()) return fail("a number is not well formed");
        const std::size_t from = at_;
        at_ += word.size();
        add(kind, from, at_, value);
    }
    void decimal(std::size_t from) {
        std::size_t end = from;
        while (end < text_.size() &&
               (is_digit(text_[end]) || text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E' ||
                ((text_[end] == '+' || text_[end] == '-') && (text_[end - 1] | 0x20) == 'e'))) {
            ++end;
        }
        double value = 0;
        const char* const last = text_.data() + end;
        const auto [stop, code] = std::from_chars(text_.data() + from, last, value);
        if (code != std::errc() || stop != last) return fail("a number is not well formed");
        at_ = end;
        add(TokenKind::double_float, from, at_, std::bit_cast<std::uint64_t>(value));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    TokenList out_;
};

}  // namespace

std::optional<Type> type_named(std::string_view dotted) noexcept {
    constexpr std::pair<std::string_view, Type> rows[] = {
        {".pred", Type::pred},   {".b8", Type::b8},         {".b16", Type::b16}, {".b32", Type::b32},
        {".b64", Type::b64},     {".b128", Type::b128},     {".u8", Type::u8},   {".u16", Type::u16},
        {".u32", Type::u32},     {".u64", Type::u64},       {".s8", Type::s8},   {".s16", Type::s16},
        {".s32", Type::s32},     {".s64", Type::s64},       {".f16", Type::f16}, {".bf16", Type::bf16},
        {".f16x2", Type::f16x2}, {".bf16x2", Type::bf16x2}, {".f32", Type::f32}, {".f64", Type::f64}};
    for (const auto& [name, type] : rows) {
        if (name == dotted) return type;
    }
    return std::nullopt;
}

TokenList read_tokens(std::string_view text) {
    return Reader(text).read();
}

}  // namespace isthmus::ptx
