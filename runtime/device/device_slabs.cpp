// SPDX-License-Identifier: Apache-2.0
// DeviceSlabs: one set of slabs per requested placement, found by linear search because placements are few.
#include "device_slabs.hpp"

#include "cache_rules.hpp"
#include "device_session.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
std::shared_ptr<HostSlabs> DeviceSlabs::of(const DeviceSession& device, const HostPlacement& placement) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, slabs] : sets_) {
        if (rules::same_placement(known, placement)) return slabs;
    }
    SlabOptions options;
    options.placement = placement;
    options.near_node = device.capabilities.host_numa_node;
    options.machine = device.config->machine;
    sets_.emplace_back(placement, std::make_shared<HostSlabs>(std::move(options)));
    return sets_.back().second;
}

std::size_t DeviceSlabs::trim() const {
    std::vector<std::shared_ptr<HostSlabs>> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [placement, slabs] : sets_) all.push_back(slabs);
    }
    std::size_t given_back = 0;
    for (const std::shared_ptr<HostSlabs>& slabs : all) given_back += slabs->trim();
    return given_back;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
