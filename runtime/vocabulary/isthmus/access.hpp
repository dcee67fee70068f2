// Answers to "may this agent touch this memory?": yes, no, or not verified, each with a sentence.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus::inline v0 {

enum class Verdict : std::uint8_t { no, yes, not_verified };
ISTHMUS_API std::string_view name(Verdict verdict) noexcept;

// Texts have static storage. A value; free to copy.
struct AccessAnswer {
    Verdict verdict = Verdict::not_verified;
    std::string_view reason;  // which fact decided
    std::string_view remedy;  // what works instead; empty for yes
    int part = -1;            // asked about several things at once: which of them decided, from 0; −1: none
    explicit operator bool() const noexcept { return verdict == Verdict::yes; }
};

// How launches treat their arguments. Types, count and rank are always checked, at compile time.
enum class LaunchMode : std::uint8_t {
    relaxed,  // nothing more
    checked,  // what is known to be inaccessible is refused; what is unknown is logged once and passes
    strict,   // only memory that this runtime allocated on the launch device passes
    staged,   // as checked, but what a GPU cannot reach is copied in and out around the kernel, by its declared use.
              // Such a launch returns when results that belong in host memory are there
    verify,   // as checked, and the launch returns when the kernel has ended: a fault names the kernel. For debugging
};
ISTHMUS_API std::string_view name(LaunchMode mode) noexcept;

}  // namespace isthmus::inline v0
