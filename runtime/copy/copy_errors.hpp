// SPDX-License-Identifier: Apache-2.0
// The errors of copies, fills, hints and read_back, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto copy_of_empty_buffer =
    error_entry("C001", Code::invalid_handle,
                "a copy: the buffer is empty, moved from or already released",
                "pass the buffer that it was moved to");
inline constexpr auto empty_side_of_copy =
    error_entry("C002", Code::invalid_handle,
                "{operation} ({side}): the buffer is empty, moved from or already released",
                "pass the buffer that it was moved to");
inline constexpr auto copy_side_of_another_runtime =
    error_entry("C003", Code::wrong_device,
                "{side} of {operation} belongs to another runtime",
                "use one runtime for both, or copy through memory of the program's own");
inline constexpr auto copy_between_sizes =
    error_entry("C004", Code::invalid_argument,
                "a copy of {from:number} bytes into a buffer of {to:number}",
                "give both buffers the same size, or say what to copy where");
inline constexpr auto copy_row_pitch_too_small =
    error_entry("C005", Code::invalid_argument,
                "{side} has a row pitch of {pitch:number} elements for rows of {width:number}",
                "give a pitch of at least the width, or 0 for rows without gaps");
inline constexpr auto copy_slice_pitch_too_small =
    error_entry("C006", Code::invalid_argument,
                "{side} has a slice pitch of {pitch:number} elements, and a slice reaches further than that",
                "give a pitch of at least (height - 1) rows and a width, or 0 for slices without gaps");
inline constexpr auto copy_box_overflows =
    error_entry("C007", Code::invalid_argument,
                "{side} has an offset, pitch or size beyond all addresses",
                "check them for an overflow or a negative number");
inline constexpr auto copy_box_outside =
    error_entry("C008", Code::invalid_argument,
                "{side} has {elements:number} elements, and the box ends {behind:number} behind its end",
                "make the box or the offset smaller");
inline constexpr auto copy_overlaps =
    error_entry("C009", Code::invalid_argument,
                "source and destination of a copy overlap",
                "copy through another buffer, or in parts that do not overlap");
inline constexpr auto copy_refused =
    error_entry("C010", Code::unsupported,
                "a copy was refused: {reason}",
                "{remedy}");
inline constexpr auto pageable_copy_in_capture =
    error_entry("C011", Code::capture_error,
                "a copy of pageable memory cannot be captured: it passes through borrowed memory",
                "copy from or to pinned memory, which the graph then uses at every replay");
inline constexpr auto no_fill_pattern =
    error_entry("C012", Code::unsupported,
                "the driver fills no pattern of {bytes:number} bytes",
                "1, 2, 4, and without gaps 8 and 16 bytes can be filled on the device; for others write a kernel, or fill one side "
                "in host memory and copy it");
inline constexpr auto no_fill_pattern_with_gaps =
    error_entry("C013", Code::unsupported,
                "the driver fills no pattern of {bytes:number} bytes in rows with gaps",
                "1, 2, 4, and without gaps 8 and 16 bytes can be filled on the device; for others write a kernel, or fill one side "
                "in host memory and copy it");
inline constexpr auto hinted_numa_node_missing =
    error_entry("C014", Code::invalid_argument,
                "this machine has no NUMA node {node:number}",
                "ask Runtime::machine() for the nodes, or name none");
inline constexpr auto read_back_of_empty_buffer =
    error_entry("C015", Code::invalid_handle,
                "read_back: the buffer is empty, moved from or already released",
                "use the buffer that it was moved to, or allocate a new one");
inline constexpr auto read_back_in_capture =
    error_entry("C016", Code::capture_error,
                "read_back waits for the device, and this thread has a capture open: what is captured does not run",
                "copy into another buffer within the capture, and read that back when the graph has run");
inline constexpr auto read_back_needs_a_copy =
    error_entry("C017", Code::not_ready,
                "the buffer's content lies in {kind} memory, which takes a copy to read, and waiting was ruled out",
                "allow a wait, or copy to the host on a stream and ask later");
inline constexpr auto node_beside_other_advice =
    error_entry("C018", Code::invalid_argument,
                "advice about node {node:number} of the host was asked for, and it is not Advice::prefer_host",
                "name a node with Advice::prefer_host only");
inline constexpr auto hint_about_null_buffer =
    error_entry("C019", Code::invalid_handle,
                "{what} names a null buffer",
                "list buffers only");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
