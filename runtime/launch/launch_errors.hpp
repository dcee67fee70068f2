// SPDX-License-Identifier: Apache-2.0
// The errors of launches and of their arguments, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto argument_number_does_not_fit =
    error_entry("L001", Code::invalid_argument,
                "{argument} was given a number that its type does not hold",
                "pass a number within the parameter's range");
inline constexpr auto argument_buffer_is_empty =
    error_entry("L002", Code::invalid_handle,
                "{argument} is an empty, moved-from or released buffer",
                "pass the buffer that it was moved to");
// Code, reason and remedy are those of the judgement.
inline constexpr auto argument_refused =
    error_entry("L003", Code::ok,
                "{argument} is {memory} and was given to {device}: {reason}",
                "{remedy}");
inline constexpr auto concurrent_argument_needs_copies =
    error_entry("L004", Code::not_accessible,
                "{argument} is to be used concurrently and would be copied around the kernel: the host and {device} "
                "would each use a side of their own; it is copied because {reason}",
                "pass a buffer of pinned memory, which both sides use in place");
inline constexpr auto argument_of_one_device_only =
    error_entry("L005", Code::wrong_device,
                "{argument} is counted by the threads of one device and was given to {device}, which did not make it",
                "make one for each device, and add up");
// Code, reason and remedy are those of the rules.
inline constexpr auto atomics_refused =
    error_entry("L006", Code::ok,
                "{what}: {reason}",
                "{remedy}");
// Code, reason and remedy are those of opening the buffer.
inline constexpr auto argument_not_usable =
    error_entry("L007", Code::ok,
                "{argument} cannot be used now: {reason}",
                "{remedy}");
inline constexpr auto argument_copied_in_capture =
    error_entry("L008", Code::capture_error,
                "{argument} would have to be copied around the kernel, and a capture is open: a graph would copy from "
                "and to the same host memory at every replay",
                "copy it into a buffer of the device before the capture, or use memory that the device reaches");
inline constexpr auto staged_upload_timed_out =
    error_entry("L009", Code::timed_out,
                "the stream has not come to copying a staged launch's arguments yet",
                "keep the host memory unchanged until the stream is synchronized, or allow a longer wait");
inline constexpr auto launch_waits_or_copies_in_capture =
    error_entry("L010", Code::capture_error,
                "a capture is open, and this launch would have to wait or to copy around the kernel",
                "use LaunchMode::checked and memory that the device reaches");
inline constexpr auto verify_in_capture =
    error_entry("L011", Code::capture_error,
                "kernel '{kernel}' was launched in verify mode while a capture is open: a captured launch does not run, "
                "so that there is nothing to wait for",
                "capture it in another mode, and verify the launch outside the capture");
// Code, reason and remedy are those of waiting for the kernel.
inline constexpr auto verified_kernel_failed =
    error_entry("L012", Code::ok,
                "kernel '{kernel}', verified after its launch: {reason}",
                "{remedy}");
inline constexpr auto extent_is_negative =
    error_entry("L013", Code::invalid_argument,
                "kernel '{kernel}' was launched over {number:number} {items}, and a launch has no negative size",
                "pass 0 to launch nothing; check the difference, or the failed call, that the number comes from");
inline constexpr auto extent_is_too_large =
    error_entry("L014", Code::invalid_argument,
                "kernel '{kernel}' was launched over {number:number} {items}; at most {most:number} fit into one launch, "
                "on every device, because a CUDA grid has no more blocks",
                "launch several times over parts, or let each item of a smaller launch do several; check the size for "
                "an overflow");
inline constexpr auto descriptor_negative_extent =
    error_entry("L020", Code::invalid_argument,
                "{what} has an extent of {extent:number} in dimension {dimension:number}",
                "fill in the number of elements along each dimension");
inline constexpr auto descriptor_too_large =
    error_entry("L021", Code::invalid_argument,
                "{what} names more bytes than there are addresses",
                "its extents or its offset were not filled in by the producer");
inline constexpr auto descriptor_strided =
    error_entry("L022", Code::invalid_argument,
                "{what} has a stride of {stride:number} {unit} in dimension {dimension:number}, where elements that lie one "
                "behind the other in C order have {expected:number}",
                "make it contiguous first (contiguous() in torch, ascontiguousarray() in CuPy)");
inline constexpr auto descriptor_read_only =
    error_entry("L023", Code::not_permitted,
                "{what} is read-only, and a view that writes was asked for",
                "ask for foreign_view<const T>, or copy it");
inline constexpr auto descriptor_null =
    error_entry("L024", Code::invalid_argument,
                "{what} of {count:number} elements has a null pointer",
                "only one without elements may be null");
inline constexpr auto descriptor_misaligned =
    error_entry("L025", Code::invalid_argument,
                "{what} begins {rest:number} bytes behind a multiple of {alignment:number}, which its elements must begin at",
                "copy it into a buffer, or ask for elements with a smaller alignment");
inline constexpr auto descriptor_typestr_unknown =
    error_entry("L026", Code::invalid_argument,
                "'{typestr}' is no type of elements in a CUDA array",
                "fill in byte order, kind and size, as in \"<f4\"");
inline constexpr auto descriptor_of_another_type =
    error_entry("L027", Code::invalid_argument,
                "{what} has elements of type {given}, and a view of {wanted} was asked for",
                "ask for the type that it has, convert it first, or specialise DescribedElement");
inline constexpr auto descriptor_big_endian =
    error_entry("L028", Code::invalid_argument,
                "a CUDA array has elements '{typestr}', whose bytes are in the order of other machines",
                "convert them to little-endian first");
inline constexpr auto descriptor_of_another_kind_of_device =
    error_entry("L029", Code::unsupported,
                "a DLPack tensor lies on a device of type {type:number}, whose memory CUDA does not know",
                "types 1 (CPU), 2 (CUDA), 3 (CUDA host) and 13 (CUDA managed) are taken: copy it to one of these");
inline constexpr auto descriptor_of_another_device =
    error_entry("L030", Code::wrong_device,
                "a DLPack tensor lies on GPU {id:number} of the process, and was to be viewed for {device}",
                "name the device that it lies on, or copy it between the devices");
inline constexpr auto descriptor_without_shape =
    error_entry("L031", Code::invalid_argument,
                "{what} of {rank:number} dimensions has no shape",
                "fill in ndim and shape");
inline constexpr auto descriptor_masked =
    error_entry("L032", Code::invalid_argument,
                "a CUDA array has a mask, which a view cannot apply",
                "pass data and mask as two arrays");
inline constexpr auto descriptor_strides_of_other_rank =
    error_entry("L033", Code::invalid_argument,
                "a CUDA array has {strides:number} strides and {rank:number} dimensions",
                "give one stride for each dimension, or none for C order");
inline constexpr auto descriptor_stream_zero =
    error_entry("L034", Code::invalid_argument,
                "a CUDA array names stream 0, which its protocol excludes: it could be no stream or the default one",
                "name 1 for the legacy default stream, or no stream");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
