// SPDX-License-Identifier: Apache-2.0
// The errors of streams and events, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto capture_is_over =
    error_entry("S001", Code::capture_error,
                "the event was recorded in a capture that is over: it follows work that did not run",
                "record the event again, outside of captures");
inline constexpr auto event_from_outside =
    error_entry("S002", Code::capture_error,
                "a captured stream was to wait for an event from outside of the capture, which is no part of the graph",
                "let the first stream wait for it before the capture begins, or launch the graph behind it");
inline constexpr auto event_of_another_capture =
    error_entry("S003", Code::capture_error,
                "a captured stream was to wait for an event of another capture: two cannot become one",
                "record both streams' work in one capture: let the second stream join it by waiting for an event");
inline constexpr auto capture_of_another_runtime =
    error_entry("S004", Code::wrong_device,
                "the capture belongs to another runtime than the stream that was to join it",
                "open all devices that take part in a capture with one runtime");
inline constexpr auto capture_of_gpu_and_cpu =
    error_entry("S005", Code::capture_error,
                "a capture takes in streams of GPUs or of CPU devices, not of both",
                "give the CPU's part outside of the graph, before or behind its launch");
inline constexpr auto interprocess_event_in_capture =
    error_entry("S006", Code::capture_error,
                "an event for other processes was to be recorded in a capture",
                "record it behind the graph's launch");
inline constexpr auto no_answer_in_capture =
    error_entry("S007", Code::capture_error,
                "{call} was refused: the event was last recorded in a capture, where nothing runs",
                "launch the graph and wait for its stream, or record the event again outside of captures");
// not_ready where the call may not wait, otherwise timed_out.
inline constexpr auto event_is_being_recorded =
    error_entry("S008", Code::ok,
                "{call} could not continue: another thread is blocked in the driver, in a record of the event",
                "allow a longer wait; behind a kernel that hangs the stream's queue in the driver stays full");
inline constexpr auto shared_event_not_ready =
    error_entry("S009", Code::not_ready,
                "the work behind an event of several processes is still running",
                "ask again later, or allow a wait");
inline constexpr auto shared_event_timed_out =
    error_entry("S010", Code::timed_out,
                "the work behind an event of several processes has not finished within {timeout:number} µs",
                "give a longer timeout if it is meant to take that long; a process that has ended before its record "
                "was reached leaves the event so for good: a Channel between the two tells of its end");
inline constexpr auto interprocess_timing_event =
    error_entry("S011", Code::invalid_argument,
                "an event that both measures time and is open to other processes",
                "make two events: the driver times none that other processes can open");
inline constexpr auto no_interprocess_events =
    error_entry("S012", Code::unsupported,
                "an event for other processes: {reason}",
                "wait for an ordinary event here, then tell the other process by a message or a word in shared memory");
inline constexpr auto elapsed_time_between_devices =
    error_entry("S013", Code::wrong_device,
                "the two events belong to different devices",
                "time on one device, or use the host's clock around a synchronise");
inline constexpr auto elapsed_time_without_timing =
    error_entry("S014", Code::invalid_argument,
                "elapsed time needs two events that were made with timing",
                "create_event({.timing = true}) or record({.timing = true})");
inline constexpr auto elapsed_time_without_record =
    error_entry("S015", Code::invalid_argument,
                "an event that was never recorded has no time",
                "record both events first");
inline constexpr auto elapsed_time_not_ready =
    error_entry("S016", Code::not_ready,
                "the work between the two events is still running",
                "synchronize the later one");
inline constexpr auto stream_of_another_context =
    error_entry("S017", Code::wrong_device,
                "the stream belongs to another context than the primary one of {device}",
                "wrap it with the device whose primary context it was made in; streams of other contexts cannot be used");
inline constexpr auto no_external_cpu_stream =
    error_entry("S018", Code::unsupported,
                "the CPU device has no streams that other code could make",
                "use its own stream()");
inline constexpr auto per_thread_default_stream =
    error_entry("S019", Code::unsupported,
                "the per-thread default stream was to be wrapped, which is another one on each thread",
                "make a stream, and wrap that");
inline constexpr auto event_of_another_device =
    error_entry("S020", Code::wrong_device,
                "the event belongs to another device than the stream",
                "make the event with this stream's device, or let the other stream wait for it");
inline constexpr auto interprocess_event_of_another_device =
    error_entry("S021", Code::wrong_device,
                "a stream of {stream_device} may not wait for an event for other processes of {event_device}: drivers were seen "
                "to crash in that call",
                "let a stream of the event's device wait for it, record an ordinary event behind that, and wait for this one");
inline constexpr auto no_native_cpu_stream =
    error_entry("S022", Code::unsupported,
                "the CPU device's streams are not a driver's",
                "use a stream of a GPU");
inline constexpr auto native_event_without_record =
    error_entry("S023", Code::invalid_argument,
                "the driver's event of an event that was never recorded was asked for: it may have an older record of other work",
                "record it first, and ask again after each record");
inline constexpr auto null_native_event =
    error_entry("S024", Code::invalid_handle,
                "a stream was to wait for the null event",
                "pass the CUevent that other code has recorded");
inline constexpr auto native_event_timed_out =
    error_entry("S026", Code::timed_out,
                "the work behind an event of other code has not finished within {timeout:number} µs",
                "give the runtime a longer wait timeout if it is meant to take that long");
inline constexpr auto native_event_without_driver =
    error_entry("S025", Code::unsupported,
                "the CPU device was to wait for a driver's event, and no GPU of this runtime works",
                "wait for it through the library that made it");
inline constexpr auto current_stream_of_another_device =
    error_entry("S027", Code::wrong_device,
                "the current stream of {device} was to be set to one of {stream_device}",
                "set it on its own device, or make a stream of this one");
inline constexpr auto current_stream_at_the_end_of_a_thread =
    error_entry("S028", Code::not_permitted,
                "a current stream was to be set while the thread ends: it would stay with nobody",
                "name the stream in the calls that the thread's last destructors make");
inline constexpr auto body_of_another_device =
    error_entry("S029", Code::unsupported,
                "the body of a loop or a branch runs on {body_device}, and a stream of {device} was to join it: CUDA runs a body, "
                "with all that is nested in it, in one context",
                "record its work before or behind the loop or the branch");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
