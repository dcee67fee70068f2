// Which process this is: a runtime opened before fork() is of no use in the child.
#pragma once

#include <cstdint>

namespace isthmus::process {

// Grows in the child of every fork(). One load; no system call.
std::uint64_t generation() noexcept;

}  // namespace isthmus::process
