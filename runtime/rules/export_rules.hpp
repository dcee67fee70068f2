// kind × origin → may this memory be exported to another process, and why not. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>

namespace isthmus::rules {

// What is asked about: memory of a buffer's own, a view of somebody's, memory that this runtime did not allocate, or
// memory that several processes have already.
enum class ExportOrigin : std::uint8_t { own, view, foreign, shared };

// Never "yes" by kind alone: what can be exported is fixed when memory is created (V4), and no kind tells it.
AccessAnswer exportable(MemoryKind kind, ExportOrigin origin);

}  // namespace isthmus::rules
