// SPDX-License-Identifier: Apache-2.0
// Errors, and the reading of what callers give.
#include "calls.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_set>

isthmus_error::isthmus_error(isthmus::Error from)
    : cpp(std::move(from)),
      message(cpp.message()),
      remedy(cpp.remedy()),
      id(cpp.id()),
      call(cpp.call()),
      text(cpp.text()) {}

namespace isthmus::c {
namespace {

// Never freed. One for each library over libisthmus-c; isthmus_error_free() of any of them knows it by its mark.
isthmus_error*& no_memory() noexcept {
    static isthmus_error* one = nullptr;
    return one;
}

bool is_kept(const isthmus_error* error) noexcept {
    return error == nullptr || error->kept;
}

}  // namespace

void prepare_errors() {
    static const bool made = [] {
        no_memory() = new isthmus_error(Error(Code::out_of_memory, "no memory is left for the objects of this call",
                                              "free memory of the process, and call again"));
        no_memory()->kept = true;
        return true;
    }();
    (void)made;
}

isthmus_code hand_out(Error failure, isthmus_error** error) noexcept {
    const auto code = static_cast<isthmus_code>(failure.code());
    if (error == nullptr) return code;
#if defined(__cpp_exceptions)
    try {
        *error = new isthmus_error(std::move(failure));
    } catch (...) {
        *error = no_memory();
        return ISTHMUS_OUT_OF_MEMORY;
    }
#else
    *error = new isthmus_error(std::move(failure));
#endif
    return code;
}

namespace {

// What a caught exception becomes. Called in a catch block.
[[maybe_unused]] isthmus_code hand_out_caught([[maybe_unused]] const char* name, isthmus_error** error) noexcept {
#if defined(__cpp_exceptions)
    try {
        throw;
    } catch (const std::bad_alloc&) {
    } catch (const BadResult& bad) {
        return hand_out(bad.error(), error);
    } catch (const std::exception& other) {
        try {
            return hand_out(Error(Code::system_error, std::string(name) + ": " + other.what()), error);
        } catch (...) {
        }
    } catch (...) {
        try {
            return hand_out(Error(Code::system_error, std::string(name) + ": an exception of an unknown type"), error);
        } catch (...) {
        }
    }
#endif
    if (error != nullptr) *error = no_memory();
    return ISTHMUS_OUT_OF_MEMORY;
}

struct Texts {
    std::mutex mutex;
    std::unordered_set<std::string> all;
};

const char* kept(Texts& texts, std::string_view text, std::size_t most, const char* otherwise) {
    const std::lock_guard lock(texts.mutex);
    if (texts.all.size() < most) return texts.all.emplace(text).first->c_str();
    const auto known = texts.all.find(std::string(text));
    return known == texts.all.end() ? otherwise : known->c_str();
}

}  // namespace

isthmus_code run_guarded(const char* name, isthmus_error** error, void* body,
                         Result<void> (*run)(void* body, const Call& call)) noexcept {
#if defined(__cpp_exceptions)
    try {
#endif
        Result<void> done = run(body, Call{name});
        if (!done) [[unlikely]]
            return hand_out(std::move(done).error(), error);
        if (error != nullptr) *error = nullptr;
        return ISTHMUS_OK;
#if defined(__cpp_exceptions)
    } catch (...) {
        return hand_out_caught(name, error);
    }
#endif
}

const char* kept_text(std::string_view text) noexcept {
    return answered("", [&] {
        static Texts& texts = *new Texts;  // never destroyed: texts outlive the static objects of the program
        return kept(texts, text, SIZE_MAX, "");
    });
}

const char* kept_name(std::string_view name) noexcept {
    return answered("", [&] {
        static Texts& names = *new Texts;
        return kept(names, name, 4096, "native work with one of many names");
    });
}

Result<void> Call::needs(std::initializer_list<Needed> all) const {
    for (const Needed& one : all) {
        if (one.pointer == nullptr) [[unlikely]]
            return is_null(one.argument);
    }
    return {};
}

Error Call::refuse(std::string_view argument, std::string_view why, std::string remedy) const {
    std::string message = std::string(name) + ": argument `" + std::string(argument) + "` ";
    message += why;
    return {Code::invalid_argument, std::move(message), std::move(remedy)};
}

Error Call::is_null(const char* argument) const {
    return refuse(argument, "is NULL", "pass a valid pointer; a handle may have been freed, or its creation failed");
}

Error Call::no_such_number(const char* argument, std::int64_t number, int count) const {
    return refuse(argument, "is " + std::to_string(number) + ", which names nothing",
                  "the numbers are 0 to " + std::to_string(count - 1) + ": use the constants of isthmus.h");
}

Result<Wait> Call::wait(std::int64_t wait_ns) const {
    if (wait_ns == ISTHMUS_WAIT_DEFAULT) return Wait{};
    if (wait_ns == ISTHMUS_WAIT_NEVER) return Wait::never();
    if (wait_ns < 0) {
        return refuse("wait_ns", "is " + std::to_string(wait_ns),
                      "pass nanoseconds, ISTHMUS_WAIT_NEVER or ISTHMUS_WAIT_DEFAULT");
    }
    return Wait::at_most(std::chrono::nanoseconds(wait_ns));
}

Result<void> read_struct(const Call& call, const char* argument, const void* from, std::size_t least_bytes, void* to,
                         std::size_t bytes) {
    std::size_t size = 0;
    std::memcpy(&size, from, sizeof size);
    // Larger than any version will be: a number that was never filled in, beyond which no byte may be read.
    constexpr std::size_t most = 4096;
    // The size of a struct is a multiple of its alignment: no true size ends within a pointer.
    if (size < least_bytes || size > most || size % alignof(void*) != 0) {
        return call.refuse(argument, "has a `size` of " + std::to_string(size),
                           "initialise the struct with its _INIT macro; its `size` is " + std::to_string(bytes) +
                               " in this version, and at least " + std::to_string(least_bytes));
    }
    if (size > bytes) {
        const auto* const first = static_cast<const unsigned char*>(from) + bytes;
        const auto* const last = static_cast<const unsigned char*>(from) + size;
        if (std::any_of(first, last, [](unsigned char byte) { return byte != 0; })) {
            return call.refuse(argument, "sets a field beyond the " + std::to_string(bytes) + " bytes that are known",
                               "use a libisthmus-c that is as new as the program's isthmus.h, or leave the field 0");
        }
    }
    std::memcpy(to, from, std::min(size, bytes));
    return {};
}

}  // namespace isthmus::c

using isthmus::c::is_kept;

isthmus_code isthmus_error_code(const isthmus_error* error) {
    return error == nullptr ? ISTHMUS_OK : static_cast<isthmus_code>(error->cpp.code());
}
int32_t isthmus_error_driver_code(const isthmus_error* error) {
    return error == nullptr ? 0 : error->cpp.driver_code();
}
const char* isthmus_error_message(const isthmus_error* error) {
    return error == nullptr ? "" : error->message.c_str();
}
const char* isthmus_error_remedy(const isthmus_error* error) {
    return error == nullptr ? "" : error->remedy.c_str();
}
const char* isthmus_error_id(const isthmus_error* error) {
    return error == nullptr ? "" : error->id.c_str();
}
const char* isthmus_error_call(const isthmus_error* error) {
    return error == nullptr ? "" : error->call.c_str();
}
const char* isthmus_error_text(const isthmus_error* error) {
    return error == nullptr ? "" : error->text.c_str();
}
void isthmus_error_free(isthmus_error* error) {
    if (!is_kept(error)) delete error;
}
