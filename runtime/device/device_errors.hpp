// SPDX-License-Identifier: Apache-2.0
// The errors of an opened device, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto runtime_of_the_parent =
    error_entry("E001", Code::forked,
                "{call} was refused: this runtime was opened before fork()",
                "start the child before opening a Runtime, or with exec; a Runtime that the child opens has no GPUs if "
                "its parent used CUDA");
inline constexpr auto called_from_host_function =
    error_entry("E002", Code::not_permitted,
                "{call} was refused: the call came from a host function, where the driver takes none",
                "let the host function tell another thread, which makes the call");
inline constexpr auto device_is_lost =
    error_entry("E003", Code::device_lost,
                "{call} was refused: {device} reported a fault from which the driver does not recover in this "
                "process{suspects}",
                "read what host memory holds, then end the process and start again; run the failing kernel under "
                "compute-sanitizer");
inline constexpr auto would_wait_for_service =
    error_entry("E004", Code::in_use,
                "{call} was refused while {service} runs, because it would wait for it: {reason}",
                "{remedy}");
inline constexpr auto service_not_started_beside_call =
    error_entry("E005", Code::timed_out,
                "the service '{service}' was not started beside another thread that is {deed}, and would then wait for it: "
                "{reason}",
                "start the service when no other work is under way, or allow longer waits");
inline constexpr auto bounce_buffers_in_use =
    error_entry("E006", Code::timed_out,
                "all bounce buffers for copies of pageable memory are still in use",
                "copy from pinned memory, which needs none; a kernel that hangs holds up its stream's copies");
inline constexpr auto pool_memory_not_free_in_time =
    error_entry("E007", Code::timed_out,
                "pool memory that was released behind running work did not come free in time",
                "allocate on the stream that uses it, or find out why the work hangs");
inline constexpr auto call_would_end_capture =
    error_entry("E008", Code::capture_error,
                "{call} was refused: a capture is open on this thread, and the call would end it",
                "allocate before the capture begins, or use Stream::allocate, whose pool memory a capture can hold");
// A fault in a kernel: what the driver's answer means, and what may have caused it. Reason and remedy are the driver's.
inline constexpr auto fault_with_suspects =
    error_entry("E009", Code::device_lost,
                "{reason}{suspects}",
                "{remedy}");
inline constexpr auto called_inside_another_call =
    error_entry("E010", Code::not_permitted,
                "{call} was refused: this thread is inside a call that works on a stream, whose lock it holds: the refused "
                "call came from a signal handler, or from a callback below that call",
                "let the handler set a flag or write to a pipe, and make the call when the other one has returned");
inline constexpr auto called_from_native_work =
    error_entry("E011", Code::not_permitted,
                "{call} was refused: the call came from work of other code that a stream is being given, with the stream held",
                "let the work give its own library's or the driver's calls to the stream, and make this call before or behind it");
inline constexpr auto refused_in_sealed_scope =
    error_entry("E012", Code::not_permitted,
                "{call} was refused in a sealed scope: it would {act}",
                "{remedy}; SealMode::report counts it instead");
inline constexpr auto step_refused_in_sealed_scope =
    error_entry("E013", Code::not_permitted,
                "{call} was refused in a sealed scope: it would {act} ({driver_call})",
                "{remedy}; SealMode::report counts it instead");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
