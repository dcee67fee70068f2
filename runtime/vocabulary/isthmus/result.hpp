// SPDX-License-Identifier: Apache-2.0
// Error and Result<T>: every fallible call returns one of them; exceptions are not needed.
#pragma once

#include <isthmus/export.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace isthmus {
inline namespace v0 {

// The kind of a failure. Values are stable: new codes are appended. List: docs/errors.md.
enum class Code : int {
    ok = 0,
    invalid_argument = 1,   // a value that no machine accepts (zero, overflow, null, misaligned)
    wrong_device = 2,       // the object belongs to another device or another runtime
    not_accessible = 3,     // the device or the CPU may not access this memory on this machine
    in_use = 4,             // refused because another use is open or still running
    unsupported = 5,        // this machine, driver or build lacks it
    out_of_memory = 6,      // device, host or budget exhausted
    not_permitted = 7,      // forbidden by the operating system or the driver
    timed_out = 8,          // a deadline passed; the work may still be running
    not_ready = 9,          // the caller asked not to wait, and the work is still running
    device_lost = 10,       // a sticky error: the device answers nothing else in this process
    no_driver = 11,         // no libcuda.so.1 could be opened
    driver_too_old = 12,    // a driver is there, but older than what is needed
    driver_mismatch = 13,   // kernel module and library disagree, or a stub library was found
    no_device = 14,         // the driver works, but shows no device
    system_limit = 15,      // a resource limit of the process or the container
    no_gpu_code = 16,       // a kernel has no code for this GPU
    invalid_handle = 17,    // unknown, stale, moved-from or already released
    forked = 18,            // the runtime was opened before fork(); a child cannot use it
    driver_error = 19,      // any other answer of the driver; see driver_code()
    system_error = 20,      // any other answer of the operating system; see driver_code() (errno)
    capture_error = 21,     // refused because a capture is open, or the capture was lost
    unverified = 22,        // the check could not be made, and the caller asked for certainty
    already_released = 23,  // memory that was given back before (a double free, a stale handle)
    interior_pointer = 24,  // an address inside an allocation where its beginning is needed
    unknown_pointer = 25,   // an address that this runtime never handed out
    not_ordered = 26,       // memory used on a stream before it is ordered there (OrderCheck::refuse)
    peer_lost = 27,         // the other process is gone, or gave this one up
    peer_broke_rules = 28,  // data from the other process that no correct peer sends; none of it is used
    overtaken = 29,         // the data was overwritten while it was read; results made from it are invalid
    ended = 30,             // the ring of frames is closed: nothing further comes; no mistake
};

// "out_of_memory" for Code::out_of_memory. Static storage; "unknown" for a value outside the enumeration.
ISTHMUS_API std::string_view name(Code code) noexcept;

namespace detail {
struct ErrorMaker;
}

// Why a call failed: what was asked, which fact refused it, what works instead.
// A value: copyable, movable, one pointer wide; after a move it reports Code::invalid_handle and empty texts. Thread
// safety: as a std::string.
// The texts of the library's errors are composed at the first call of message(), remedy() or text(). If no memory is
// left for that, message() and remedy() return the entry's own text, with the names of its fields.
class [[nodiscard]] ISTHMUS_API Error {
public:
    // For errors of programs.
    Error(Code code, std::string message, std::string remedy = {});
    Error(const Error& other);
    Error& operator=(const Error& other);
    Error(Error&&) noexcept;
    Error& operator=(Error&&) noexcept;
    ~Error();

    // Adds the call that failed: its name ("cuMemAlloc_v2", "mbind") and the number it returned
    // (CUresult for driver calls, errno for system calls).
    Error&& from_call(std::string_view call, int driver_code) &&;

    Code code() const noexcept;
    // The id of the entry in the catalogue (docs/errors.md): "M012"; stable. Static storage; empty for a program's own
    // error.
    std::string_view id() const noexcept;
    int driver_code() const noexcept;        // 0 if no call was made
    std::string_view call() const noexcept;  // empty if no call was made
    std::string_view message() const noexcept;
    std::string_view remedy() const noexcept;

    // Everything in one line, for logs: "not_accessible: … (cuMemAlloc_v2 returned 2). Try: … [M012]"
    std::string text() const;

private:
    friend struct detail::ErrorMaker;
    struct Detail;
    explicit Error(std::unique_ptr<Detail> detail) noexcept;
    std::unique_ptr<Detail> detail_;
};

// The exception that value() throws on a failed Result, for callers that use exceptions.
class ISTHMUS_API BadResult : public std::exception {
public:
    explicit BadResult(const Error& error);
    ~BadResult() override;
    const char* what() const noexcept override;  // Error::text()
    const Error& error() const noexcept { return error_; }

private:
    Error error_;
    std::string text_;
};

namespace detail {
// Sets a function that is called with the id of each catalogue error made from now on, on the thread that makes it;
// nullptr: none. For tests that count which entries occur.
ISTHMUS_API void watch_errors(void (*watcher)(std::string_view id)) noexcept;

// Called by value() on a failed Result. Throws BadResult where the library was built with exceptions and the caller can
// catch it; otherwise calls std::terminate, because the caller asserted success.
[[noreturn]] ISTHMUS_API void raise(const Error& error);
}  // namespace detail

template <class T>
class Result;
namespace detail {
template <class F, class... Values>
auto result_of(F&& next, Values&&... values) -> Result<std::invoke_result_t<F, Values...>>;
}

// A value or an Error. value() asserts success; test it with ok() or operator bool, or branch on code().
template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

    bool ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    Code code() const noexcept { return ok() ? Code::ok : std::get_if<1>(&state_)->code(); }

    T& value() & { return require(), *std::get_if<0>(&state_); }
    const T& value() const& { return require(), *std::get_if<0>(&state_); }
    // Returned by value: `for (auto& pixel : frame.write_on_host().value())` keeps the view for the whole loop.
    T value() && { return require(), std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T operator*() && { return std::move(*this).value(); }

    // Only on failure; undefined otherwise (like operator* of std::optional).
    const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
    Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

    // The value, or `other` on failure.
    template <class U>
    T value_or(U&& other) const& {
        return ok() ? *std::get_if<0>(&state_) : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U&& other) && {
        return ok() ? std::move(*std::get_if<0>(&state_)) : static_cast<T>(std::forward<U>(other));
    }
    // next(value), which returns a Result; on failure the same error, and `next` is not called.
    template <class F>
    auto and_then(F&& next) && -> std::invoke_result_t<F, T> {
        if (!ok()) return std::move(*this).error();
        return std::invoke(std::forward<F>(next), std::move(*std::get_if<0>(&state_)));
    }
    template <class F>
    auto and_then(F&& next) const& -> std::invoke_result_t<F, const T&> {
        if (!ok()) return error();
        return std::invoke(std::forward<F>(next), *std::get_if<0>(&state_));
    }
    // A Result of what next(value) returns; on failure the same error, and `next` is not called.
    template <class F>
    auto transform(F&& next) && -> Result<std::invoke_result_t<F, T>> {
        if (!ok()) return std::move(*this).error();
        return detail::result_of(std::forward<F>(next), std::move(*std::get_if<0>(&state_)));
    }
    template <class F>
    auto transform(F&& next) const& -> Result<std::invoke_result_t<F, const T&>> {
        if (!ok()) return error();
        return detail::result_of(std::forward<F>(next), *std::get_if<0>(&state_));
    }

private:
    void require() const {
        if (!ok()) detail::raise(error());
    }
    std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

    bool ok() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return ok(); }
    Code code() const noexcept { return ok() ? Code::ok : error_->code(); }
    void value() const {
        if (!ok()) detail::raise(*error_);
    }
    const Error& error() const& noexcept { return *error_; }
    Error&& error() && noexcept { return std::move(*error_); }

    // next(), which returns a Result; on failure the same error, and `next` is not called.
    template <class F>
    auto and_then(F&& next) const -> std::invoke_result_t<F> {
        if (!ok()) return error();
        return std::invoke(std::forward<F>(next));
    }
    // A Result of what next() returns; on failure the same error, and `next` is not called.
    template <class F>
    auto transform(F&& next) const -> Result<std::invoke_result_t<F>> {
        if (!ok()) return error();
        return detail::result_of(std::forward<F>(next));
    }

private:
    std::optional<Error> error_;
};

