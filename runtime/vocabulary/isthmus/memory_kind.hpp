// SPDX-License-Identifier: Apache-2.0
// MemoryKind: how memory was obtained. It does not say which device may access it (see access.hpp).
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// Stable integer codes: new kinds are appended.
enum class MemoryKind : std::uint8_t {
    unknown = 0,         // foreign memory about which nothing is known
    host = 1,            // pageable: malloc, mmap
    pinned = 2,          // cuMemHostAlloc
    registered = 3,      // host memory given to cuMemHostRegister
    write_combined = 4,  // cuMemHostAlloc with WRITECOMBINED: the host writes, never reads
    device = 5,          // cuMemAlloc
    pool = 6,            // cuMemAllocAsync
    managed = 7,         // cuMemAllocManaged
    managed_pool = 8,    // a managed pool (CUDA 13)
    graph = 9,           // owned by a captured graph
    vmm = 10,            // cuMemCreate + cuMemMap
    host_numa = 11,      // host memory bound to a NUMA node
    imported = 12,       // memory of a GPU that another process exported: import_memory()
};
inline constexpr int memory_kind_count = 13;

// "write_combined"; "unknown" for a value outside the enumeration.
ISTHMUS_API std::string_view name(MemoryKind kind) noexcept;

}  // namespace v0
}  // namespace isthmus
