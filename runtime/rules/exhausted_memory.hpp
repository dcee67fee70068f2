// SPDX-License-Identifier: Apache-2.0
// Whose free bytes an allocation's refusal names.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

namespace isthmus::rules {

// Does memory of this kind come out of the host's memory? Managed memory is limited by the device's, except where both
// have one DRAM.
constexpr bool takes_host_memory(MemoryKind kind, MemoryModel memory) noexcept {
    if (memory == MemoryModel::shared_dram || memory == MemoryModel::host) return true;
    return kind == MemoryKind::host || kind == MemoryKind::host_numa || kind == MemoryKind::pinned ||
           kind == MemoryKind::write_combined || kind == MemoryKind::registered;
}

}  // namespace isthmus::rules
