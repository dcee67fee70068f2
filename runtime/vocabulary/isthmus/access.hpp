// SPDX-License-Identifier: Apache-2.0
// Answers to "may this agent access this memory?": yes, no, or not verified, each with a sentence.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

enum class Verdict : std::uint8_t { no, yes, not_verified };
ISTHMUS_API std::string_view name(Verdict verdict) noexcept;

// A value, free to copy. The texts have static storage.
struct AccessAnswer {
    Verdict verdict = Verdict::not_verified;
    std::string_view reason;  // the fact that decided
    std::string_view remedy;  // what works instead; empty for yes
    int part = -1;            // index, from 0, of the part that decided, if several were asked about; −1: none
    explicit operator bool() const noexcept { return verdict == Verdict::yes; }
};

// How a launch checks its arguments. Types, count and rank are always checked, at compile time.
enum class LaunchMode : std::uint8_t {
    relaxed,  // no further check
    checked,  // memory known to be inaccessible is refused; unknown memory is logged once and passes
    strict,   // only memory that this runtime allocated on the launch device passes
    staged,   // as checked, but what a GPU cannot access is copied in and out around the kernel, by its declared use.
              // The launch returns when results that belong in host memory are there
    verify,   // for debugging: as checked, and the launch returns when the kernel has ended; a fault names the kernel
};
ISTHMUS_API std::string_view name(LaunchMode mode) noexcept;

}  // namespace v0
}  // namespace isthmus
