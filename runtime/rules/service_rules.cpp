// SPDX-License-Identifier: Apache-2.0
// Which driver calls wait for a persistent kernel, and where such a kernel and its mailbox may be.
#include "service_rules.hpp"

#include <array>
#include <cstddef>

namespace isthmus::rules {
namespace {

using Text = std::string_view;
using E = Evidence;
using U = DriverUse;

constexpr Text behind = "stop the service first; what only goes out of scope is freed when the service stops";

// Evidence::seen: observed on an H200, driver 580.159.04 (bench_mailbox --blocking).
constexpr std::array<ServingAnswer, driver_use_count> answers{{
    {U::free_device, "releasing device memory", true, E::seen,
     "cuMemFree waits until every kernel of the device has ended", behind},
    {U::free_managed, "releasing managed memory", true, E::seen,
     "cuMemFree waits until every kernel of the device has ended", behind},
    {U::free_pinned, "releasing pinned memory", true, E::seen,
     "cuMemFreeHost waits until every kernel of the device has ended", behind},
    {U::unregister_host, "letting go of registered memory", true, E::seen,
     "cuMemHostUnregister waits until every kernel of the device has ended", behind},
    {U::free_pooled, "releasing pool memory", false, E::seen, "pool memory is freed in the order of a stream", {}},
    {U::free_host, "releasing host memory", false, E::seen, "the driver is not asked", {}},
    {U::allocate_device, "allocating device memory", false, E::seen, "cuMemAlloc returns while a kernel runs", {}},
    {U::allocate_managed,
     "allocating managed memory",
     false,
     E::seen,
     "cuMemAllocManaged returns while a kernel runs",
     {}},
    {U::allocate_pinned, "allocating pinned memory", false, E::seen, "cuMemHostAlloc returns while a kernel runs", {}},
    {U::register_host, "registering memory", false, E::seen, "cuMemHostRegister returns while a kernel runs", {}},
    {U::allocate_pooled,
     "allocating pool memory",
     false,
     E::seen,
     "pool memory is allocated in the order of a stream",
     {}},
    {U::allocate_host, "allocating host memory", false, E::seen, "the driver is not asked", {}},
    {U::trim_pool, "giving back what a pool keeps", false, E::seen, "cuMemPoolTrimTo returns while a kernel runs", {}},
    {U::destroy_pool, "destroying a pool", true, E::assumed, "cuMemPoolDestroy may wait for the kernels of the device",
     behind},
    {U::synchronize_device, "synchronizing the device", true, E::seen,
     "the whole device is waited for, and the service runs until it is stopped",
     "synchronize the streams that have to be waited for, or stop the service first"},
    {U::wait_for_service, "waiting for a service", true, E::seen, "its kernel ends only when the service is stopped",
     "stop the service first; what it shares meanwhile is used by concurrent views and mailboxes"},
    {U::wait_for_other_work, "waiting for work", false, E::seen, "an event of another stream is asked about", {}},
    {U::load_code, "loading a kernel's code", true, E::seen,
     "cuModuleLoadData waits until every kernel of the device has ended",
     "load it before the service starts: prepare(device, kernel), or one launch"},
    {U::launch,
     "launching a kernel",
     false,
     E::seen,
     "kernels of other streams run beside it where they find room",
     {}},
    {U::switch_peer_access, "switching access between devices", true, E::assumed,
     "mapping another device's memory may wait for the device", "switch access before the service starts"},
    {U::destroy_stream, "destroying a stream", false, E::seen, "cuStreamDestroy returns while a kernel runs", {}},
    {U::change_mapping, "changing what is mapped", true, E::documented,
     "cuMemUnmap and cuMemSetAccess may wait for the device", "map memory and grow buffers before the service starts"},
    {U::copy_pageable, "letting the driver copy pageable memory", true, E::assumed,
     "the driver's own copies of pageable memory may wait for the device", "copies pass through bounce buffers"},
}};

constexpr bool in_order() {
    for (std::size_t at = 0; at < answers.size(); ++at) {
        if (static_cast<std::size_t>(answers[at].use) != at) return false;
    }
    return true;
}
static_assert(in_order());

}  // namespace

std::span<const ServingAnswer> serving_answers() {
    return answers;
}

const ServingAnswer& while_serving(DriverUse use) {
    return answers[static_cast<std::size_t>(use)];
}

DriverUse freeing(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host:
        case MemoryKind::host_numa: return U::free_host;
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return U::free_pinned;
        case MemoryKind::registered: return U::unregister_host;
        case MemoryKind::managed: return U::free_managed;
        case MemoryKind::pool:
        case MemoryKind::managed_pool: return U::free_pooled;
        default: return U::free_device;
    }
}

DriverUse allocating(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host:
        case MemoryKind::host_numa: return U::allocate_host;
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return U::allocate_pinned;
        case MemoryKind::registered: return U::register_host;
        case MemoryKind::managed: return U::allocate_managed;
        case MemoryKind::pool:
        case MemoryKind::managed_pool: return U::allocate_pooled;
        default: return U::allocate_device;
    }
}

AccessAnswer persistent_kernel(const Capabilities& device) {
    if (device.memory == MemoryModel::host) {
        return {
            Verdict::no, "a launch on the CPU device returns when the kernel has ended, and a service's never does",
            "answer on a thread of the program's own, or let a mailbox's kernel answer a bounded number of requests"};
    }
    if (device.has(Feature::kernel_timeout)) {
        return {Verdict::no, "a watchdog ends kernels that take long here (attribute 17 is 1)",
                "use a GPU that drives no display, or launch kernels that answer a bounded number of requests"};
    }
    return {Verdict::yes, "no watchdog ends long kernels (attribute 17 is 0)", {}};
}

MailboxMemory mailbox_memory(const Capabilities& device) {
    if (device.memory == MemoryModel::host) return {MemoryKind::host, "both sides are threads of the CPU"};
    if (device.has(Feature::pageable_access) && device.has(Feature::host_page_tables)) {
        return {MemoryKind::host,
                "the GPU reaches plain host memory through the CPU's page tables, coherently and faster than pinned"};
    }
    return {MemoryKind::pinned, "both sides load and store pinned memory in place, on every machine"};
}

}  // namespace isthmus::rules
