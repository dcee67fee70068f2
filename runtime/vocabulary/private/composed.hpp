// SPDX-License-Identifier: Apache-2.0
// composed("{} bytes of {} memory", 64, "pinned"): the text of a message, and worded(): the same without the heap. A
// call site costs two stores per field and one call; the work is done out of line, in cold code.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// A text for the stack, or for a place that is kept: usual lengths need no memory from the heap.
template <std::size_t room>
class TextOf {
public:
    TextOf& append(std::string_view text) {
        if (more_.empty() && text.size() <= room - count_) {
            count_ += text.copy(here_ + count_, text.size());
        } else {
            if (more_.empty()) more_.assign(here_, count_);
            more_.append(text);
        }
        return *this;
    }
    operator std::string_view() const noexcept {  // NOLINT(google-explicit-constructor)
        return more_.empty() ? std::string_view(here_, count_) : std::string_view(more_);
    }
    std::string_view view() const noexcept { return *this; }

private:
    std::size_t count_ = 0;
    char here_[room];   // not initialised
    std::string more_;  // all of it, once `here_` is too small
};
using Words = TextOf<192>;

// One field of a message: a text, which is not copied, or a whole number. Valid within the expression that creates it.
class TextField {
public:
    TextField(const char* text) noexcept : text_(text), value_(terminated) {}              // NOLINT
    TextField(std::string_view text) noexcept : text_(text.data()), value_(text.size()) {  // NOLINT
        if (text.empty()) text_ = "";
    }
    TextField(const std::string& text) noexcept : text_(text.data()), value_(text.size()) {}  // NOLINT
    template <std::signed_integral T>
    TextField(T number) noexcept  // NOLINT
        : text_(signed_number), value_(static_cast<std::uint64_t>(static_cast<std::int64_t>(number))) {}
    template <std::unsigned_integral T>
    TextField(T number) noexcept : text_(unsigned_number), value_(number) {}  // NOLINT
    template <std::size_t room>
    TextField(const TextOf<room>& text) noexcept : TextField(text.view()) {}  // NOLINT
    TextField(bool) = delete;
    TextField(char) = delete;

    // `digits`: room for a number.
    using Digits = std::array<char, 24>;
    std::string_view text(Digits& digits) const noexcept;

private:
    static constexpr std::uint64_t terminated = ~std::uint64_t{0};
    static const char signed_number[];
    static const char unsigned_number[];
    const char* text_;
    std::uint64_t value_;  // the length of a text
};

namespace detail {
// Replaces each "{}" in `format` by the next field.
[[gnu::cold]] std::string compose(const char* format, std::initializer_list<TextField> fields);
[[gnu::cold]] Words compose_words(const char* format, std::initializer_list<TextField> fields);
}  // namespace detail

template <class... Fields>
[[gnu::always_inline]] inline std::string composed(const char* format, const Fields&... fields) {
    return detail::compose(format, {TextField(fields)...});
}
template <class... Fields>
[[gnu::always_inline]] inline Words worded(const char* format, const Fields&... fields) {
    return detail::compose_words(format, {TextField(fields)...});
}

}  // namespace v0
}  // namespace isthmus
