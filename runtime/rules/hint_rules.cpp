// SPDX-License-Identifier: Apache-2.0
// What prefetches and advice achieve on each machine.
#include "hint_rules.hpp"

namespace isthmus::rules {
namespace {

HintPlan none(HintOutcome outcome, std::string_view reason) {
    return {HintAction::none, {outcome, reason}};
}
HintPlan act(HintAction action, std::string_view reason) {
    return {action, {HintOutcome::done, reason}};
}

bool is_managed(MemoryKind kind) {
    return kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
}

// Checks for prefetches and advice alike. HintAction::tell: pass the hint to the driver.
HintPlan common(const Capabilities& device, MemoryKind kind) {
    if (device.memory == MemoryModel::host) {
        return none(HintOutcome::not_needed, "the CPU device has host memory only: nothing moves");
    }
    switch (kind) {
        case MemoryKind::managed:
        case MemoryKind::managed_pool:
            if (device.managed == ManagedModel::none) {
                return none(HintOutcome::unsupported, "the device has no managed memory");
            }
            break;
        case MemoryKind::host:
        case MemoryKind::host_numa:
            if (device.translation == Translation::none) {
                return none(HintOutcome::unsupported, "the device does not reach pageable memory");
            }
            break;
        case MemoryKind::pinned:
        case MemoryKind::registered:
        case MemoryKind::write_combined: return none(HintOutcome::not_needed, "page-locked memory stays where it is");
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::graph: return none(HintOutcome::not_needed, "device memory is where its device finds it");
        case MemoryKind::unknown:
        case MemoryKind::vmm:
        case MemoryKind::imported:
            return none(HintOutcome::unsupported, "drivers take hints for managed and pageable memory only");
    }
    if (device.memory == MemoryModel::shared_dram &&
        !(is_managed(kind) && device.managed == ManagedModel::phase_guarded)) {
        return none(HintOutcome::not_needed, "CPU and GPU share one DRAM: nothing would move");
    }
    return act(HintAction::tell, "the driver was told");
}

}  // namespace

HintPlan plan_prefetch(const Capabilities& device, const HintQuestion& question) {
    if (question.path == LaunchPath::stage) {
        if (!question.own) return none(HintOutcome::unsupported, "the buffer is staged for another device");
        if (question.to_host) return none(HintOutcome::unsupported, "staged content comes down when a view opens");
        return act(HintAction::upload, "the device's side was brought up to date");
    }
    const HintPlan plan = common(device, question.kind);
    if (plan.action != HintAction::tell || !is_managed(question.kind)) return plan;
    if (device.managed != ManagedModel::phase_guarded) return plan;
    if (question.kind == MemoryKind::managed_pool) {
        return none(HintOutcome::unsupported, "a managed pool cannot be attached");
    }
    if (!question.own) return none(HintOutcome::unsupported, "managed memory is attached on its own device only here");
    if (question.to_host) return act(HintAction::detach, "attached back to the host: what a prefetch is here");
    return act(HintAction::attach, "attached to the stream: what a prefetch is here");
}

HintPlan plan_advice(const Capabilities& device, MemoryKind kind, bool staged) {
    if (staged) return none(HintOutcome::unsupported, "a staged buffer is two memories that stay where they are");
    const HintPlan plan = common(device, kind);
    if (plan.action == HintAction::tell && is_managed(kind) && device.managed == ManagedModel::phase_guarded) {
        return none(HintOutcome::unsupported, "the device shares managed memory by phases and takes no advice");
    }
    return plan;
}

HintPlan plan_advice_query(const Capabilities& device, MemoryKind kind, bool staged) {
    const HintPlan plan = plan_advice(device, kind, staged);
    if (plan.action != HintAction::tell) return plan;
    if (!is_managed(kind)) return none(HintOutcome::unsupported, "drivers tell the advice for managed memory only");
    return act(HintAction::tell, "the driver was asked");
}

HintPlan plan_discard(const Capabilities& device, MemoryKind kind, bool staged, bool shares_pages) {
    if (staged) return none(HintOutcome::unsupported, "a staged buffer is two memories that keep their content");
    const HintPlan plan = common(device, kind);
    if (plan.action == HintAction::tell && is_managed(kind) && device.managed == ManagedModel::phase_guarded) {
        return none(HintOutcome::unsupported, "the device shares managed memory by phases and discards none");
    }
    if (plan.action == HintAction::tell && shares_pages) {
        return none(HintOutcome::not_needed, "it shares its pages with other buffers: nothing would be saved");
    }
    return plan;
}

}  // namespace isthmus::rules
