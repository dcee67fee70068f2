// SPDX-License-Identifier: Apache-2.0
// Access verdicts: one answer per agent and memory kind, computed from capability bits and axes alone. Sources: the
// documentation of the attributes and, for device memory, observation (a CPU load from it faults on H200, Thor and GB10
// alike).
#include "access_rules.hpp"

namespace isthmus::rules {

namespace {

using Text = std::string_view;

AccessAnswer yes(Text reason) {
    return {Verdict::yes, reason, {}};
}
AccessAnswer no(Text reason, Text remedy) {
    return {Verdict::no, reason, remedy};
}
AccessAnswer unknown(Text reason, Text remedy) {
    return {Verdict::not_verified, reason, remedy};
}

bool is_cpu(const Capabilities& c) {
    return c.memory == MemoryModel::host;
}

AccessAnswer foreign() {
    return unknown("nothing is known about how this memory was obtained",
                   "allocate it through the runtime, or copy it into a buffer of the runtime");
}
AccessAnswer mapped_by_range() {
    return unknown("access to such memory is granted per range and device (cuMemSetAccess), not by its kind",
                   "ask the mapping, or grant access to the range first");
}

// Ordinary host memory, which the system allocated without the driver.
AccessAnswer device_to_pageable(const Capabilities& device) {
    switch (device.translation) {
        case Translation::host_page_tables:
            return yes("the GPU uses the CPU's page tables (attributes 88 and 100 are 1)");
        case Translation::hmm: return yes("the kernel migrates ordinary host memory for the GPU (attribute 88 is 1)");
        case Translation::none: break;
    }
    return no("the GPU faults on ordinary host memory (PAGEABLE_MEMORY_ACCESS, attribute 88, is 0)",
              "use pinned or registered memory, or allocate_shared");
}

AccessAnswer device_to_pinned(const Capabilities& device) {
    if (device.has(Feature::unified_addressing)) {
        return yes("pinned memory is mapped for every GPU with unified addressing (attribute 41 is 1)");
    }
    return no("without unified addressing (attribute 41 is 0) the GPU does not know the host's addresses",
              "copy into device memory");
}

AccessAnswer device_to_registered(const Capabilities& device) {
    if (!device.has(Feature::host_register)) {
        return no("this GPU cannot use registered memory (HOST_REGISTER_SUPPORTED, attribute 99, is 0)",
                  "use pinned memory");
    }
    if (!device.has(Feature::unified_addressing)) return device_to_pinned(device);
    return yes("registered memory is mapped for the GPU (attributes 41 and 99 are 1)");
}

AccessAnswer device_to_managed(const Capabilities& device) {
    if (device.has(Feature::managed)) return yes("this GPU supports managed memory (attribute 83 is 1)");
    return no("this device does not support managed memory (MANAGED_MEMORY, attribute 83, is not 1)",
              "use pinned memory, or allocate_shared");
}

AccessAnswer host_to_managed(const Capabilities& owner) {
    switch (owner.managed) {
        case ManagedModel::direct:
            return yes("CPU and GPU share managed memory at any time, in place (attributes 89 and 101 are 1)");
        case ManagedModel::concurrent:
            return yes("CPU and GPU may touch managed memory at the same time (attribute 89 is 1)");
        case ManagedModel::phase_guarded:
            return no("while any kernel runs, the CPU may touch no managed memory (attribute 89 is 0)",
                      "open a host view, which waits and attaches the memory to the host; or use pinned memory");
        case ManagedModel::none: break;
    }
    return no("the owner does not support managed memory (MANAGED_MEMORY, attribute 83, is not 1)",
              "use pinned memory, or allocate_shared");
}

AccessAnswer by_cpu_device(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::unknown: return foreign();
        case MemoryKind::managed:
        case MemoryKind::managed_pool:
            return no("the CPU device has no managed memory: nothing migrates", "use host memory, or allocate_shared");
        case MemoryKind::vmm: return mapped_by_range();
        case MemoryKind::imported:
            return no("the CPU device imports shared memory of the host, which is host memory; no memory of a GPU",
                      "share it as memory that CPUs see (ExportableOptions::seen_by)");
        default: return yes("the CPU device's memory is host memory");
    }
}

}  // namespace

