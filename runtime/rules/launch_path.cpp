// SPDX-License-Identifier: Apache-2.0
// Whether a launch passes, attaches, prefetches, stages or refuses an argument of each kind.
#include "launch_path.hpp"

#include "access_rules.hpp"

#include <platform/capability_table.hpp>

namespace isthmus::rules {

namespace {

bool is_managed(MemoryKind kind) {
    return kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
}

}  // namespace

PathAnswer launch_path(const Capabilities& device, MemoryKind kind) {
    if (is_managed(kind) && device.managed == ManagedModel::phase_guarded) {
        // A managed pool has no attachment (cuStreamAttachMemAsync takes managed allocations only).
        if (kind == MemoryKind::managed_pool) {
            return {LaunchPath::refuse,
                    "a managed pool cannot be attached, and this GPU shares managed memory by phases"};
        }
        return {LaunchPath::attach,
                "managed memory belongs to one side at a time here: attached to the stream, then back to the host"};
    }
    const AccessAnswer answer = device_access(device, kind);
    // Not for managed pools: the effect of a prefetch on them was never observed.
    const platform::Prefetching prefetching = platform::traits_of(device).prefetching.value;
    if (kind == MemoryKind::managed && answer && prefetching == platform::Prefetching::after_host) {
        return {LaunchPath::prefetch,
                "used in place; pages that the host touched since are brought to the device by one prefetch"};
    }
    if (kind == MemoryKind::managed && answer && prefetching == platform::Prefetching::first_use) {
        return {LaunchPath::prefetch, "used in place; one prefetch before the first use gives it its pages", true};
    }
    switch (answer.verdict) {
        case Verdict::yes: return {LaunchPath::pass, "the device uses this memory in place"};
        case Verdict::not_verified: return {LaunchPath::pass, "nothing is known against it; it is passed as it is"};
        case Verdict::no: break;
    }
    // Host memory can be copied around the launch. Managed and imported memory is refused: a device without support for
    // it cannot have any.
    if (is_managed(kind) || kind == MemoryKind::imported) return {LaunchPath::refuse, answer.reason};
    return {LaunchPath::stage, "the device cannot reach this host memory: it is copied around the launch"};
}

}  // namespace isthmus::rules
