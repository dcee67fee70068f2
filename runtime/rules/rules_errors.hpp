// SPDX-License-Identifier: Apache-2.0
// The refusals of shared buffers and of adopted memory, as data. All other rules answer with a reason and a remedy.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
// Here and below, {reason} is the reason of a capability or of a rule.
inline constexpr auto shared_buffer_without_pools =
    error_entry("W001", Code::unsupported,
                "a shared buffer of {kind} memory is refused: {reason}",
                "ask for device memory");
inline constexpr auto shared_buffer_without_managed_memory =
    error_entry("W002", Code::unsupported,
                "a shared buffer of {kind} memory is refused: {reason}",
                "leave the kind to the policy, or ask for pinned memory");
inline constexpr auto shared_buffer_of_other_kind =
    error_entry("W003", Code::unsupported,
                "a shared buffer of {kind} memory is refused: shared buffers are not made of this kind",
                "leave the kind to the policy, or ask for pinned, registered, host, managed or device memory");
inline constexpr auto shared_buffer_read_from_write_combined =
    error_entry("W004", Code::not_accessible,
                "a shared buffer of {kind} memory is refused: the host reads it, and write-combined memory is for writing "
                "only",
                "ask for pinned memory");
inline constexpr auto shared_buffer_out_of_reach =
    error_entry("W005", Code::not_accessible,
                "a shared buffer of {kind} memory is refused: {reason}",
                "{remedy}");
inline constexpr auto shared_updates_atomic_elsewhere =
    error_entry("W006", Code::unsupported,
                "a shared buffer of {kind} memory is refused: CPU and GPU were declared to update it at the same time, and "
                "{reason}; other memory of this machine makes these updates atomic",
                "leave the kind to the policy, which knows memory where this is atomic");
inline constexpr auto shared_updates_of_kind_not_atomic =
    error_entry("W007", Code::unsupported,
                "a shared buffer of {kind} memory is refused: CPU and GPU were declared to update it at the same time, and "
                "{reason}; no memory of this machine makes these updates atomic",
                "count in a ShardedCounter (one lane per side), or send messages by plain loads and stores");
inline constexpr auto shared_updates_atomic_nowhere =
    error_entry("W008", Code::unsupported,
                "a shared buffer that CPU and GPU update at the same time is refused: in no memory of this machine are "
                "these updates atomic; in {kind} memory {reason}",
                "count in a ShardedCounter (one lane per side), or send messages by plain loads and stores");
inline constexpr auto adoption_as_other_kind =
    error_entry("W009", Code::unsupported,
                "adopting the memory is refused: the driver knows it already, and its kind cannot be changed",
                "leave the kind to the policy, or copy it into a buffer of the wanted kind");
inline constexpr auto adoption_of_guarded_managed_memory =
    error_entry("W010", Code::unsupported,
                "adopting the memory is refused: managed memory is for one side at a time on this machine, and what other "
                "code does with its own cannot be seen",
                "let the runtime allocate it (MemoryKind::managed), or adopt pinned memory");
inline constexpr auto adoption_of_another_device =
    error_entry("W011", Code::wrong_device,
                "adopting the memory is refused: it is memory of another device",
                "adopt it with that device");
inline constexpr auto adoption_out_of_reach =
    error_entry("W012", Code::not_accessible,
                "adopting the memory is refused: {reason}",
                "copy it into a buffer of this device");
inline constexpr auto adoption_of_unreadable_memory =
    error_entry("W013", Code::not_accessible,
                "adopting the memory is refused: the process may not read it",
                "map it for reading");
inline constexpr auto adoption_for_device_writes =
    error_entry("W014", Code::not_accessible,
                "adopting the memory is refused: it is for reading only, and the device was declared to write it",
                "map it for writing, or declare AdoptOptions::use with a device that reads");
inline constexpr auto adoption_for_host_writes =
    error_entry("W015", Code::not_accessible,
                "adopting the memory is refused: it is for reading only, and the host was declared to write it",
                "map it for writing, or declare AdoptOptions::use with a host that reads");
inline constexpr auto adoption_of_memory_without_pages =
    error_entry("W016", Code::not_accessible,
                "adopting the memory is refused: a driver mapped it without pages (VM_IO, VM_PFNMAP), which no GPU reaches",
                "leave the kind to the policy, or ask for device memory, which copies");
inline constexpr auto adoption_of_unreachable_host_memory =
    error_entry("W017", Code::not_accessible,
                "adopting the memory is refused: the caller asked for host memory, and {reason}",
                "leave the kind to the policy, or ask for device memory, which copies");
inline constexpr auto adoption_of_dma_buf_as_host_memory =
    error_entry("W020", Code::unsupported,
                "adopting the dma-buf as ordinary host memory is refused: the driver's own copies of such memory stand between no "
                "cache operations of the kernel",
                "leave the kind to the policy, or ask for registered or device memory");
inline constexpr auto adoption_as_impossible_kind =
    error_entry("W018", Code::unsupported,
                "adopting the memory is refused: ordinary memory cannot become {kind} memory",
                "leave the kind to the policy, or ask for host, registered or device memory");
inline constexpr auto adoption_without_registering =
    error_entry("W019", Code::unsupported,
                "adopting the memory is refused: the caller asked for registered memory, and {reason}",
                "leave the kind to the policy, or ask for device memory, which copies");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
