// SPDX-License-Identifier: Apache-2.0
// Which driver calls a persistent kernel rules out, on which machines it may run, and where a mailbox lies.
#include "atomic_rules.hpp"
#include "service_rules.hpp"

#include "some_devices.hpp"

#include <gtest/gtest.h>

namespace {

using namespace isthmus;

// keeps G10
TEST(ServiceRules, EveryCallIsAnsweredAndARefusalSaysWhatWorksInstead) {
    ASSERT_EQ(rules::serving_answers().size(), static_cast<std::size_t>(rules::driver_use_count));
    for (const rules::ServingAnswer& answer : rules::serving_answers()) {
        EXPECT_FALSE(answer.reason.empty());
        EXPECT_EQ(answer.remedy.empty(), !answer.waits) << answer.reason;
        EXPECT_EQ(&rules::while_serving(answer.use), &answer);
        // Behaviour that was neither observed nor documented is never promised to work.
        if (answer.evidence == rules::Evidence::assumed) {
            EXPECT_TRUE(answer.waits) << answer.reason;
        }
    }
}

// keeps G10
TEST(ServiceRules, WhatWaitsForTheDeviceIsRuledOutAndWhatFollowsAStreamIsNot) {
    using U = rules::DriverUse;
    for (const U use :
         {U::free_device, U::free_managed, U::free_pinned, U::unregister_host, U::synchronize_device,
          U::wait_for_service, U::load_code, U::switch_peer_access, U::change_mapping, U::copy_pageable}) {
        EXPECT_TRUE(rules::while_serving(use).waits) << static_cast<int>(use);
    }
    for (const U use :
         {U::free_pooled, U::free_host, U::allocate_device, U::allocate_managed, U::allocate_pinned, U::register_host,
          U::allocate_pooled, U::allocate_host, U::trim_pool, U::wait_for_other_work, U::launch, U::destroy_stream}) {
        EXPECT_FALSE(rules::while_serving(use).waits) << static_cast<int>(use);
    }
}

// keeps G10
TEST(ServiceRules, NoKindWaitsWhenAllocatedAndThoseThatNoStreamOrdersWaitWhenFreed) {
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        const auto each = static_cast<MemoryKind>(kind);
        const bool free = each == MemoryKind::host || each == MemoryKind::host_numa || each == MemoryKind::pool ||
                          each == MemoryKind::managed_pool;
        EXPECT_EQ(rules::while_serving(rules::freeing(each)).waits, !free) << name(each);
    }
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        const auto each = static_cast<MemoryKind>(kind);
        EXPECT_FALSE(rules::while_serving(rules::allocating(each)).waits) << name(each);
    }
}

// Every known machine, every combination of attributes, and the CPU device.
template <class Each>
void for_every_device(Each each) {
    for (const char* const machine : some_devices::gpu_machines) {
        SCOPED_TRACE(machine);
        each(some_devices::of_machine(machine));
    }
    for (unsigned bits = 0; bits < some_devices::combinations; ++bits) {
        SCOPED_TRACE(bits);
        each(some_devices::of_bits(bits));
    }
    each(some_devices::cpu());
}

// keeps G10
TEST(ServiceRules, APersistentKernelRunsOnGpusWithoutAWatchdogOnly) {
    for_every_device([](const Capabilities& device) {
        const AccessAnswer answer = rules::persistent_kernel(device);
        const bool cpu = device.memory == MemoryModel::host;
        EXPECT_EQ(static_cast<bool>(answer), !cpu && !device.has(Feature::kernel_timeout));
        EXPECT_FALSE(answer.reason.empty());
        EXPECT_EQ(answer.remedy.empty(), static_cast<bool>(answer));
    });
    EXPECT_TRUE(rules::persistent_kernel(some_devices::of_machine("h200")));
    EXPECT_FALSE(rules::persistent_kernel(some_devices::of_machine("rtx-hmm")));
    EXPECT_FALSE(rules::persistent_kernel(some_devices::cpu()));
}

// keeps G10
TEST(ServiceRules, AMailboxLiesWhereBothMayLoadAndStoreAtOnce) {
    for (const char* const machine : some_devices::gpu_machines) {
        const Capabilities device = some_devices::of_machine(machine);
        EXPECT_TRUE(rules::shared_load_store(device, rules::mailbox_memory(device).kind, 4)) << machine;
    }
    for_every_device([](const Capabilities& device) {
        const rules::MailboxMemory memory = rules::mailbox_memory(device);
        // No known GPU lacks unified addressing (41); one without it could not access pinned memory.
        const bool reaches = memory.kind == MemoryKind::host || device.has(Feature::unified_addressing);
        EXPECT_EQ(static_cast<bool>(rules::shared_load_store(device, memory.kind, 4)), reaches);
        EXPECT_FALSE(memory.reason.empty());
    });
    EXPECT_EQ(rules::mailbox_memory(some_devices::of_machine("thor")).kind, MemoryKind::host);
    EXPECT_EQ(rules::mailbox_memory(some_devices::of_machine("orin")).kind, MemoryKind::pinned);
    EXPECT_EQ(rules::mailbox_memory(some_devices::of_machine("rtx-hmm")).kind, MemoryKind::pinned);
}

}  // namespace
