// SPDX-License-Identifier: Apache-2.0
// What the scenarios of multicast objects share.
#pragma once

#include "scenario.hpp"

#include <isthmus/mapping/multicast.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace conformance {

using Devices = std::vector<const Device*>;

inline Devices taking_part() {
    Devices found;
    for (const Device& device : all_devices()) {
        if (isthmus::can_multicast(device)) found.push_back(&device);
    }
    return found;
}

// A refusal leaves the group unchanged.
inline Result<MulticastObject> complete(MulticastGroup& group, std::size_t elsewhere = 0) {
    return std::move(group).complete(elsewhere);
}

inline std::size_t granule_of(const Device& device, std::size_t devices) {
    return isthmus::multicast_granularity(device, devices).value().minimum_bytes;
}

}  // namespace conformance
