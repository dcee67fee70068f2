// An Allocator made of C callbacks.
#pragma once

#include <isthmus/allocator.h>
#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

namespace isthmus::inline v0 {

// invalid_argument where `allocate` or `release` is null; `destroy` is not called then. An answer of the callbacks that
// is not 0 becomes an Error with that Code (driver_error where there is no such code). What `allocate` hands out is
// checked: memory without an address, smaller than asked for or misaligned is given back at once and refused
// (invalid_argument), because a kernel would write past it.
ISTHMUS_API Result<Allocator> allocator_from(const isthmus_allocator_callbacks& callbacks);

}  // namespace isthmus::inline v0
