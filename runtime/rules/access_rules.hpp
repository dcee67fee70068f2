// capabilities × kind × agent → verdict. Pure; the one place that knows who may touch what.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>
#include <span>

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
// May `device` touch memory that somebody else in the process obtained, and that the driver told the kind of?
// `own`: it is this device's. Another device's is never a plain "no": whoever obtained it may have opened it too.
AccessAnswer foreign_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, bool own,
                            PeerState state);
// Memory in any host kind given by an address, where the device may know it by another one (K23).
struct AddressForm {
    bool device_address = false;  // it is what the device calls host memory
    bool foreign = false;         // the driver told the kind: registered memory passes for pinned memory
};
AccessAnswer by_address(const Capabilities& device, MemoryKind kind, AddressForm form, AccessAnswer by_kind);

// What holds for memory in general between two devices (A14): coarse, because it knows neither kind nor provenance.
// `allocates`: what the other device's current allocator gives.
AccessAnswer pair_access(const Capabilities& device, const Capabilities& other, bool same, MemoryKind allocates,
                         PeerState state);
// Several parts at once: yes only where all are; else the first "no", else the first "not verified" (A13).
AccessAnswer combine(std::span<const AccessAnswer> parts);

// Memory of a stream-ordered pool: given back in the order of a stream.
constexpr bool is_pooled(MemoryKind kind) noexcept {
    return kind == MemoryKind::pool || kind == MemoryKind::managed_pool;
}
// May the CPU find it at all? Whether it may touch it now depends on the machine.
constexpr bool host_finds(MemoryKind kind) noexcept {
    return kind != MemoryKind::device && kind != MemoryKind::pool && kind != MemoryKind::imported;
}

// device_access() for every kind as bits (1 << kind), made once per device: what a launch reads.
std::uint32_t reachable_kinds(const Capabilities& device);

}  // namespace isthmus::rules
