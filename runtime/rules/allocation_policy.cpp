// SPDX-License-Identifier: Apache-2.0
// Which memory a shared buffer gets. The row states what is best on the machine; the capability bits state what is
// possible. Each choice has a reason, one sentence for the user.
#include "allocation_policy.hpp"

#include "access_rules.hpp"
#include "atomic_rules.hpp"
#include "composed.hpp"
#include "launch_path.hpp"
#include "rules_errors.hpp"

#include <platform/capability_table.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace isthmus::rules {

namespace {

using Text = std::string_view;

bool is_cpu(const Capabilities& c) {
    return c.memory == MemoryModel::host;
}
bool reads(Use use) {
    return use == Use::reads_once || use == Use::reads_often || use == Use::reads_and_writes;
}

AllocationPlan in_place(MemoryKind kind, Text reason) {
    AllocationPlan plan;
    plan.kind = plan.host_kind = kind;
    plan.reason = reason;
    return plan;
}
// Copies go through pinned memory: copies of pageable memory reach a fifth of its speed (H200: 9.6 of 51 GB/s).
AllocationPlan staged(MemoryKind kind, Text reason) {
    AllocationPlan plan;
    plan.kind = kind;
    plan.path = LaunchPath::stage;
    plan.host_kind = MemoryKind::pinned;
    plan.reason = reason;
    return plan;
}

// The driver chooses where pinned memory is placed. A requested locality therefore gets pages that are bound to the
// node and then registered.
bool has_place(const Capabilities& device, const SharedUse& use) {
    return use.placement.locality != Locality::anywhere && device.has(Feature::host_register) &&
           device_access(device, MemoryKind::registered);
}
AllocationPlan placed(const Capabilities& device, const SharedUse& use, AllocationPlan plan) {
    if (!has_place(device, use)) return plan;
    if (plan.kind == MemoryKind::pinned) {
        return in_place(MemoryKind::registered,
                        "the caller says where it lies: host memory bound there, registered, and used in place");
    }
    if (plan.path == LaunchPath::stage) plan.host_kind = MemoryKind::registered;
    return plan;
}

bool is_ordinary_host(MemoryKind kind) {
    return kind == MemoryKind::host || kind == MemoryKind::host_numa;
}

// Places host memory near the device where the row gains by it and the caller requested no locality.
HostPlacement placement_for(const platform::Row& row, const SharedUse& use, MemoryKind kind) {
    HostPlacement placement = use.placement;
    // For a staged buffer `kind` is the memory of the host's side.
    const bool ours = is_ordinary_host(kind) || kind == MemoryKind::registered;
    if (ours && placement.locality == Locality::anywhere && row.near_device.value) {
        placement.locality = Locality::near_device;
    }
    return placement;
}

Text in_place_reason(const Capabilities& device, MemoryKind kind) {
    if (kind == MemoryKind::host) {
        return device.memory == MemoryModel::shared_dram
                   ? "the GPU shares this DRAM and the CPU's page tables: ordinary memory, near the device, in place"
                   : "the link is coherent: ordinary CPU memory, near the device, read in place by the GPU";
    }
    if (kind == MemoryKind::registered) {
        return "latency matters: host memory near the device, registered, so that neither side meets a page fault";
    }
    return device.memory == MemoryModel::shared_dram
               ? "CPU and GPU share one DRAM: pinned memory is used in place, with predictable cost"
               : "the device uses pinned memory in place";
}

// Reasons for both sides of the size limit.
struct SizeReasons {
    std::string from;
    std::string below;
};
SizeReasons reasons_for(Use use, std::size_t least) {
    const auto what = [use]() -> std::string {
        switch (use) {
            case Use::reads_once: return "the device reads each byte once, and ";
            case Use::writes_once: return "the device writes each byte once, and ";
            case Use::reads_often: return "the device reads the data often, and ";
            case Use::writes_often: return "the device writes the data often, and ";
            default: return "the device reads and writes the data, and ";
        }
    };
    const std::string size = size_text(least);
    return {composed("{}from {} on a copy at each hand-over is cheaper than the link", what(), size),
            composed("{}below {} a copy costs more than the link: pinned memory is used in place", what(), size)};
}

std::optional<std::size_t> copied_from_bytes(const platform::Row& row, Use use) {
    if (!row.copy_pays.value) return std::nullopt;
    switch (use) {
        case Use::never: return std::nullopt;
        case Use::reads_once: return row.reads_once_copied_from_bytes.value;
        case Use::writes_once: return row.writes_once_copied_from_bytes.value;
        case Use::reads_often: return row.reads_often_copied_from_bytes.value;
        case Use::writes_often: return row.writes_often_copied_from_bytes.value;
        case Use::reads_and_writes: break;
    }
    return std::max(row.reads_often_copied_from_bytes.value, row.writes_often_copied_from_bytes.value);
}

using AllReasons = std::array<std::array<SizeReasons, use_count>, model_count>;

AllReasons* make_reasons() {
    auto* const made = new AllReasons;
    for (std::size_t model = 0; model < model_count; ++model) {
        for (std::size_t use = 0; use < use_count; ++use) {
            const auto least = copied_from_bytes(platform::row(static_cast<Model>(model)), static_cast<Use>(use));
            if (least) (*made)[model][use] = reasons_for(static_cast<Use>(use), *least);
        }
    }
    return made;
}

// Never freed: plans refer to these texts until the process ends.
const SizeReasons& size_reasons(const platform::Row& row, Use use) {
    static const AllReasons* const made = make_reasons();
    return (*made)[static_cast<std::size_t>(row.model)][static_cast<std::size_t>(use)];
}

AllocationPlan chosen(const Capabilities& device, const platform::Row& row, const SharedUse& use, std::size_t bytes) {
    if (is_cpu(device)) return in_place(MemoryKind::host, "the CPU device: kernels run on host memory");
    if (use.host == Use::never) {
        return in_place(MemoryKind::device, "the host never reads or writes it: memory of the device alone");
    }
    const std::optional<std::size_t> least = copy_pays_from_bytes(device, use);
    if (least && bytes >= *least) return staged(MemoryKind::device, size_reasons(row, use.device).from);
    const bool latency = use.prefer == Prefer::latency;
    const MemoryKind best = latency ? row.shared_for_latency.value : row.shared_in_place.value;
    for (const MemoryKind kind : {best, MemoryKind::pinned}) {
        if (!device_access(device, kind)) continue;
        if (latency && kind == MemoryKind::pinned && device.memory != MemoryModel::shared_dram) {
            return in_place(kind, "latency matters: pinned memory is used in place, without a copy to wait for");
        }
        if (least && kind == MemoryKind::pinned) return in_place(kind, size_reasons(row, use.device).below);
        return in_place(kind, in_place_reason(device, kind));
    }
    return staged(MemoryKind::device, "the device reaches no host memory: copies are made around each use");
}

Result<AllocationPlan> asked_for_device_memory(const Capabilities& device, const SharedUse& use, MemoryKind kind) {
    if (kind == MemoryKind::pool && !device.has(Feature::pools)) {
        return make_error<errors::shared_buffer_without_pools>(name(kind), device.feature(Feature::pools).reason);
    }
    if (use.host == Use::never) return in_place(kind, "asked for by kind; the host never reads or writes it");
    return staged(kind, "asked for by kind: the host cannot see it, so copies are made around each use");
}

Result<AllocationPlan> asked_for_managed(const Capabilities& device) {
    constexpr MemoryKind kind = MemoryKind::managed;
    switch (device.managed) {
        case ManagedModel::none:
            return make_error<errors::shared_buffer_without_managed_memory>(name(kind),
                                                                            device.feature(Feature::managed).reason);
        case ManagedModel::phase_guarded: {
            AllocationPlan plan = in_place(kind, "asked for by kind: managed memory, attached to one side at a time");
            plan.path = LaunchPath::attach;
            return plan;
        }
        default: {
            AllocationPlan plan = in_place(kind, "asked for by kind: managed memory, used by both sides");
            plan.path = launch_path(device, kind).path;
            return plan;
        }
    }
}

Result<AllocationPlan> asked_for(const Capabilities& device, const SharedUse& use, MemoryKind kind) {
    switch (kind) {
        case MemoryKind::managed: return asked_for_managed(device);
        case MemoryKind::unknown:
        case MemoryKind::managed_pool:
        case MemoryKind::graph:
        case MemoryKind::vmm:
        case MemoryKind::imported: return make_error<errors::shared_buffer_of_other_kind>(name(kind));
        default: break;
    }
    if (is_cpu(device))
        return in_place(MemoryKind::host, "the CPU device has host memory only, whatever kind is asked for");
    if (kind == MemoryKind::device || kind == MemoryKind::pool) return asked_for_device_memory(device, use, kind);
    if (kind == MemoryKind::write_combined && reads(use.host)) {
        return make_error<errors::shared_buffer_read_from_write_combined>(name(kind));
    }
    const AccessAnswer answer = device_access(device, kind);
    if (!answer) return make_error<errors::shared_buffer_out_of_reach>(name(kind), answer.reason, answer.remedy);
    return in_place(kind, "asked for by kind, and the device uses it in place");
}

// Do host and device both access the memory, and may one update it while the other accesses it?
bool is_updated(const SharedUse& use) {
    return use.updates != AtomicSet::load_store && use.host != Use::never && use.device != Use::never;
}

AccessAnswer lawful_updates(const Capabilities& device, const SharedUse& use, const SharedWord& word,
                            const AllocationPlan& plan) {
    if (plan.path == LaunchPath::stage || plan.path == LaunchPath::attach) {
        return {Verdict::no, "it is for one side at a time", {}};
    }
    AtomicQuestion question;
    question.kind = plan.kind;
    question.width_bytes = word.width_bytes;
    question.is_signed = word.is_signed;
    return shared_atomics(device, question, use.updates);
}

Text updated_reason(const Capabilities& device, MemoryKind kind) {
    if (is_cpu(device)) return "the CPU device: updates of both sides are those of threads of the CPU";
    if (kind == MemoryKind::managed) {
        return "CPU and GPU update it at the same time, which is atomic here in managed memory";
    }
    return "CPU and GPU update it at the same time, which is atomic here in host memory that both use in place";
}

// Tries the kind that the row prefers in place, then every other kind in which these updates are atomic.
Result<AllocationPlan> updated(const Capabilities& device, const platform::Row& row, const SharedUse& use,
                               const SharedWord& word) {
    const MemoryKind best = use.prefer == Prefer::latency ? row.shared_for_latency.value : row.shared_in_place.value;
    AccessAnswer why;
    for (const MemoryKind kind : {best, MemoryKind::pinned, MemoryKind::managed, MemoryKind::host}) {
        Result<AllocationPlan> plan = asked_for(device, use, kind);
        if (!plan) continue;
        plan = placed(device, use, *plan);
        const AccessAnswer answer = lawful_updates(device, use, word, *plan);
        if (answer) {
            plan->reason = updated_reason(device, plan->kind);
            return plan;
        }
        if (why.reason.empty()) why = answer;
    }
    return make_error<errors::shared_updates_atomic_nowhere>(name(best), why.reason);
}

// The requested kind is used or refused; the policy tries no other kind.
Result<AllocationPlan> updated_as_asked(const Capabilities& device, const platform::Row& row, const SharedUse& use,
                                        const SharedWord& word) {
    Result<AllocationPlan> plan = asked_for(device, use, *use.kind);
    if (!plan) return plan;
    const AccessAnswer answer = lawful_updates(device, use, word, *plan);
    if (answer) return plan;
    SharedUse free = use;
    free.kind.reset();
    if (updated(device, row, free, word)) {
        return make_error<errors::shared_updates_atomic_elsewhere>(name(*use.kind), answer.reason);
    }
    return make_error<errors::shared_updates_of_kind_not_atomic>(name(*use.kind), answer.reason);
}

}  // namespace

