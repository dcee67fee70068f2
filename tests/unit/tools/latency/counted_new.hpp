// SPDX-License-Identifier: Apache-2.0
// Counts what the calling thread takes from the heap by operator new, in this program and in the library.
#pragma once

#include <cstdint>

namespace isthmus::tools::latency {

std::uint64_t counted_new() noexcept;

}  // namespace isthmus::tools::latency
