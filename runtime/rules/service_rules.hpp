// SPDX-License-Identifier: Apache-2.0
// What a persistent kernel needs from a device, and which driver calls would wait for it while it runs. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace isthmus::rules {

// Driver calls, by purpose, that a call of the runtime may need while a kernel runs until it is told to stop.
enum class DriverUse : std::uint8_t {
    free_device,
    free_managed,
    free_pinned,
    unregister_host,
    free_pooled,
    free_host,
    allocate_device,
    allocate_managed,
    allocate_pinned,
    register_host,
    allocate_pooled,
    allocate_host,
    trim_pool,
    destroy_pool,
    synchronize_device,
    wait_for_service,
    wait_for_other_work,
    load_code,
    launch,
    switch_peer_access,
    destroy_stream,
    change_mapping,
    copy_pageable,
};
inline constexpr int driver_use_count = 23;

enum class Evidence : std::uint8_t {
    seen,        // observed on hardware
    documented,  // by the vendor; not observed
    assumed,     // neither: refused, because a wrong refusal costs less than a deadlock
};

struct ServingAnswer {
    DriverUse use;
    std::string_view deed;  // "another thread is …"
    bool waits;             // the driver waits for every kernel of the device, including the service
    Evidence evidence;
    std::string_view reason;  // static storage, as below
    std::string_view remedy;  // empty where it does not wait
};

// One answer for each DriverUse, in its order.
std::span<const ServingAnswer> serving_answers();
const ServingAnswer& while_serving(DriverUse use);
DriverUse freeing(MemoryKind kind);
DriverUse allocating(MemoryKind kind);

// May a kernel run here until it is told to stop?
AccessAnswer persistent_kernel(const Capabilities& device);

// The best memory for a mailbox: a kind that both sides may access at the same time on every machine.
struct MailboxMemory {
    MemoryKind kind;
    std::string_view reason;
};
MailboxMemory mailbox_memory(const Capabilities& device);

}  // namespace isthmus::rules