std::string size_text(std::size_t bytes) {
    constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
    return bytes % MiB == 0 ? composed("{} MiB", bytes / MiB) : composed("{} KiB", bytes / KiB);
}

std::optional<std::size_t> copy_pays_from_bytes(const Capabilities& device, const SharedUse& use) {
    if (use.prefer == Prefer::latency || is_updated(use)) return std::nullopt;
    return copied_from_bytes(platform::row_of(device), use.device);
}

bool copy_pays(const Capabilities& device, const SharedUse& use, std::size_t bytes) {
    const std::optional<std::size_t> least = copy_pays_from_bytes(device, use);
    return least && bytes >= *least;
}

Result<AllocationPlan> plan_allocation(const Capabilities& device, const SharedUse& use, std::size_t bytes,
                                       const SharedWord& word) {
    const platform::Row& row = platform::row_of(device);
    Result<AllocationPlan> plan = AllocationPlan{};
    if (is_updated(use)) {
        plan = use.kind ? updated_as_asked(device, row, use, word) : updated(device, row, use, word);
    } else {
        plan = use.kind ? asked_for(device, use, *use.kind) : placed(device, use, chosen(device, row, use, bytes));
    }
    if (plan) plan->placement = placement_for(row, use, plan->host_kind);
    return plan;
}

}  // namespace isthmus::rules
