// SPDX-License-Identifier: Apache-2.0
// Who may touch which memory at the moment: GPU work by provenance and the machine's facts, the CPU by phases of
// managed memory.
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
    void* pointer = nullptr;  // where a worker finds it
    std::string reason;       // which fact refused it
};
// Takes the driver's mutex as held.
GpuAccess check_gpu_access(const Driver& d, const GpuAgent& agent, Address address, std::size_t bytes, bool writes);

// Whether the device reaches another's memory, or a pool's; empty: it does, or the memory is of no device. Takes the
// driver's mutex as held.
std::string check_reach(const Region& region, const GpuAgent& agent, bool writes);

// One side of a copy or fill. The driver refuses ranges that leave an allocation, and, where a device address is
// asked for, addresses that it does not know.
struct CopySide {
    Result code = result::ok;
    void* pointer = nullptr;
    bool pageable = false;  // the driver does not know the memory
    Region* region = nullptr;
};
CopySide check_copy_side(const Driver& d, int device, Address address, std::size_t bytes, bool device_address);

// Where attribute 89 is 0: closes managed memory to the CPU while work that may use it has not been observed to end,
// and opens it again. Called after work was put into a stream and after every successful synchronisation.
void update_managed_access(Driver& d);

}  // namespace isthmus::sim
