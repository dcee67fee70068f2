// SPDX-License-Identifier: Apache-2.0
// kind × origin → may this memory be exported to another process, and why not. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>

namespace isthmus::rules {

// The memory in question: a buffer's own, a view of another buffer, memory that this runtime did not allocate, or
// memory that several processes share already.
enum class ExportOrigin : std::uint8_t { own, view, foreign, shared };

// Never "yes" by kind alone: exportability is fixed when memory is created (V4), and no kind reveals it.
AccessAnswer exportable(MemoryKind kind, ExportOrigin origin);
// Whether the driver gives a dma-buf of memory of this kind that was made for it. Decided by attributes 124 (device
// memory) and 146 (pinned host memory); cuMemGetHandleForAddressRange names no other kinds.
AccessAnswer dma_buf_export(const Capabilities& device, MemoryKind kind);

}  // namespace isthmus::rules