AccessAnswer host_access(const Capabilities& owner, MemoryKind kind) {
    switch (kind) {
        case MemoryKind::unknown: return foreign();
        case MemoryKind::host:
        case MemoryKind::host_numa: return yes("it is ordinary host memory");
        case MemoryKind::pinned:
        case MemoryKind::registered: return yes("it is host memory, locked in place for the GPU");
        case MemoryKind::write_combined:
            return yes("it is host memory for writing; reading it is lawful and very slow");
        // The vendor's guide calls device memory CPU-readable where attribute 100 is 1. On GB10 and Thor an access
        // faults nevertheless.
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::graph:
            return no("a CPU access to device memory faults; no platform promises it",
                      "copy to host memory, or allocate_shared and open a host view");
        case MemoryKind::managed:
        case MemoryKind::managed_pool: return host_to_managed(owner);
        case MemoryKind::vmm: return mapped_by_range();
        case MemoryKind::imported:
            return no("it is memory of a GPU, which another process exported: a CPU access faults",
                      "copy it to host memory, or share memory that CPUs see (ExportableOptions::seen_by)");
    }
    return foreign();
}

AccessAnswer device_access(const Capabilities& device, MemoryKind kind) {
    if (is_cpu(device)) return by_cpu_device(kind);
    switch (kind) {
        case MemoryKind::unknown: return foreign();
        case MemoryKind::host:
        case MemoryKind::host_numa: return device_to_pageable(device);
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return device_to_pinned(device);
        case MemoryKind::registered: return device_to_registered(device);
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::graph: return yes("it is this device's own memory");
        case MemoryKind::managed:
        case MemoryKind::managed_pool: return device_to_managed(device);
        case MemoryKind::vmm: return mapped_by_range();
        case MemoryKind::imported: return yes("another process's memory, which was opened for this device");
    }
    return foreign();
}

AccessAnswer peer_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, PeerState state) {
    if (is_cpu(device)) return host_access(owner, kind);
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::imported:
            if (is_cpu(owner)) return device_to_pageable(device);
            if (state.peer_access) return yes("peer access to the owner is enabled");
            return no("peer access to the owner is not enabled", "enable peer access, or copy between the devices");
        case MemoryKind::pool:
        case MemoryKind::graph:
            if (is_cpu(owner)) return device_to_pageable(device);
            if (state.pool_access) return yes("access to the owner's pool is enabled");
            return no("access to the owner's pool is not enabled; peer access alone does not open a pool",
                      "enable pool access for this device, or copy between the devices");
        default: return device_access(device, kind);
    }
}

AccessAnswer foreign_access(const Capabilities& device, const Capabilities& owner, MemoryKind kind, bool own,
                            PeerState state) {
    const bool by_peer_access = kind == MemoryKind::device || kind == MemoryKind::imported;
    const bool on_device = by_peer_access || kind == MemoryKind::pool || kind == MemoryKind::graph;
    if (is_cpu(device)) return host_access(owner, kind);
    if (!on_device) return device_access(device, kind);
    if (own) return yes("the driver says that it is this device's own memory");
    if (by_peer_access && state.peer_access) return yes("peer access to its device is enabled");
    if (by_peer_access) {
        return unknown(
            "it is another device's memory, which this runtime did not allocate; peer access was not enabled "
            "through this runtime",
            "enable peer access with Device::enable_peer_access, or copy between the devices");
    }
    return unknown(
        "it belongs to a pool of another device that this runtime did not make: no query says which devices may "
        "touch it",
        "allocate it through the runtime, or copy between the devices");
}

AccessAnswer by_address(const Capabilities& device, MemoryKind kind, AddressForm form, AccessAnswer by_kind) {
    const bool two_names = kind == MemoryKind::registered || kind == MemoryKind::write_combined ||
                           (kind == MemoryKind::pinned && form.foreign);
    if (!two_names || by_kind.verdict != Verdict::yes) return by_kind;
    if (is_cpu(device)) {
        if (!form.device_address) return by_kind;
        return no("it is the device's address of host memory, which the CPU knows by another one",
                  "pass the Buffer, which knows both addresses, or the host's address");
    }
    if (form.device_address) return by_kind;
    if (kind != MemoryKind::write_combined) {
        // A GPU that reaches pageable memory can use the host's address of registered memory too.
        if (device.has(Feature::registered_same_pointer) || device.has(Feature::pageable_access)) return by_kind;
        if (form.foreign) {
            return unknown(
                "the driver does not tell pinned from registered memory, and the latter has another address on "
                "this device (attribute 91 is 0)",
                "pass what cuMemHostGetDevicePointer answers, or copy it into a buffer of the runtime");
        }
        return no("registered memory has another address on this device (attribute 91 is 0)",
                  "pass the Buffer, which knows both addresses");
    }
    return unknown("write-combined memory may have another address on the device", "pass the Buffer, which knows both");
}

