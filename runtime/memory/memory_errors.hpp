// SPDX-License-Identifier: Apache-2.0
// Error entries: allocating, adopting and releasing memory, and allocators.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto adoption_of_null_pointer =
    error_entry("M001", Code::invalid_argument,
                "adopting the memory is refused: the pointer is null",
                "adopt memory that is there");
inline constexpr auto adoption_of_no_elements =
    error_entry("M002", Code::invalid_argument,
                "adopting the memory is refused: it has no elements",
                "adopt memory that is there");
inline constexpr auto adoption_beyond_all_addresses =
    error_entry("M003", Code::invalid_argument,
                "adopting the memory is refused: it would end beyond all addresses",
                "check the number of elements");
inline constexpr auto adoption_of_unaligned_pointer =
    error_entry("M004", Code::invalid_argument,
                "adopting the memory is refused: the pointer is not aligned to {alignment:number} bytes",
                "adopt from an aligned address on, or as smaller elements");
inline constexpr auto adoption_leaves_its_allocation =
    error_entry("M005", Code::not_accessible,
                "adopting the memory is refused: it leaves the allocation that it begins in",
                "adopt no more than what was allocated");
inline constexpr auto adoption_of_unknown_mapping =
    error_entry("M006", Code::unverified,
                "adopting the memory is refused: the system does not say what is mapped there (/proc/self/smaps)",
                "let the process read /proc/self/smaps, or copy into a buffer");
inline constexpr auto adoption_of_unmapped_memory =
    error_entry("M007", Code::not_accessible,
                "adopting the memory is refused: not all of it is mapped in this process",
                "map it before, and adopt no more than what is mapped");
inline constexpr auto half_imported_dma_buf =
    error_entry("M054", Code::driver_error,
                "adopting the dma-buf failed: the driver imported it, could not map it, and did not take the import back",
                "adopt it again later; the driver's message is in the log");
inline constexpr auto adoption_of_negative_descriptor =
    error_entry("M008", Code::invalid_argument,
                "adopting the memory is refused: the file descriptor is negative",
                "give an open dma-buf");
inline constexpr auto allocator_answered_too_little =
    error_entry("M011", Code::invalid_argument,
                "an allocator was asked for {bytes:number} bytes and answered with {answered:number}",
                "let the allocator answer with a block of at least that size, or with an Error");
inline constexpr auto allocator_answered_nothing =
    error_entry("M012", Code::invalid_argument,
                "an allocator was asked for {bytes:number} bytes and answered with no memory and no error",
                "let the allocator answer with a block of at least that size, or with an Error");
inline constexpr auto allocator_answered_graph_memory =
    error_entry("M013", Code::invalid_argument,
                "an allocator answered with memory of a graph that no capture allocated",
                "let the allocator answer with a block of another kind");
inline constexpr auto allocator_of_another_device =
    error_entry("M014", Code::wrong_device,
                "an allocator of another device was asked for a buffer of this one",
                "allocate with the device that the allocator was taken from");
inline constexpr auto elements_larger_than_any_machine =
    error_entry("M016", Code::invalid_argument,
                "{count:number} elements of {element_bytes:number} bytes are more than any machine has",
                "check the element count for an overflow or a negative number");
inline constexpr auto allocation_alignment_too_coarse =
    error_entry("M017", Code::invalid_argument,
                "an alignment of {alignment:number} bytes; at most {most:number} are kept for this memory, which is one page",
                "for host memory ask for huge pages (HostPlacement::page_size); or align inside larger memory");
inline constexpr auto allocation_larger_than_any_machine =
    error_entry("M018", Code::invalid_argument,
                "{bytes:number} bytes are more than any machine has",
                "check the size for an overflow or a negative number");
inline constexpr auto kind_not_available =
    error_entry("M019", Code::unsupported,
                "{kind} memory is not to be had on this device: {reason}",
                "use allocate_shared and let the machine's row choose");
inline constexpr auto driver_without_pools =
    error_entry("M020", Code::unsupported,
                "this driver lacks functions that memory pools need",
                "update the driver, or use device memory");
inline constexpr auto kind_not_allocated =
    error_entry("M021", Code::unsupported,
                "this version does not allocate {kind} memory",
                "device, pool, managed, managed_pool, pinned, write_combined, registered, host and host_numa memory "
                "can be allocated");
inline constexpr auto pool_on_stream_of_another_device =
    error_entry("M022", Code::wrong_device,
                "memory of one device's pool was asked for on a stream of another device",
                "name a stream of the device that the pool belongs to");
inline constexpr auto memory_exhausted =
    error_entry("M023", Code::out_of_memory,
                "out of memory: {bytes:number} bytes of {kind} memory were requested, {free:number} bytes are free, "
                "{cached:number} bytes cached in pools, {pending:number} bytes released and pending; {reason}",
                "{remedy}, or let an out-of-memory handler make room");
inline constexpr auto memory_kept_back =
    error_entry("M024", Code::out_of_memory,
                "out of memory: {bytes:number} bytes of {kind} memory were requested, {free:number} bytes are free and "
                "{reserve:number} bytes of them are kept back: {reason}",
                "{remedy}");
inline constexpr auto allocator_limit_reached =
    error_entry("M025", Code::out_of_memory,
                "{bytes:number} bytes were asked for; {used:number} of {limit:number} bytes of the limit are in use",
                "release memory, or raise the limit of this allocator");
inline constexpr auto allocation_log_not_writable =
    error_entry("M026", Code::system_error,
                "the log '{path}' cannot be written: {reason}",
                "name a file in a folder that may be written");
