// SPDX-License-Identifier: Apache-2.0
// The four axes. If two attributes contradict each other, the weaker reading applies: it is valid under both.
#include "axes.hpp"

namespace isthmus::platform {

Translation translation_of(const Capabilities& c) noexcept {
    if (!c.has(Feature::pageable_access)) return Translation::none;
    return c.has(Feature::host_page_tables) ? Translation::host_page_tables : Translation::hmm;
}

MemoryModel memory_of(const Capabilities& c) noexcept {
    if (c.has(Feature::integrated)) return MemoryModel::shared_dram;
    if (c.gpu_numa_node >= 0) return MemoryModel::coherent_node;
    // Coherent, and no node of the system: CDMM. CoherentGPUMemoryMode of the driver's parameters says no more: newer
    // drivers switch CDMM on where it is unset, and a PCIe GPU beside a coherent one reads the same value.
    const bool coherent = translation_of(c) == Translation::host_page_tables;
    return coherent ? MemoryModel::coherent_hidden : MemoryModel::separate;
}

ManagedModel managed_of(const Capabilities& c) noexcept {
    if (!c.has(Feature::managed)) return ManagedModel::none;
    // 89=0 forbids every CPU access during a kernel, whatever attribute 101 says.
    if (!c.has(Feature::concurrent_managed)) return ManagedModel::phase_guarded;
    return c.has(Feature::direct_managed) ? ManagedModel::direct : ManagedModel::concurrent;
}

LinkAtomics link_atomics_of(const Capabilities& c) noexcept {
    // If a driver claims both, "only some" is the weaker claim.
    if (c.has(Feature::partial_atomics)) return LinkAtomics::partial;
    return c.has(Feature::native_atomics) ? LinkAtomics::native : LinkAtomics::none;
}

}  // namespace isthmus::platform
