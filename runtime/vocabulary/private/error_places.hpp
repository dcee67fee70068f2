// SPDX-License-Identifier: Apache-2.0
// The memory that errors have without the heap.
#pragma once

#include <isthmus/result.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Writes to each page of that memory, which nothing may have touched so far: a loop's first error would meet a page
// fault. Takes none of it: errors of other threads have it meanwhile. Thread-safe. Exported as error_of() is.
ISTHMUS_API void touch_places_of_errors() noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
