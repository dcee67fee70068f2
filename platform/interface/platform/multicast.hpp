// SPDX-License-Identifier: Apache-2.0
// The facet of multicast objects: one range of virtual memory that stands for memory of several devices. It is created,
// joined by every device of its team, bound to memory of each, and mapped like other memory (virtual_memory.hpp also
// releases, maps and exports it). Absent if the device does not support it (attribute 132). A driver waits in bind and
// map until all devices have joined, so the runtime keeps that order.
#pragma once

#include <platform/virtual_memory.hpp>

#include <cstddef>

namespace isthmus::platform {

struct TeamRequest {
    std::size_t devices = 0;
    std::size_t bytes = 0;  // a multiple of the granularity
    ExportKinds exports = ExportKinds::none;
};

class Multicast {
public:
    virtual ~Multicast() = default;
    virtual Status granularity(const TeamRequest& request, Granularity& out) = 0;
    virtual Status create(const TeamRequest& request, PhysicalHandle& out) = 0;
    // Adds this device to the team.
    virtual Status add_device(PhysicalHandle team) = 0;
    // Binds this device's memory from byte `memory_offset` at byte `offset` of the object. Waits for the team.
    virtual Status bind(PhysicalHandle team, std::size_t offset, PhysicalHandle memory, std::size_t memory_offset,
                        std::size_t bytes) = 0;
    // The same for memory that is mapped at `address`.
    virtual Status bind_address(PhysicalHandle /*team*/, std::size_t /*offset*/, std::uint64_t /*address*/,
                                std::size_t /*bytes*/) {
        return {Code::unsupported, 0, "cuMulticastBindAddr"};
    }
    // Unbinds the whole range that this device bound there.
    virtual Status unbind(PhysicalHandle team, std::size_t offset, std::size_t bytes) = 0;
};

}  // namespace isthmus::platform
