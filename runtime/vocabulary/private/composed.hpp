// SPDX-License-Identifier: Apache-2.0
// composed("{} bytes of {} memory", 64, "pinned"): the text of a message. A call site costs two stores per field and
// one call; the work is done out of line, in cold code.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

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
    TextField(bool) = delete;
    TextField(char) = delete;

    void append_to(std::string& line) const;

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
}  // namespace detail

template <class... Fields>
[[gnu::always_inline]] inline std::string composed(const char* format, const Fields&... fields) {
    return detail::compose(format, {TextField(fields)...});
}

}  // namespace v0
}  // namespace isthmus
