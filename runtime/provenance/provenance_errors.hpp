// SPDX-License-Identifier: Apache-2.0
// The errors of the address map, the ledger, allocators and host slabs, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto record_is_no_allocation =
    error_entry("P001", Code::invalid_argument,
                "{range} are no allocation",
                "check the length for zero, an overflow or a negative number");
inline constexpr auto record_overlaps_another =
    error_entry("P002", Code::invalid_argument,
                "{range} overlap a live allocation of {known}",
                "forget the allocation that was freed before its addresses are used again");
inline constexpr auto address_map_is_full =
    error_entry("P003", Code::out_of_memory,
                "no memory to remember another allocation",
                "");
inline constexpr auto allocator_handle_is_empty =
    error_entry("P004", Code::invalid_handle,
                "{what}: the allocator handle is empty",
                "take one from Device::allocator(), a pool or an adaptor");
inline constexpr auto allocation_alignment =
    error_entry("P005", Code::invalid_argument,
                "an alignment of {bytes:number} bytes is not a power of two",
                "ask for 1, 2, 4 … 256 bytes");
inline constexpr auto host_piece_of_no_bytes =
    error_entry("P006", Code::invalid_argument,
                "{bytes:number} bytes of host memory, aligned to {alignment:number}, were asked for: an allocation has "
                "at least 1 byte",
                "ask for at least 1");
inline constexpr auto host_piece_alignment =
    error_entry("P007", Code::invalid_argument,
                "{bytes:number} bytes of host memory, aligned to {alignment:number}, were asked for: an alignment is a "
                "power of two",
                "ask for alignof(T), or for 256");
inline constexpr auto host_piece_too_large =
    error_entry("P008", Code::invalid_argument,
                "{bytes:number} bytes of host memory, aligned to {alignment:number}, were asked for: more than an "
                "address space has",
                "check the size for an overflow or a negative number");
inline constexpr auto releasing_inside_host_piece =
    error_entry("P009", Code::invalid_argument,
                "releasing host memory: the address is {offset:number} bytes inside an allocation",
                "release the address that allocate() returned");
inline constexpr auto releasing_host_piece_again =
    error_entry("P010", Code::invalid_handle,
                "releasing host memory: nothing is allocated at this address any more",
                "release each allocation once");
inline constexpr auto releasing_other_host_memory =
    error_entry("P011", Code::invalid_argument,
                "releasing host memory: the address is not of these slabs",
                "release memory where it was allocated");
inline constexpr auto adopted_memory_overlaps =
    error_entry("P012", Code::in_use,
                "memory was to be adopted that overlaps a buffer of this runtime, or memory that was released and that "
                "the driver still has registered",
                "use that buffer, also on other devices; memory is adopted once, and as a whole");
inline constexpr auto resizing_unknown_memory =
    error_entry("P013", Code::invalid_handle,
                "memory that is not in the books was to grow or shrink",
                "enter it first");
inline constexpr auto block_released_before =
    error_entry("P014", Code::already_released,
                "releasing 0x{address} (identity {identity:number}): it was released before",
                "give each block back once; its address may be another allocation's by now");
inline constexpr auto block_of_another_runtime =
    error_entry("P015", Code::wrong_device,
                "releasing 0x{address} (identity {identity:number}): another runtime handed it out",
                "give it back through an allocator of the runtime that it came from");
inline constexpr auto block_of_another_device =
    error_entry("P016", Code::wrong_device,
                "releasing 0x{address} (identity {identity:number}): it belongs to another device",
                "give it back through an allocator of the device that it came from");
inline constexpr auto block_within_another =
    error_entry("P017", Code::interior_pointer,
                "releasing 0x{address} (identity {identity:number}): the address lies inside an allocation",
                "give back the block as the allocator returned it");
inline constexpr auto block_address_within_it =
    error_entry("P018", Code::interior_pointer,
                "releasing 0x{address} (identity {identity:number}): the address lies inside the allocation",
                "give back the block as the allocator returned it");
inline constexpr auto block_of_another_address =
    error_entry("P019", Code::unknown_pointer,
                "releasing 0x{address} (identity {identity:number}): the identity belongs to another address",
                "give back the block as the allocator returned it");
inline constexpr auto block_known_by_address_alone =
    error_entry("P020", Code::unknown_pointer,
                "releasing 0x{address} (identity {identity:number}): the address is known, and the identity is not",
                "give back the whole block: an address alone may name other memory by then");
inline constexpr auto block_is_unknown =
    error_entry("P021", Code::unknown_pointer,
                "releasing 0x{address} (identity {identity:number}): this runtime handed out no such block",
                "give it back to the allocator that it came from");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
