// SPDX-License-Identifier: Apache-2.0
// An Allocator made of C callbacks.
#pragma once

#include <isthmus/allocator.h>
#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

namespace isthmus {
inline namespace v0 {

// Errors: invalid_argument where `allocate` or `release` is null; `destroy` is not called then. A result of a
// callback other than 0 becomes an Error with that Code (driver_error where there is no such code). What `allocate`
// returns is checked: a block without an address, smaller than requested or misaligned is released at once and
// refused (invalid_argument), because a kernel would write past its end.
ISTHMUS_API Result<Allocator> allocator_from(const isthmus_allocator_callbacks& callbacks);

}  // namespace v0
}  // namespace isthmus
