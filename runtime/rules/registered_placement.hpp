// SPDX-License-Identifier: Apache-2.0
// Placement of memory that will be registered. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/placement.hpp>

namespace isthmus::rules {

// Where the GPU uses the CPU's page tables (attribute 100), registering locks no pages (CUDA for Tegra, and the
// driver's description of that attribute): the pages are touched and locked before, and verified again afterwards
// (platform::os::HostPages::verify_again). Elsewhere the driver pins them itself.
inline HostPlacement placement_to_register(const Capabilities& device, HostPlacement placement) {
    if (device.has(Feature::host_page_tables)) placement.prefault = placement.lock = true;
    return placement;
}

}  // namespace isthmus::rules
