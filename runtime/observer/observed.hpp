// SPDX-License-Identifier: Apache-2.0
// Observer: the callbacks of a runtime, or none. ObservedSpan: tells them of one span, its error included.
// No call looks here on its shortest way: that way is not taken by an observed runtime (ADR 113).
#pragma once

#include <isthmus/observer.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

class Observer {
public:
    constexpr Observer() = default;
    // nullptr: none. Functions that are missing are not called.
    explicit Observer(const ObserverCallbacks* callbacks) noexcept;
    // Whether a later version's header, or none, gave the size: then nothing of it is read.
    static bool readable(const ObserverCallbacks& callbacks) noexcept;

    explicit operator bool() const noexcept { return on_; }

    [[gnu::cold]] void begin(Span span, std::string_view name, const ObservedFacts& facts) const noexcept;
    [[gnu::cold]] void end(Span span, std::string_view name, const ObservedFacts& facts) const noexcept;
    // `facts()` makes the facts, and is called only if somebody is told.
    template <class Name, class Facts>
    void mark(Mark what, const Name& name, Facts facts) const noexcept {
        if (on_) [[unlikely]]
            tell(what, std::string_view(name), facts());
    }
    // One refusal for a call, however many spans its error leaves: nothing while an outer span is open on the thread.
    [[gnu::cold]] void refused(std::string_view name, ObservedFacts facts, const Error& error) const noexcept;

private:
    [[gnu::cold]] void tell(Mark what, std::string_view name, const ObservedFacts& facts) const noexcept;

    ObserverCallbacks callbacks_{};
    bool on_ = false;
};

// One span, from its construction to over(), at the latest to its destruction. On one thread.
class ObservedSpan {
public:
    // `facts()` makes the facts, and is called only if somebody is told. `name` outlives the span.
    template <class Name, class Facts>
    ObservedSpan(const Observer& observer, Span what, const Name& name, Facts facts) noexcept {
        if (observer) [[unlikely]]
            open(observer, what, std::string_view(name), facts());
    }
    ObservedSpan(const ObservedSpan&) = delete;
    ObservedSpan& operator=(const ObservedSpan&) = delete;
    ~ObservedSpan() {
        if (observer_ != nullptr) [[unlikely]]
            close(nullptr);
    }

    // nullptr: nobody is told. What becomes known until the end.
    ObservedFacts* facts() noexcept { return observer_ != nullptr ? &open_.facts : nullptr; }
    // The span ends with this result.
    template <class T>
    void over(const Result<T>& result) noexcept {
        if (observer_ != nullptr) [[unlikely]]
            close(result.ok() ? nullptr : &result.error());
    }
    // The span ends with this error, which is returned.
    Error&& over(Error&& error) noexcept {
        if (observer_ != nullptr) [[unlikely]]
            close(&error);
        return std::move(error);
    }
    // The same where the span goes on if all went well: its end is told by Observer::end().
    template <class T>
    void over_if_refused(const Result<T>& result) noexcept {
        if (observer_ != nullptr) [[unlikely]]
            result.ok() ? leave_open() : close(&result.error());
    }

private:
    [[gnu::cold]] void open(const Observer& observer, Span what, std::string_view name,
                            const ObservedFacts& facts) noexcept;
    [[gnu::cold]] void close(const Error* error) noexcept;
    [[gnu::cold]] void leave_open() noexcept;

    struct Open {
        Span what;
        std::string_view name;
        ObservedFacts facts;
    };
    const Observer* observer_ = nullptr;
    union {
        Open open_;  // there with an observer only: without one nothing is stored
    };
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
