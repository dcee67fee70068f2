// SPDX-License-Identifier: Apache-2.0
// kind × origin → may this memory be exported to another process, and why not. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>

namespace isthmus::rules {

// The memory in question: a buffer's own, a view of another buffer, memory that this runtime did not allocate, or
// memory that several processes share already.
enum class ExportOrigin : std::uint8_t { own, view, foreign, shared };

// Never "yes" by kind alone: exportability is fixed when memory is created (V4), and no kind reveals it.
AccessAnswer exportable(MemoryKind kind, ExportOrigin origin);

}  // namespace isthmus::rules
