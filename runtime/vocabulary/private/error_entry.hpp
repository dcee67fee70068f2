// Errors as data. Each room lists its errors in ROOM_errors.hpp, an entry each:
//
//     inline constexpr auto unaligned_offset =
//         error_entry("V012", Code::invalid_argument, "offset {offset:number} is no multiple of {granularity:number}",
//                     "round the offset down to {granularity:number}");
//
// and its sources make them with the values of the fields, in the order of their first appearance:
//
//     return make_error<errors::unaligned_offset>(offset, granularity);
//
// The id is stable: it is never given to another error. docs/errors.md is generated from the entries. A field is
// {name}, which is text, or {name:number}, a whole number; other braces are text. The text is put together when it is
// first read. An entry whose code is Code::ok is for answers of the driver or of a rule, which bring the code:
// make_error_as<entry>(code, …).
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

namespace isthmus::inline v0 {

namespace detail {

// Where a format has its next field: "{" and a small letter. Other braces are text.
struct FieldPlace {
    std::size_t begin = 0;
    std::size_t end = 0;  // behind "}"; 0: there is none
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

// The fields of a format, each once, in the order of their first appearance.
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

// One object without pointers, so that an entry needs no relocation: the code, the id, and both formats.
template <std::size_t MessageSize, std::size_t RemedySize>
struct ErrorEntry {
    std::uint8_t code = 0;
    char id[5] = {};
    char message[MessageSize] = {};  // ends with 0, as the remedy does
    char remedy[RemedySize] = {};

    constexpr ErrorFields fields() const noexcept {
        ErrorFields all;
        all.add_all_of(std::string_view(message, MessageSize - 1));
        all.add_all_of(std::string_view(remedy, RemedySize - 1));
        return all;
    }
};

// The same, of any size.
using AnyErrorEntry = const std::uint8_t*;

[[gnu::cold]] Error error_of(AnyErrorEntry entry, Code code, std::initializer_list<TextField> fields);

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

}  // namespace isthmus::inline v0