namespace detail {
template <class F, class... Values>
auto result_of(F&& next, Values&&... values) -> Result<std::invoke_result_t<F, Values...>> {
    if constexpr (std::is_void_v<std::invoke_result_t<F, Values...>>) {
        std::invoke(std::forward<F>(next), std::forward<Values>(values)...);
        return {};
    } else {
        return std::invoke(std::forward<F>(next), std::forward<Values>(values)...);
    }
}
}  // namespace detail

}  // namespace v0
}  // namespace isthmus

// Leaves the enclosing function with the error where a call fails; the function returns an Error or a Result.
//
//     ISTHMUS_TRY(auto frame, device.allocate_shared<float>(n, use));   // frame: what the Result held
//     ISTHMUS_TRY(stream.launch(scale, n, frame));                      // a Result without a name
//
// Two statements in the first form: put it into braces under an if. The call is evaluated once.
#define ISTHMUS_TRY(first, ...)                                                                   \
    ISTHMUS_DETAIL_PICK(__VA_OPT__(~, ISTHMUS_DETAIL_TRY_NAMED, ) ~, ISTHMUS_DETAIL_TRY_PLAIN, ~) \
    (ISTHMUS_DETAIL_JOIN(isthmus_result_of_line_, __LINE__), first __VA_OPT__(, ) __VA_ARGS__)
#define ISTHMUS_DETAIL_PICK(ignored, picked, ...) picked
#define ISTHMUS_DETAIL_JOIN(left, right) ISTHMUS_DETAIL_JOIN_NOW(left, right)
#define ISTHMUS_DETAIL_JOIN_NOW(left, right) left##right
#define ISTHMUS_DETAIL_TRY_PLAIN(result, call)                               \
    do {                                                                     \
        if (auto result = (call); !result) return std::move(result).error(); \
    } while (false)
#define ISTHMUS_DETAIL_TRY_NAMED(result, declaration, ...) \
    auto result = (__VA_ARGS__);                           \
    if (!result) return std::move(result).error();         \
    declaration = std::move(result).value()
