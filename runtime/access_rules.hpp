// capabilities × kind × agent → verdict. Pure; the one place that knows who may touch what.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>

namespace isthmus::rules {

// What the runtime knows about the path between two devices; only it can (recorded when it switches them).
struct PeerState {
    bool peer_access = false;
    bool pool_access = false;
};

// May the CPU touch memory of this kind owned by a device with these capabilities (outside any view)?
AccessAnswer host_access(const Capabilities& owner, MemoryKind kind);
// May a device touch memory of this kind that it owns, or, for host kinds, that this runtime allocated?
AccessAnswer device_access(const Capabilities& device, MemoryKind kind);
// May `device` touch memory of this kind owned by another device?
AccessAnswer peer_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, PeerState state);

// device_access() for every kind as bits (1 << kind), made once per device: what a launch reads.
std::uint32_t reachable_kinds(const Capabilities& device);

}  // namespace isthmus::rules
