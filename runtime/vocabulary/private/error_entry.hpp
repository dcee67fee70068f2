// SPDX-License-Identifier: Apache-2.0
// Errors as data. Each room lists its errors in ROOM_errors.hpp, one entry each:
//
//     inline constexpr auto unaligned_offset =
//         error_entry("V012", Code::invalid_argument, "offset {offset:number} is no multiple of {granularity:number}",
//                     "round the offset down to {granularity:number}");
//
// and its sources make an error with the values of the fields, in the order of their first appearance:
//
//     return make_error<errors::unaligned_offset>(offset, granularity);
//
// The id is stable: it is never given to another error. docs/errors.md is generated from the entries. A field is
// {name}, a text, or {name:number}, a whole number; other braces are text. The text is composed when it is first read.
// An entry with Code::ok takes its code from an answer of the driver or of a rule: make_error_as<entry>(code, …).
#pragma once

#include "composed.hpp"

#include <isthmus/result.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace isthmus {
inline namespace v0 {

namespace detail {

// The next field of a format: "{" and a lower-case letter. Other braces are text.
struct FieldPlace {
    std::size_t begin = 0;
    std::size_t end = 0;  // behind "}"; 0: no field
    std::string_view name;
    bool is_number = false;
    constexpr bool found() const noexcept { return end != 0; }
};
constexpr FieldPlace next_field(std::string_view format) noexcept {
    for (std::size_t open = format.find('{'); open != format.npos; open = format.find('{', open + 1)) {
        const std::size_t close = format.find('}', open);
        if (close == format.npos) break;
        const std::string_view inside = format.substr(open + 1, close - open - 1);
        if (inside.empty() || inside[0] < 'a' || inside[0] > 'z') continue;
        return {open, close + 1, inside.substr(0, inside.find(':')), inside.ends_with(":number")};
    }
    return {};
}

// The fields of a format, each once, in order of first appearance.
struct ErrorFields {
    static constexpr std::size_t most = 12;
    struct Field {
        std::string_view name;
        bool is_number = false;
    };
    std::array<Field, most> field{};
    std::size_t count = 0;

    constexpr std::size_t place_of(std::string_view name) const noexcept {
        std::size_t at = 0;
        while (at < count && field[at].name != name) ++at;
        return at;
    }
    constexpr void add_all_of(std::string_view format) noexcept {
        for (FieldPlace place = next_field(format); place.found(); place = next_field(format)) {
            if (count < most && place_of(place.name) == count) field[count++] = {place.name, place.is_number};
            format.remove_prefix(place.end);
        }
    }
};

// The code, the id and both formats in one object without pointers, so that an entry needs no relocation.
template <std::size_t MessageSize, std::size_t RemedySize>
struct ErrorEntry {
    std::uint8_t code = 0;
    char id[5] = {};
    char message[MessageSize] = {};  // ends with 0, like the remedy
    char remedy[RemedySize] = {};

    constexpr ErrorFields fields() const noexcept {
        ErrorFields all;
        all.add_all_of(std::string_view(message, MessageSize - 1));
        all.add_all_of(std::string_view(remedy, RemedySize - 1));
        return all;
    }
};

// An entry of any size.
using AnyErrorEntry = const std::uint8_t*;

// Exported for programs of this tree that link rooms beside the shared library: a second result.o would be a second
// BadResult.
[[gnu::cold]] ISTHMUS_API Error error_of(AnyErrorEntry entry, Code code, std::initializer_list<TextField> fields);

// The texts of an error for the fields of another or for the log, without the heap and without composing them for good.
using Sentence = TextOf<1024>;
using ErrorLine = TextOf<1536>;
[[gnu::cold]] ISTHMUS_API Sentence message_in_words(const Error& error);
[[gnu::cold]] ISTHMUS_API Sentence remedy_in_words(const Error& error);
[[gnu::cold]] ISTHMUS_API ErrorLine text_in_words(const Error& error);  // as Error::text()

template <class T>
inline constexpr bool is_number_field = std::integral<T>;

template <const auto& Entry, class... Values>
constexpr bool fit() noexcept {
    constexpr ErrorFields fields = Entry.fields();
    if (fields.count != sizeof...(Values)) return false;
    std::size_t at = 0;
    return ((is_number_field<Values> == fields.field[at++].is_number) && ...);
}

}  // namespace detail

template <std::size_t MessageSize, std::size_t RemedySize>
consteval detail::ErrorEntry<MessageSize, RemedySize> error_entry(const char (&id)[5], Code code,
                                                                  const char (&message)[MessageSize],
                                                                  const char (&remedy)[RemedySize]) {
    detail::ErrorEntry<MessageSize, RemedySize> entry;
    entry.code = static_cast<std::uint8_t>(code);
    std::copy_n(id, 5, entry.id);
    std::copy_n(message, MessageSize, entry.message);
    std::copy_n(remedy, RemedySize, entry.remedy);
    return entry;
}

template <const auto& Entry, class... Values>
[[gnu::always_inline]] inline Error make_error_as(Code code, const Values&... values) {
    static_assert(detail::fit<Entry, Values...>(), "the values are not those of the entry's fields, in their order");
    return detail::error_of(&Entry.code, code, {TextField(values)...});
}
template <const auto& Entry, class... Values>
[[gnu::always_inline]] inline Error make_error(const Values&... values) {
    static_assert(Entry.code != 0, "an entry without a code: make_error_as");
    return make_error_as<Entry>(static_cast<Code>(Entry.code), values...);
}

}  // namespace v0
}  // namespace isthmus