inline constexpr auto tracked_block_released_before =
    error_entry("M027", Code::already_released,
                "the block was given back before",
                "give each block back once");
inline constexpr auto tracked_block_interior =
    error_entry("M028", Code::interior_pointer,
                "the address lies inside an outstanding block",
                "give back the block that allocate() returned");
inline constexpr auto tracked_block_unknown =
    error_entry("M029", Code::unknown_pointer,
                "this allocator did not hand the block out",
                "give it back to the allocator that did");
// The callback's number if it is a value of Code, else driver_error.
inline constexpr auto allocator_callback_failed =
    error_entry("M030", Code::ok,
                "the user's {callback} callback answered {code:number}",
                "its author knows what that means");
inline constexpr auto allocator_callback_block_unusable =
    error_entry("M031", Code::invalid_argument,
                "the user's allocate callback answered with success, but with memory that is missing, too small, misaligned "
                "or of no known kind",
                "fill in host or device, bytes and kind before answering 0");
inline constexpr auto allocator_callback_block_unknown =
    error_entry("M032", Code::unknown_pointer,
                "the user's allocator did not hand this block out",
                "give it back to the allocator that did, and once");
inline constexpr auto allocator_callback_missing =
    error_entry("M033", Code::invalid_argument,
                "an allocator of callbacks lacks its allocate or its release function",
                "give both; only destroy may be null");
inline constexpr auto call_on_empty_buffer =
    error_entry("M034", Code::invalid_handle,
                "{call}: the buffer is empty, moved from or already released",
                "use the buffer that it was moved to, or allocate a new one");
inline constexpr auto releasing_buffer_of_graph =
    error_entry("M035", Code::in_use,
                "the buffer cannot be released while a graph uses it: its work has the address",
                "destroy the graph and its instances first, or let the buffer go out of scope: the graph holds it");
inline constexpr auto allocating_from_one_block =
    error_entry("M036", Code::unsupported,
                "this allocator has one block, which its buffer holds",
                "allocate from the device, or grow the buffer");
inline constexpr auto part_of_empty_buffer =
    error_entry("M037", Code::invalid_handle,
                "a part was asked for, and the buffer is empty, moved from or already released",
                "use the buffer that it was moved to, or allocate a new one");
inline constexpr auto part_outside_of_buffer =
    error_entry("M038", Code::invalid_argument,
                "a part of {count:number} elements from element {first:number} on was asked for, and the buffer has "
                "{elements:number}",
                "ask for elements of the buffer");
inline constexpr auto part_beyond_smaller_buffer =
    error_entry("M039", Code::invalid_argument,
                "{call} of a part was refused: {reason}",
                "{remedy}");
inline constexpr auto peer_access_between_runtimes =
    error_entry("M040", Code::wrong_device,
                "access of {device} to memory of {owner} was not switched: the devices belong to two runtimes",
                "open one Runtime and take both devices from it");
inline constexpr auto peer_access_to_itself =
    error_entry("M041", Code::invalid_argument,
                "access of {device} to memory of {owner} was not switched: it is the same device",
                "name another device");
inline constexpr auto peer_access_with_cpu =
    error_entry("M042", Code::unsupported,
                "access of {device} to memory of {owner} was not switched: access between CPU and GPU is not switched",
                "ask can_access(buffer), and use allocate_shared for memory that both sides use");
inline constexpr auto peer_access_without_driver_calls =
    error_entry("M043", Code::unsupported,
                "access of {device} to memory of {owner} was not switched: this device's driver cannot switch it",
                "copy between the devices");
inline constexpr auto peer_access_without_link =
    error_entry("M044", Code::unsupported,
                "access of {device} to memory of {owner} was not switched: no link between them carries it",
                "copy between the devices; the driver goes through host memory where it must");
inline constexpr auto no_pools_of_kind =
    error_entry("M045", Code::invalid_argument,
                "there are no pools of {kind} memory",
                "ask for MemoryKind::pool or MemoryKind::managed_pool");
inline constexpr auto no_pools_on_cpu =
    error_entry("M046", Code::unsupported,
                "the CPU device has no pools: its memory is the system's",
                "use its allocators, which give host memory of every kind");
inline constexpr auto pool_letting_in_another_runtime =
    error_entry("M047", Code::wrong_device,
                "a pool was to let in a device of another runtime",
                "name a device of the runtime that the pool belongs to");
inline constexpr auto pool_shutting_out_its_device =
    error_entry("M048", Code::invalid_argument,
                "a device's access to its own pool cannot be taken away",
                "name another device");
inline constexpr auto pool_letting_in_the_cpu =
    error_entry("M049", Code::unsupported,
                "the CPU touches pool memory on no machine",
                "share memory: allocate_shared");
inline constexpr auto pool_letting_in_unreachable_device =
    error_entry("M050", Code::unsupported,
                "the two devices cannot reach each other's memory",
                "copy between them; the driver stages where there is no direct way");
inline constexpr auto allocation_in_body =
    error_entry("M051", Code::unsupported,
                "memory was to be allocated in the body of a loop or a branch, where CUDA allows no such nodes",
                "allocate before the loop or the branch, in the same capture or outside of it");
inline constexpr auto allocator_answered_unaligned =
    error_entry("M052", Code::invalid_argument,
                "an allocator answered with memory that is not aligned to the {alignment:number} bytes asked for",
                "let the allocator keep AllocationRequest::alignment, or answer with an Error");
inline constexpr auto adoption_of_released_memory =
    error_entry("M053", Code::in_use,
                "memory was to be adopted that was released, and that a device of this runtime keeps for its next "
                "allocation",
                "use memory that is not released; Device::trim_cache() gives kept memory back");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
