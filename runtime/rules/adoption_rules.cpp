// SPDX-License-Identifier: Apache-2.0
// How a device uses memory that was not allocated for it. Registering is tried where it is needed or pays, because only
// the driver knows whether it can pin these pages. The plan states what follows success and what follows failure.
#include "adoption_rules.hpp"

#include "access_rules.hpp"
#include "allocation_policy.hpp"
#include "launch_path.hpp"
#include "profile_rules.hpp"
#include "rules_errors.hpp"

#include <platform/capability_table.hpp>

namespace isthmus::rules {
namespace {

using Text = std::string_view;

bool writes_it(Use use) {
    return use == Use::writes_once || use == Use::writes_often || use == Use::reads_and_writes;
}

AdoptionPlan as_it_is(MemoryKind kind, LaunchPath path, Text reason) {
    AdoptionPlan plan;
    plan.otherwise = {kind, path, reason};
    return plan;
}
AdoptionPlan copied(Text reason) {
    return as_it_is(MemoryKind::device, LaunchPath::stage, reason);
}

Result<AdoptionPlan> known_to_the_driver(const Capabilities& device, const ForeignMemory& memory,
                                         const SharedUse& use) {
    if (use.kind && *use.kind != memory.kind) {
        return make_error<errors::adoption_as_other_kind>();
    }
    switch (memory.kind) {
        case MemoryKind::managed:
        case MemoryKind::managed_pool:
            if (device.managed == ManagedModel::phase_guarded) {
                return make_error<errors::adoption_of_guarded_managed_memory>();
            }
            break;
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::vmm:
            if (!memory.own_device) {
                return make_error<errors::adoption_of_another_device>();
            }
            break;
        default: break;
    }
    const PathAnswer path = launch_path(device, memory.kind);
    if (path.path != LaunchPath::pass && path.path != LaunchPath::prefetch) {
        return make_error<errors::adoption_out_of_reach>(path.reason);
    }
    if (memory.io_memory) {
        AdoptionPlan plan = as_it_is(memory.kind, path.path,
                                     "other code registered it as memory of a device (IOMEMORY): used in place, and "
                                     "never by CPU and GPU at the same time");
        plan.otherwise.io_memory = true;
        return plan;
    }
    return as_it_is(memory.kind, path.path, "other code allocated it with the driver: used in place as what it is");
}

Result<void> may_be_used(const ForeignMemory& memory, const SharedUse& use) {
    if (!memory.readable) {
        return make_error<errors::adoption_of_unreadable_memory>();
    }
    if (memory.writable && !memory.constant) return {};
    if (writes_it(use.device)) {
        return make_error<errors::adoption_for_device_writes>();
    }
    if (!writes_it(use.host)) return {};
    return make_error<errors::adoption_for_host_writes>();
}

// How a GPU uses ordinary host memory when the caller asks for no kind.
AdoptionPlan chosen(const Capabilities& device, const SharedUse& use, std::size_t bytes, bool can_register) {
    const platform::Traits& traits = platform::traits_of(device);
    const bool reaches = static_cast<bool>(device_access(device, MemoryKind::host));
    const bool latency = use.prefer == Prefer::latency;
    const MemoryKind best = latency ? traits.shared_for_latency.value : traits.shared_in_place.value;
    AdoptionPlan plan;
    plan.otherwise =
        reaches ? AdoptedAs{MemoryKind::host, LaunchPath::pass, "the device reaches ordinary memory: used in place"}
                : AdoptedAs{MemoryKind::device, LaunchPath::stage,
                            "the device does not reach it and it could not be registered: copied around each use"};
    // The adopted memory may consist of many frames that are used one at a time. The size therefore decides only for
    // memory that the device touches often; memory that is touched once stays in place at any size.
    const ProfileChoice* const measured = measured_choice(device, use, bytes);
    const bool copy = measured != nullptr ? measured->kind == MemoryKind::device : copy_pays(device, use, bytes);
    if (passes_of_device(use) > 1 && copy) {
        plan.registers = can_register;
        plan.registered = {MemoryKind::device, LaunchPath::stage,
                           "the device touches the data often: copied from and to registered memory around each use"};
        plan.otherwise = {MemoryKind::device, LaunchPath::stage,
                          "the device touches the data often: copied around each use"};
        return plan;
    }
    if (reaches && best == MemoryKind::host) return plan;
    plan.registers = can_register;
    plan.registered = {MemoryKind::registered, LaunchPath::pass,
                       latency && reaches ? "latency matters: registered, so that neither side meets a page fault"
                                          : "registered, and used in place by the device"};
    return plan;
}

Result<AdoptionPlan> asked_for(const Capabilities& device, const ForeignMemory& memory, MemoryKind kind,
                               bool can_register) {
    if (kind == MemoryKind::device) {
        AdoptionPlan plan = copied("asked for by kind: copied around each use");
        plan.registers = can_register;
        plan.registered = {MemoryKind::device, LaunchPath::stage,
                           "asked for by kind: copied from and to registered memory around each use"};
        return plan;
    }
    if (kind == MemoryKind::host) {
        if (memory.dma_buf) return make_error<errors::adoption_of_dma_buf_as_host_memory>();
        if (memory.driver_mapping) return make_error<errors::adoption_of_memory_without_pages>();
        const AccessAnswer answer = device_access(device, MemoryKind::host);
        if (!answer) return make_error<errors::adoption_of_unreachable_host_memory>(answer.reason);
        return as_it_is(MemoryKind::host, LaunchPath::pass, "asked for by kind: ordinary memory, used in place");
    }
    if (kind != MemoryKind::registered) {
        return make_error<errors::adoption_as_impossible_kind>(name(kind));
    }
    if (memory.driver_mapping) return make_error<errors::adoption_of_memory_without_pages>();
    if (!can_register) {
        const Feature lacking = memory.writable ? Feature::host_register : Feature::host_register_read_only;
        return make_error<errors::adoption_without_registering>(device.feature(lacking).reason);
    }
    AdoptionPlan plan;
    plan.registers = plan.insists = true;
    plan.registered = {MemoryKind::registered, LaunchPath::pass, "asked for by kind: registered, and used in place"};
    return plan;
}

// A dma-buf that the policy leaves in place is imported if the driver can, else registered. Otherwise the CPU copies it
// between the kernel's cache operations: nothing brackets what a driver does with unregistered memory, neither its own
// copies of pageable memory nor a device's loads through the CPU's page tables.
void adapt_to_dma_buf(AdoptionPlan& plan, bool can_register) {
    if (plan.registered.path == LaunchPath::stage) return;  // a copy pays
    plan.imports = true;
    plan.imported = {MemoryKind::registered, LaunchPath::pass,
                     "a dma-buf that the driver imported as external memory: used in place by the device"};
    plan.registers = can_register;
    plan.registered = {MemoryKind::registered, LaunchPath::pass, "registered, and used in place by the device"};
    if (plan.otherwise.kind == MemoryKind::host) {
        plan.otherwise = {MemoryKind::device, LaunchPath::stage,
                          "a dma-buf that could not be registered: copied by the CPU around each use, between the "
                          "kernel's cache operations"};
    }
}

}  // namespace

Result<AdoptionPlan> plan_adoption(const Capabilities& device, const ForeignMemory& memory, const SharedUse& use,
                                   std::size_t bytes) {
    if (Result<void> usable = may_be_used(memory, use); !usable) return std::move(usable).error();
    if (memory.kind != MemoryKind::unknown) return known_to_the_driver(device, memory, use);
    if (device.memory == MemoryModel::host) {
        AdoptionPlan plan = as_it_is(MemoryKind::host, LaunchPath::pass, "the CPU device: kernels run on host memory");
        plan.otherwise.io_memory = memory.driver_mapping;
        return plan;
    }
    const bool can_register = !memory.driver_mapping && device.has(Feature::host_register) &&
                              static_cast<bool>(device_access(device, MemoryKind::registered)) &&
                              (memory.writable || device.has(Feature::host_register_read_only));
    Result<AdoptionPlan> plan = use.kind ? asked_for(device, memory, *use.kind, can_register)
                                : memory.driver_mapping
                                    ? copied(
                                          "a driver mapped it without pages, which no GPU reaches: copied by the "
                                          "CPU around each use")
                                    : chosen(device, use, bytes, can_register);
    // What is for reading only may not be imported: the import would let the device write.
    if (plan && memory.dma_buf && !use.kind) {
        adapt_to_dma_buf(*plan, can_register);
        plan->imports = plan->imports && memory.writable;
    }
    if (plan) plan->read_only = !memory.writable;
    return plan;
}

}  // namespace isthmus::rules
