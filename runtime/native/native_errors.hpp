// SPDX-License-Identifier: Apache-2.0
// The errors of work that other code gives to a stream, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
// Code, reason and remedy are those of the Result that the work returned.
inline constexpr auto native_work_failed =
    error_entry("N001", Code::ok,
                "work '{name}' of other code: {reason}",
                "{remedy}");
inline constexpr auto native_work_answered =
    error_entry("N002", Code::driver_error,
                "work '{name}' of other code answered {number:number}",
                "look the number up in the library that the work calls");
inline constexpr auto native_work_threw =
    error_entry("N003", Code::driver_error,
                "an exception left the work '{name}' of other code",
                "catch it there, and return an error");
inline constexpr auto native_work_failed_in_capture =
    error_entry("N004", Code::capture_error,
                "{reason}; it was captured, and some of its calls may be nodes already: the capture makes no graph of them",
                "end the capture and record again; {remedy}");
inline constexpr auto native_work_verified_in_capture =
    error_entry("N005", Code::capture_error,
                "work '{name}' was to be verified while a capture is open, where nothing runs",
                "capture it in another launch mode, and verify it outside of the capture");
// Code, reason and remedy are those of waiting for the work.
inline constexpr auto verified_native_work_failed =
    error_entry("N006", Code::ok,
                "work '{name}' of other code, verified after it was given: {reason}",
                "{remedy}");
inline constexpr auto native_work_not_kept =
    error_entry("N007", Code::capture_error,
                "work '{name}' was captured on the CPU device, whose graph calls a copy of it at each launch, and it cannot be "
                "copied",
                "capture a function object that can be copied");
inline constexpr auto native_scope_needs_copies =
    error_entry("N008", Code::unsupported,
                "work '{name}', argument {argument:number}, would have to be copied to {device} and back around a native scope",
                "give the work with enqueue_native(), which copies, or use memory that the device reaches");
inline constexpr auto native_scope_moved_from =
    error_entry("N009", Code::invalid_handle,
                "a native scope that was moved from was closed",
                "close the scope that it was moved to");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
