// SPDX-License-Identifier: Apache-2.0
// capabilities × kind × agent → verdict. Pure. The only place that decides which agent may access which memory.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>
#include <span>

namespace isthmus::rules {

// Access between two devices, as the runtime recorded it when it switched the access; no other source reports it.
struct PeerState {
    bool peer_access = false;
    bool pool_access = false;
};

// May the CPU access memory of this kind, owned by a device with these capabilities, outside any view?
AccessAnswer host_access(const Capabilities& owner, MemoryKind kind);
// May a device access memory of this kind that it owns or, for host kinds, that this runtime allocated?
AccessAnswer device_access(const Capabilities& device, MemoryKind kind);
// May `device` access memory of this kind owned by another device?
AccessAnswer peer_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, PeerState state);
// May `device` access memory that other code in the process obtained, and whose kind the driver reported? `own`: the
// memory is this device's. Another device's memory is never a plain "no": the code that obtained it may have enabled
// access.
AccessAnswer foreign_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, bool own,
                            PeerState state);
// Host memory given by an address; the device may use another address for it (K23).
struct AddressForm {
    bool device_address = false;  // the address is the device address of host memory
    bool foreign = false;         // the kind is the driver's answer, which reports registered memory as pinned
};
AccessAnswer by_address(const Capabilities& device, MemoryKind kind, AddressForm form, AccessAnswer by_kind);

// The general answer for memory between two devices (A14). Coarse, because it considers neither kind nor provenance.
// `allocates`: the kind of the other device's current allocator.
AccessAnswer pair_access(const Capabilities& device, const Capabilities& other, bool same, MemoryKind allocates,
                         PeerState state);
// Whether access between two devices can be enabled, by what is known of them.
struct GrantFacts {
    enum class Link : std::uint8_t { unasked, none, direct };
    bool same_runtime = true;
    bool same_device = false;
    bool with_cpu = false;   // one of them is the CPU device
    bool can_switch = true;  // the device's driver has the calls
    bool owner_has_pools = true;
    bool enabled = false;       // already, by what the runtime recorded
    Link link = Link::unasked;  // the driver's answer
};
enum class Grant : std::uint8_t { peer, pool };  // access to device memory, or to a pool
// The first fact that forbids it. link_unasked: nothing else does, and the driver's answer is missing.
enum class GrantBar : std::uint8_t { none, runtime, same_device, cpu, no_calls, no_pools, link_unasked, no_link };
GrantBar grant_bar(Grant what, const GrantFacts& facts) noexcept;
AccessAnswer grant_answer(Grant what, const GrantFacts& facts);

// Several parts together: yes only if all are yes; otherwise the first "no", otherwise the first "not verified" (A13).
AccessAnswer combine(std::span<const AccessAnswer> parts);

// Memory of a stream-ordered pool: freed in stream order.
constexpr bool is_pooled(MemoryKind kind) noexcept {
    return kind == MemoryKind::pool || kind == MemoryKind::managed_pool;
}
// Does memory of this kind have an address for the CPU? Whether the CPU may access it at the moment depends on the
// machine.
constexpr bool host_finds(MemoryKind kind) noexcept {
    return kind != MemoryKind::device && kind != MemoryKind::pool && kind != MemoryKind::imported;
}

// device_access() for every kind, as bits (1 << kind). Computed once per device; launches read it.
std::uint32_t reachable_kinds(const Capabilities& device);

}  // namespace isthmus::rules
