// SPDX-License-Identifier: Apache-2.0
// What every function of the C interface has around its work: checked arguments, no exception, an error to hand out.
#pragma once

#include <isthmus.h>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

struct isthmus_error {
    explicit isthmus_error(isthmus::Error from);
    isthmus::Error cpp;
    std::string message, remedy, id, call, text;
    bool kept = false;  // isthmus_error_free() leaves it alone
};

namespace isthmus::c {

// One function of the C interface, for the messages of its refusals.
struct Call {
    const char* name;

    struct Needed {
        const char* argument;
        const void* pointer;
    };
    // invalid_argument for the first that is NULL.
    Result<void> needs(std::initializer_list<Needed> all) const;
    // invalid_argument: "isthmus_x: argument `y`: why".
    Error refuse(std::string_view argument, std::string_view why, std::string remedy = {}) const;
    Error is_null(const char* argument) const;
    Result<Wait> wait(std::int64_t wait_ns) const;
    // The enumerator of this number, of `count` enumerators without gaps.
    template <class E>
    Result<E> enumerator(const char* argument, std::int64_t number, int count) const {
        if (number < 0 || number >= count) return no_such_number(argument, number, count);
        return static_cast<E>(number);
    }
    Error no_such_number(const char* argument, std::int64_t number, int count) const;
};

// Writes the error for the caller, unless `error` is NULL, and returns its code.
isthmus_code hand_out(Error failure, isthmus_error** error) noexcept;
// Makes the error that says that no memory is left, which must be there before that happens.
void prepare_errors();

// Runs body(call), which returns a Result<void>. One copy of what surrounds the bodies: they are most of the library.
isthmus_code run_guarded(const char* name, isthmus_error** error, void* body,
                         Result<void> (*run)(void* body, const Call& call)) noexcept;
template <class Body>
isthmus_code guarded(const char* name, isthmus_error** error, Body&& body) noexcept {
    using Type = std::remove_reference_t<Body>;
    return run_guarded(name, error, &body, [](void* erased, const Call& call) -> Result<void> {
        return (*static_cast<Type*>(erased))(call);
    });
}
// The same for functions without a code: `otherwise` in place of an exception.
template <class T, class Body>
T answered(T otherwise, Body&& body) noexcept {
#if defined(__cpp_exceptions)
    try {
        return body();
    } catch (...) {
        return otherwise;
    }
#else
    (void)otherwise;
    return body();
#endif
}

// A copy of the text that ends with 0 and is never freed; one for each content. "" where no memory is left.
const char* kept_text(std::string_view text) noexcept;
// The same for names that callers make up: of the first 4096. Later ones become "native work with one of many names".
const char* kept_name(std::string_view name) noexcept;

// The caller's bytes of a struct that begins with `size`; `bytes` of ours, zeroed before.
Result<void> read_struct(const Call& call, const char* argument, const void* from, std::size_t least_bytes, void* to,
                         std::size_t bytes);
template <class S>
Result<S> read_struct(const Call& call, const char* argument, const S* from, std::size_t least_bytes,
                      const S& otherwise) {
    if (from == nullptr) return otherwise;
    S read{};
    if (Result<void> done = read_struct(call, argument, from, least_bytes, &read, sizeof read); !done) {
        return std::move(done).error();
    }
    read.size = sizeof read;
    return read;
}

}  // namespace isthmus::c
