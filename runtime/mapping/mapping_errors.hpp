// SPDX-License-Identifier: Apache-2.0
// Error entries: virtual memory, growable buffers, mirrored buffers and multicast objects.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto growable_buffer_is_empty =
    error_entry("V001", Code::invalid_handle,
                "{what}: the buffer is empty, moved from, released or another buffer's now",
                "use the buffer that it was moved to, or make a new one");
inline constexpr auto trimming_in_capture =
    error_entry("V002", Code::capture_error,
                "trimming a buffer was refused: a capture is open, and its graph may be about to use the memory",
                "trim it when the capture has ended");
inline constexpr auto trimming_buffer_of_graph =
    error_entry("V003", Code::in_use,
                "the buffer cannot be trimmed while a graph uses it: its work has the address",
                "destroy the graph and its instances first");
inline constexpr auto trimming_buffer_with_parts =
    error_entry("V004", Code::in_use,
                "the buffer cannot be trimmed: parts of it were made, which may reach that far",
                "keep its memory, or use views of the whole buffer only");
inline constexpr auto trimming_buffer_with_open_view =
    error_entry("V005", Code::in_use,
                "the buffer cannot be trimmed while a host view of it is open",
                "let the view go out of scope first");
inline constexpr auto growable_buffer_size =
    error_entry("V006", Code::invalid_argument,
                "a growable buffer of at most {bytes:number} bytes cannot be made",
                "name as many elements as it may ever have: addresses cost no memory, but they end");
inline constexpr auto growing_beyond_addresses =
    error_entry("V007", Code::invalid_argument,
                "a buffer with addresses for {bytes:number} bytes was to grow beyond them",
                "make it with as many elements as it may ever have: addresses cost no memory");
inline constexpr auto growable_buffer_not_available =
    error_entry("V008", Code::unsupported,
                "a growable buffer cannot be had on this device: {reason}",
                "{remedy}");
inline constexpr auto letting_null_device_in =
    error_entry("V009", Code::invalid_argument,
                "a null Device was to be let into {what}",
                "name devices");
inline constexpr auto letting_device_of_another_runtime_in =
    error_entry("V010", Code::wrong_device,
                "a device of another runtime was to be let into {what}",
                "name devices of the runtime that it is made in");
inline constexpr auto host_memory_out_of_reach =
    error_entry("V011", Code::unsupported,
                "{device} does not reach the host memory that the buffer would lie in",
                "copy into memory of that device");
inline constexpr auto mirrored_buffer_size =
    error_entry("V012", Code::invalid_argument,
                "a ring of {bytes:number} bytes cannot be made",
                "check the number of elements for zero, an overflow or a negative number");
inline constexpr auto mirrored_buffer_not_available =
    error_entry("V013", Code::unsupported,
                "a mirrored buffer cannot be had on this device: {reason}",
                "{remedy}");
// Code, reason and remedy are the rule's.
inline constexpr auto mapping_refused =
    error_entry("V014", Code::ok,
                "{what} was refused: {reason}",
                "{remedy}");
inline constexpr auto mapping_is_gone =
    error_entry("V015", Code::invalid_handle,
                "{what}: the mapping is empty, moved from or already unmapped",
                "use the Mapping that it was moved to, or map the memory again");
inline constexpr auto physical_memory_moved_from =
    error_entry("V016", Code::invalid_handle,
                "physical memory was moved from",
                "use what it was moved to");
inline constexpr auto physical_memory_export_refused =
    error_entry("V017", Code::unsupported,
                "exporting physical memory was refused: {reason}",
                "{remedy}");
inline constexpr auto imported_size_off_granularity =
    error_entry("V018", Code::invalid_argument,
                "importing physical memory was refused: {bytes:number} bytes are no multiple of the granularity "
                "({granularity:number})",
                "pass what PhysicalMemory::size_bytes() says where it is exported");
inline constexpr auto memory_of_another_device =
    error_entry("V019", Code::wrong_device,
                "{what} was refused: the memory does not lie on {device}",
                "name the device that it was created with");
inline constexpr auto import_without_descriptor =
    error_entry("V020", Code::invalid_argument,
                "{what} was refused: there is no descriptor",
                "pass what was exported");
inline constexpr auto imported_handle_unknown_to_driver =
    error_entry("V021", Code::invalid_argument,
                "{what} was refused: the handle names no memory of this driver, or its exporter gave it up ({reason})",
                "pass the handle itself, as it was exported by a process on the same driver");
inline constexpr auto physical_memory_of_no_bytes =
    error_entry("V022", Code::invalid_argument,
                "physical memory of 0 bytes was asked for",
                "ask for at least one byte");
inline constexpr auto driver_tells_no_granularity =
    error_entry("V024", Code::driver_error,
                "the driver tells no granularity of memory",
                "update the driver");
inline constexpr auto reservation_alignment =
    error_entry("V025", Code::invalid_argument,
                "an alignment of {bytes:number} bytes is no power of two",
                "ask for a power of two, or 0 for the driver's own");
inline constexpr auto reservation_size =
    error_entry("V026", Code::invalid_argument,
                "{bytes:number} bytes of addresses cannot be reserved",
                "check the size for zero, an overflow or a negative number");
