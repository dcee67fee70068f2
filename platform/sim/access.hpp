// SPDX-License-Identifier: Apache-2.0
// Decides which memory may be accessed at the moment: by GPU work according to provenance and the machine's facts, by
// the CPU according to the phases of managed memory.
#pragma once

#include "driver.hpp"

#include <cstddef>
#include <string>

namespace isthmus::sim {

struct GpuAgent {
    int device = -1;
    const Context* context = nullptr;
    engine::StreamId stream = engine::StreamId::none;
};

struct GpuAccess {
    bool allowed = false;
    void* pointer = nullptr;  // address for the worker
    std::string reason;       // the fact that forbids the access
};
// Requires the driver's mutex.
GpuAccess check_gpu_access(const Driver& d, const GpuAgent& agent, Address address, std::size_t bytes, bool writes);

// Whether the device may access memory of another device or of a pool; empty: it may, or no device owns the memory.
// Requires the driver's mutex.
std::string check_reach(const Region& region, const GpuAgent& agent, bool writes);

// One side of a copy or fill. The driver refuses ranges that leave an allocation, and, where a device address is
// required, unknown addresses.
struct CopySide {
    Result code = result::ok;
    void* pointer = nullptr;
    bool pageable = false;  // the driver does not know the memory
    Region* region = nullptr;
};
CopySide check_copy_side(const Driver& d, int device, Address address, std::size_t bytes, bool device_address);

// For devices with attribute 89 = 0: closes managed memory to the CPU until the host has observed the end of all work
// that may use it, then opens it. Called after work was submitted and after every successful synchronisation.
void update_managed_access(Driver& d);

}  // namespace isthmus::sim
