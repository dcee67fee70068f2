// SPDX-License-Identifier: Apache-2.0
// JsonCursor: reads JSON (RFC 8259) once, from front to back, without building a tree. The caller takes the values that
// it knows and skips the others. Pure; after the first fault every call does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

class JsonCursor {
public:
    explicit JsonCursor(std::string_view text) : text_(text) {}

    // Calls member(key) for each member of the object that begins here. It must take or skip the value.
    template <class Member>
    void object(Member&& member) {
        if (!enter('{', "an object was expected")) return;
        for (bool first = true; more('}', first); first = false) {
            const std::string key = string();
            if (!take(':', "a ':' was expected")) return;
            member(std::string_view(key));
        }
        --depth_;
    }
    // Calls element() for each element of the array that begins here. It must take or skip the value.
    template <class Element>
    void array(Element&& element) {
        if (!enter('[', "an array was expected")) return;
        for (bool first = true; more(']', first); first = false) element();
        --depth_;
    }
    std::string string();
    bool boolean();
    std::uint64_t whole_number();  // not negative, without fraction and exponent, at most 2^63 - 1
    void skip();                   // any value
    void end();                    // only white space may follow

    void refuse(std::string_view fault);  // keeps the first one, with its place
    bool good() const noexcept { return fault_.empty(); }
    std::string_view fault() const noexcept { return fault_; }
    std::size_t place() const noexcept { return at_; }  // in bytes; of the fault, where there is one

private:
    static constexpr int most_depth = 64;
    void blanks() noexcept;
    bool peek(char wanted) noexcept;
    bool take(char wanted, std::string_view fault);
    bool enter(char opening, std::string_view fault);
    bool more(char closing, bool first);  // is there another member or element? Takes the ',' or the closing bracket
    bool word(std::string_view wanted);
    void digits();
    void skip_number();
    void string(std::string* text);  // nullptr: skipped
    void escape(std::string* text);

    std::string_view text_;
    std::string_view fault_;  // static storage
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
