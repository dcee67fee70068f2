// SPDX-License-Identifier: Apache-2.0
// The C library's text for an errno.
#pragma once

#include <array>
#include <cstring>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {

inline std::string system_words(int error) {
    std::array<char, 128> text{};
    return ::strerror_r(error, text.data(), text.size());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
