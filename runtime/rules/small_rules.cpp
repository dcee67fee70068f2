// SPDX-License-Identifier: Apache-2.0
// The rules of small memory.
#include "small_rules.hpp"

#include "cache_rules.hpp"

namespace isthmus::rules {
namespace {

bool is_divisible(const Capabilities& device, MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::pinned:
        case MemoryKind::registered:
        case MemoryKind::host:
        case MemoryKind::host_numa: return true;
        case MemoryKind::managed: return device.managed != ManagedModel::phase_guarded;
        default: return false;
    }
}

bool is_plain(MemoryKind kind, const HostPlacement& placement) noexcept {
    const bool of_the_system = kind == MemoryKind::host || kind == MemoryKind::host_numa;
    const bool anywhere = placement.locality == Locality::anywhere || placement.locality == Locality::unbound;
    if (of_the_system && !anywhere) return false;
    return placement.page_size == PageSize::ordinary;
}

}  // namespace

std::size_t small_place(const Capabilities& device, MemoryKind kind, const HostPlacement& placement, std::size_t bytes,
                        std::size_t alignment) noexcept {
    if (bytes == 0 || bytes >= largest_place || alignment > place_step) return 0;
    if (!is_divisible(device, kind) || !may_be_kept(kind, placement) || !is_plain(kind, placement)) return 0;
    return place_for(bytes);
}

}  // namespace isthmus::rules
