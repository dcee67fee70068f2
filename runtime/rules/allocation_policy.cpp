// SPDX-License-Identifier: Apache-2.0
// Which memory a shared buffer gets. The traits of the axes state what is best there; the capability bits state what is
// possible. Each choice has a reason, one sentence for the user.
#include "allocation_policy.hpp"

#include "access_rules.hpp"
#include "allocation_reasons.hpp"
#include "atomic_rules.hpp"
#include "launch_path.hpp"
#include "profile_rules.hpp"
#include "rules_errors.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace isthmus::rules {

namespace {

using Text = std::string_view;
using platform::border_for;
using platform::CopyBorder;
using platform::Traits;

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
    const Locality asked = use.placement.locality;
    return asked != Locality::anywhere && asked != Locality::unbound && device.has(Feature::host_register) &&
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

// From this many passes on, the memory may migrate to the GPU, and has no memory policy: the driver leaves pages where
// any policy binds them, that of Locality::anywhere included.
bool may_migrate(const Traits& traits, const SharedUse& use) {
    const int from = traits.migrates_from_passes.value;
    return from > 0 && passes_of_device(use) >= from;
}

// Places host memory near the device where that gains and the caller requested no locality.
HostPlacement placement_for(const Traits& traits, const SharedUse& use, const AllocationPlan& plan) {
    HostPlacement placement = use.placement;
    if (placement.locality == Locality::anywhere) placement.locality = plan.placement.locality;  // as measured
    const MemoryKind kind = plan.host_kind;  // of a staged buffer: the host's side, which stays there
    const bool ours = is_ordinary_host(kind) || kind == MemoryKind::registered;
    if (!ours || placement.locality != Locality::anywhere || !traits.near_device.value) return placement;
    const bool stays = plan.path == LaunchPath::stage || !may_migrate(traits, use);
    placement.locality = stays ? Locality::near_device : Locality::unbound;
    return placement;
}

Copied copied_by(Use device) {
    switch (device) {
        case Use::reads_once:
        case Use::reads_often: return Copied::reads;
        case Use::writes_once:
        case Use::writes_often: return Copied::writes;
        default: return Copied::both;
    }
}
const CopyBorder* border_of(const Traits& traits, Copied copied, int passes) {
    const CopyBorder* const reads = border_for(traits.reads_copied, passes);
    const CopyBorder* const writes = border_for(traits.writes_copied, passes);
    if (copied == Copied::reads) return reads;
    if (copied == Copied::writes) return writes;
    if (reads == nullptr || writes == nullptr) return nullptr;
    return reads->from_bytes > writes->from_bytes ? reads : writes;
}

AllocationPlan chosen(const Capabilities& device, const Traits& traits, const SharedUse& use, std::size_t bytes) {
    if (is_cpu(device)) return in_place(MemoryKind::host, "the CPU device: kernels run on host memory");
    if (use.host == Use::never) {
        return in_place(MemoryKind::device, "the host never reads or writes it: memory of the device alone");
    }
    const CopyBorder* const border = copy_border(device, use);
    if (border != nullptr && bytes >= border->from_bytes) {
        return staged(MemoryKind::device, reasons_of(traits, copied_by(use.device), *border).from);
    }
    const Reasons& reasons = reasons_of(traits);
    const bool latency = use.prefer == Prefer::latency;
    const MemoryKind best = latency ? traits.shared_for_latency.value : traits.shared_in_place.value;
    if (device_access(device, best)) {
        if (latency)
            return in_place(best, may_migrate(traits, use) ? reasons.for_latency_migrating : reasons.for_latency);
        if (border != nullptr) return in_place(best, reasons_of(traits, copied_by(use.device), *border).below);
        return in_place(best, reasons.in_place);
    }
    if (device_access(device, MemoryKind::pinned)) {
        return in_place(MemoryKind::pinned,
                        "memory of the best kind is out of the device's reach: pinned memory is used in place");
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

// What was measured here, where the rules allow it: a measurement never widens them. Attached memory is for one stream
// at a time, which the program did not ask for (ADR 101).
std::optional<AllocationPlan> measured(const Capabilities& device, const SharedUse& use, std::size_t bytes) {
    const ProfileChoice* const choice = measured_choice(device, use, bytes);
    if (choice == nullptr) return std::nullopt;
    Result<AllocationPlan> plan = asked_for(device, use, choice->kind);
    if (!plan || plan->path == LaunchPath::attach) return std::nullopt;
    plan->placement.locality = choice->locality;
    plan->reason = measured_reason(choice->kind);
    return std::move(plan).value();
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
Result<AllocationPlan> updated(const Capabilities& device, const Traits& traits, const SharedUse& use,
                               const SharedWord& word) {
    const MemoryKind best =
        use.prefer == Prefer::latency ? traits.shared_for_latency.value : traits.shared_in_place.value;
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
Result<AllocationPlan> updated_as_asked(const Capabilities& device, const Traits& traits, const SharedUse& use,
                                        const SharedWord& word) {
    Result<AllocationPlan> plan = asked_for(device, use, *use.kind);
    if (!plan) return plan;
    const AccessAnswer answer = lawful_updates(device, use, word, *plan);
    if (answer) return plan;
    SharedUse free = use;
    free.kind.reset();
    if (updated(device, traits, free, word)) {
        return make_error<errors::shared_updates_atomic_elsewhere>(name(*use.kind), answer.reason);
    }
    return make_error<errors::shared_updates_of_kind_not_atomic>(name(*use.kind), answer.reason);
}

}  // namespace

const CopyBorder* copy_border(const Capabilities& device, const SharedUse& use) {
    if (use.prefer == Prefer::latency || is_updated(use) || use.device == Use::never) return nullptr;
    return border_of(platform::traits_of(device), copied_by(use.device), passes_of_device(use));
}

std::optional<std::size_t> copy_pays_from_bytes(const Capabilities& device, const SharedUse& use) {
    const CopyBorder* const border = copy_border(device, use);
    return border != nullptr ? std::optional(border->from_bytes) : std::nullopt;
}

std::vector<std::size_t> sizes_that_decide(const Capabilities& device, const SharedUse& use) {
    std::vector<std::size_t> sizes;
    for (const ProfileChoice* next = measured_choice(device, use, any_size); next != nullptr && next->from_bytes > 0;
         next = measured_choice(device, use, sizes.back() - 1)) {
        sizes.push_back(next->from_bytes);
    }
    std::reverse(sizes.begin(), sizes.end());
    const std::optional<std::size_t> border = copy_pays_from_bytes(device, use);
    if (border && measured_choice(device, use, any_size) == nullptr) sizes.push_back(*border);
    return sizes;
}

bool copy_pays(const Capabilities& device, const SharedUse& use, std::size_t bytes) {
    const std::optional<std::size_t> least = copy_pays_from_bytes(device, use);
    return least && bytes >= *least;
}

Result<AllocationPlan> plan_allocation(const Capabilities& device, const SharedUse& use, std::size_t bytes,
                                       const SharedWord& word) {
    const Traits& traits = platform::traits_of(device);
    Result<AllocationPlan> plan = AllocationPlan{};
    if (is_updated(use)) {
        plan = use.kind ? updated_as_asked(device, traits, use, word) : updated(device, traits, use, word);
    } else {
        const std::optional<AllocationPlan> best = use.kind ? std::nullopt : measured(device, use, bytes);
        plan = use.kind ? asked_for(device, use, *use.kind)
                        : placed(device, use, best ? *best : chosen(device, traits, use, bytes));
    }
    if (plan) plan->placement = placement_for(traits, use, *plan);
    return plan;
}

std::optional<AllocationPlan> without_registering(const Capabilities& device, const SharedUse& use,
                                                  const AllocationPlan& plan, const SharedWord& word) {
    const bool ours = plan.kind == MemoryKind::registered && plan.path != LaunchPath::stage && !use.kind;
    if (!ours || !device_access(device, MemoryKind::host)) return std::nullopt;
    AllocationPlan other =
        in_place(MemoryKind::host,
                 "the driver refused to register memory: ordinary memory in its place is used, which the device "
                 "reaches too, though pages may move or be absent");
    other.placement = plan.placement;
    if (is_updated(use) && !lawful_updates(device, use, word, other)) return std::nullopt;
    return other;
}

bool cannot_register(Code code) noexcept {
    switch (code) {
        case Code::invalid_argument:
        case Code::unsupported:
        case Code::not_permitted:
        case Code::system_limit:
        case Code::driver_error: return true;
        default: return false;
    }
}

}  // namespace isthmus::rules