AccessAnswer pair_access(const Capabilities& device, const Capabilities& other, bool same, MemoryKind allocates,
                         PeerState state) {
    if (same) return yes("it is the same device");
    if (is_cpu(other)) return device_to_pageable(device);
    if (is_cpu(device)) {
        return no("the CPU reaches no memory that GPUs allocate; managed and pinned memory are asked about by buffer",
                  "ask about a buffer, or copy to host memory");
    }
    return peer_access(device, other, allocates == MemoryKind::pool ? MemoryKind::pool : MemoryKind::device, state);
}

GrantBar grant_bar(Grant what, const GrantFacts& facts) noexcept {
    if (!facts.same_runtime) return GrantBar::runtime;
    // A device's access to its own pools exists from the start, and allowing it again succeeds.
    if (facts.same_device) return what == Grant::pool ? GrantBar::none : GrantBar::same_device;
    if (facts.with_cpu) return GrantBar::cpu;
    if (!facts.can_switch) return GrantBar::no_calls;
    if (what == Grant::pool && !facts.owner_has_pools) return GrantBar::no_pools;
    if (facts.enabled) return GrantBar::none;
    switch (facts.link) {
        case GrantFacts::Link::unasked: return GrantBar::link_unasked;
        case GrantFacts::Link::none: return GrantBar::no_link;
        case GrantFacts::Link::direct: break;
    }
    return GrantBar::none;
}

AccessAnswer grant_answer(Grant what, const GrantFacts& facts) {
    switch (grant_bar(what, facts)) {
        case GrantBar::none:
            if (facts.same_device) return yes("it is the same device");
            if (facts.enabled) return yes("it is enabled already");
            return yes("the driver says that the device reaches the other one's memory (cuDeviceCanAccessPeer)");
        case GrantBar::runtime:
            return no("the devices belong to two runtimes", "open one Runtime and take both devices from it");
        case GrantBar::same_device:
            return no("it is the same device, whose access to its own memory is not switched", "name another device");
        case GrantBar::cpu:
            return no("access between CPU and GPU is not switched",
                      "ask can_access(buffer), and use allocate_shared for memory that both sides use");
        case GrantBar::no_calls: return no("this device's driver cannot switch access", "copy between the devices");
        case GrantBar::no_pools:
            return no("the owner has no pools (MEMORY_POOLS_SUPPORTED, attribute 115, is not 1)",
                      "enable peer access, and allocate device memory");
        case GrantBar::no_link:
            return no("no link between the devices carries it (cuDeviceCanAccessPeer)",
                      "copy between the devices; the driver goes through host memory where it must");
        case GrantBar::link_unasked: break;
    }
    return unknown("the driver was not asked, or did not answer, whether a link carries it",
                   "ask again on a device that works, outside of host functions and forked children");
}

AccessAnswer combine(std::span<const AccessAnswer> parts) {
    AccessAnswer weakest = yes("every part is accessible");
    for (std::size_t at = 0; at < parts.size(); ++at) {
        const bool first_doubt = weakest && parts[at].verdict == Verdict::not_verified;
        const bool first_no = weakest.verdict != Verdict::no && parts[at].verdict == Verdict::no;
        if (!first_doubt && !first_no) continue;
        weakest = parts[at];
        weakest.part = static_cast<int>(at);
    }
    return weakest;
}

std::uint32_t reachable_kinds(const Capabilities& device) {
    std::uint32_t bits = 0;
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        if (device_access(device, static_cast<MemoryKind>(kind))) bits |= 1u << kind;
    }
    return bits;
}

}  // namespace isthmus::rules