inline constexpr auto mapping_what_was_moved_from =
    error_entry("V027", Code::invalid_handle,
                "mapping memory: the reservation or the memory was moved from or released",
                "use what it was moved to");
inline constexpr auto mapping_memory_of_another_runtime =
    error_entry("V028", Code::wrong_device,
                "memory of another runtime was to be mapped",
                "create the memory and reserve the addresses with devices of one runtime");
inline constexpr auto mapping_into_released_reservation =
    error_entry("V029", Code::invalid_handle,
                "mapping memory: the reservation was released",
                "reserve addresses again");
inline constexpr auto releasing_reservation_moved_from =
    error_entry("V030", Code::invalid_handle,
                "releasing a reservation that was moved from or released",
                "use what it was moved to");
inline constexpr auto reservation_released_before =
    error_entry("V031", Code::already_released,
                "the reservation was released before",
                "release it once");
inline constexpr auto asking_access_of_another_runtime =
    error_entry("V032", Code::wrong_device,
                "access of a device of another runtime was asked for",
                "name a device of the runtime that the mapping belongs to");
inline constexpr auto letting_devices_into_unmapped_memory =
    error_entry("V033", Code::invalid_handle,
                "letting devices into memory that was unmapped",
                "map it again");
inline constexpr auto unmapping_in_capture =
    error_entry("V034", Code::capture_error,
                "unmapping memory was refused: a capture is open, and its graph may be about to use the memory",
                "end the capture first, or let the Mapping go out of scope: it is unmapped behind the capture");
inline constexpr auto unmapped_before =
    error_entry("V035", Code::invalid_handle,
                "unmapping memory: it was unmapped before",
                "unmap it once");
inline constexpr auto multicast_object_moved_from =
    error_entry("V036", Code::invalid_handle,
                "{what}: the group or object was moved from or completed",
                "use what it was moved to, or the object that the group completed to");
inline constexpr auto driver_tells_no_multicast_granularity =
    error_entry("V037", Code::driver_error,
                "the driver tells no granularity of multicast objects",
                "update the driver");
inline constexpr auto adding_device_of_another_runtime =
    error_entry("V038", Code::wrong_device,
                "a device of another runtime was to be added to a multicast group",
                "add devices of the runtime that the group was made in");
inline constexpr auto unbinding_in_capture =
    error_entry("V039", Code::capture_error,
                "unbinding memory was refused: a capture is open, and its graph may be about to use the memory",
                "end the capture first, or let the MulticastObject go out of scope");
inline constexpr auto unbinding_where_nothing_is_bound =
    error_entry("V040", Code::invalid_argument,
                "memory of {device} was not bound at offset {offset:number}",
                "name the offset that it was bound at: what was bound as one goes as one");
inline constexpr auto no_memory_mapped_there =
    error_entry("V041", Code::invalid_argument,
                "{what} was refused: no memory with a handle is mapped at {address:number}",
                "name an address at which cuMemMap, or a Mapping, has put memory; allocations have no handle");
inline constexpr auto multicast_object_mapped_there =
    error_entry("V042", Code::invalid_argument,
                "{what} was refused: a multicast object is mapped at {address:number}",
                "name an address of the memory that is bound to it");
inline constexpr auto driver_tells_no_mapping =
    error_entry("V043", Code::unsupported,
                "{what} was refused: the driver does not tell how much memory is mapped there",
                "update the driver, or keep the PhysicalMemory where it is made");
inline constexpr auto paged_pool_moved_from =
    error_entry("V044", Code::invalid_handle,
                "{what}: the pool was moved from",
                "use what it was moved to");
inline constexpr auto pool_without_free_pages =
    error_entry("V045", Code::out_of_memory,
                "{wanted:number} pages were to be taken, and {free:number} of the pool's {pages:number} are free",
                "grow() the pool, or unmap pages and drop their last Page");
inline constexpr auto paged_range_size =
    error_entry("V046", Code::invalid_argument,
                "a paged range of {slots:number} slots cannot be made",
                "name as many slots as it may ever need: addresses cost no memory, but they end");
inline constexpr auto mapping_no_page =
    error_entry("V047", Code::invalid_handle,
                "an empty Page was to be mapped",
                "map pages that PagedPool::take() or PagedRange::page() gave");
inline constexpr auto page_of_another_pool =
    error_entry("V048", Code::invalid_argument,
                "a page of another pool was to be mapped",
                "take the page from the pool that the range was made with");
inline constexpr auto page_twice_in_a_range =
    error_entry("V049", Code::in_use,
                "a page was to be mapped a second time in one range",
                "map each page once in a range; another range may have it, too");
inline constexpr auto unmapping_pages_in_capture =
    error_entry("V050", Code::capture_error,
                "unmapping pages was refused: a capture is open, and its graph may be about to use the memory",
                "unmap them when the capture has ended, or release the range: its pages go behind the capture");
inline constexpr auto unmapping_pages_of_graph =
    error_entry("V051", Code::in_use,
                "pages cannot be unmapped while a graph uses the range: its work has the addresses",
                "destroy the graph and its instances first");
inline constexpr auto unmapping_pages_with_parts =
    error_entry("V052", Code::in_use,
                "pages cannot be unmapped: parts of the range were made, which may reach there",
                "keep the pages until the range is released, or use the whole range only");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
