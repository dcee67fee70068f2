// SPDX-License-Identifier: Apache-2.0
// The errors of buffers, streams, host views and captures, and of operations on them, as data.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto part_used_after_release =
    error_entry("K001", Code::invalid_handle,
                "{what}: the buffer of this part was released",
                "release a buffer when its parts are no longer used, or let it go out of scope: they hold the memory");
inline constexpr auto argument_part_of_released_buffer =
    error_entry("K002", Code::invalid_handle,
                "{argument} is a part of a released buffer",
                "release a buffer when its parts are no longer used");
inline constexpr auto release_while_host_view_is_open =
    error_entry("K003", Code::in_use,
                "the buffer cannot be released while a host view of it is open",
                "let the view go out of scope first");
inline constexpr auto argument_writes_read_only_memory =
    error_entry("K004", Code::not_accessible,
                "{argument} {deed} memory that was adopted for reading only",
                "write a buffer of your own, or adopt memory that may be written");
inline constexpr auto argument_open_on_host =
    error_entry("K005", Code::in_use,
                "{argument} {deed} {buffer} that the host has open for {purpose}",
                "{remedy}");
inline constexpr auto argument_open_on_host_in_part =
    error_entry("K006", Code::in_use,
                "{argument} {deed} {buffer}, of which the host has {part} open for {purpose}",
                "{remedy}");
// The code is timed_out, or not_ready if no wait was allowed; the same for the entries below without a code.
inline constexpr auto content_copied_for_another_view =
    error_entry("K007", Code::ok,
                "the buffer's content is still being copied to the host's side for another view",
                "ask again later, or allow a longer wait");
inline constexpr auto content_on_device_side =
    error_entry("K008", Code::not_ready,
                "the buffer's content still lies on the device's side and waiting was ruled out",
                "allow a wait: a copy is needed on this machine");
inline constexpr auto view_beside_concurrent_view =
    error_entry("K009", Code::in_use,
                "{open} already open on the host for {purpose}, and {wanted} to be opened for {wanted_purpose}",
                "let the other view go out of scope first; concurrent views go together with concurrent views only, "
                "because only they keep to atomics");
inline constexpr auto view_beside_another_view =
    error_entry("K010", Code::in_use,
                "{open} already open on the host for {purpose}, and {wanted} to be opened for {wanted_purpose}",
                "let the other view go out of scope first; any number of read views may be open together. On the CPU device "
                "launches, copies and fills open views, too");
inline constexpr auto too_many_views_are_open =
    error_entry("K011", Code::system_limit,
                "the buffer is open on the host for reading {count:number} times already, and views are not counted any "
                "further",
                "let views go out of scope, or let readers share one");
inline constexpr auto concurrent_view_of_unshared_memory =
    error_entry("K012", Code::not_accessible,
                "the CPU may not use this {kind} memory of {device} while the device does: {reason}",
                "{remedy}");
inline constexpr auto host_view_of_device_memory =
    error_entry("K013", Code::not_accessible,
                "the CPU may not view {kind} memory: {reason}",
                "allocate_shared gives memory that both sides may use");
inline constexpr auto host_write_view_of_read_only_memory =
    error_entry("K014", Code::not_accessible,
                "the CPU may not write memory that was adopted for reading only",
                "open it with read_on_host(), or adopt memory that may be written");
inline constexpr auto memory_gone_with_context =
    error_entry("K015", Code::device_lost,
                "the buffer's memory was destroyed with the device's context, which other code destroyed",
                "keep what must survive in host or registered memory, and open a new runtime");
inline constexpr auto content_lost_with_device =
    error_entry("K016", Code::device_lost,
                "the buffer's content was in device memory and is lost with the device",
                "keep what must survive a fault in memory that the host can read");
inline constexpr auto operation_uses_memory_of_lost_device =
    error_entry("K017", Code::device_lost,
                "{argument} uses {memory}, and {reason}",
                "{remedy}");
inline constexpr auto graph_memory_outside_of_graph =
    error_entry("K018", Code::not_accessible,
                "{argument} is memory of a graph, which exists while that graph runs and only for its work",
                "copy what you need of it into a buffer within the capture");
inline constexpr auto managed_memory_of_another_stream =
    error_entry("K020", Code::in_use,
                "managed memory on this machine belongs to one stream at a time, and another one still has it",
                "open and close a host view, or synchronize the other stream, before this use");
inline constexpr auto argument_handed_over_in_foreign_capture =
    error_entry("K021", Code::capture_error,
                "{argument} is memory that the runtime hands over or copies around each launch, and it does not see the "
                "launches of a graph that other code captures",
                "use pinned or device memory there, or capture with begin_capture()");
inline constexpr auto unallocated_memory_in_foreign_capture =
    error_entry("K022", Code::capture_error,
                "memory that another stream allocates would be used, and a capture cannot wait for work outside it",
                "use it on the stream, or synchronize the other one, before the capture");
inline constexpr auto external_capture_was_lost =
    error_entry("K023", Code::capture_error,
                "the external stream is in a capture that was lost",
                "end that capture where it was begun; the stream then works again");
inline constexpr auto external_stream_has_no_wrapper =
    error_entry("K024", Code::invalid_handle,
                "an external stream was used after its last Stream had ended",
                "keep a Stream of it for as long as it is used");
inline constexpr auto stream_held_by_named_call =
    error_entry("K025", Code::ok,
                "{what} could not continue: another thread is blocked in the driver, in '{call}' for stream "
                "{stream:number}",
                "the stream's queue in the driver is full; behind a kernel that hangs only ending the process frees "
                "the device, otherwise allow a longer wait, or give the stream less work at once");
inline constexpr auto stream_held_by_call =
    error_entry("K026", Code::ok,
                "{what} could not continue: another thread is blocked in the driver, in a call for stream "
                "{stream:number}",
                "the stream's queue in the driver is full; behind a kernel that hangs only ending the process frees "
                "the device, otherwise allow a longer wait, or give the stream less work at once");
inline constexpr auto stream_work_not_ready =
    error_entry("K027", Code::not_ready,
                "{operation} (position {position:number} of stream {stream:number}) is still running and waiting was "
                "ruled out",
                "ask again later, or allow a wait");
inline constexpr auto stream_work_timed_out =
    error_entry("K028", Code::timed_out,
                "{operation} (position {position:number} of stream {stream:number}) has not finished within "
                "{microseconds:number} µs",
                "give a longer timeout if the kernel is meant to take that long; otherwise it hangs, and only ending the "
                "process frees the device");
inline constexpr auto destroyed_stream_still_works =
    error_entry("K029", Code::ok,
                "the work of a destroyed stream is still running",
                "allow a longer wait if its kernels are meant to take that long");
inline constexpr auto other_code_still_works =
    error_entry("K030", Code::ok,
                "work that other code of the process gave to the device is still running",
                "allow a longer wait if it is meant to take that long");
inline constexpr auto call_on_captured_stream =
    error_entry("K031", Code::capture_error,
                "{what} while the stream is captured",
                "end the capture first; launches, copies between buffers and fills are recorded");
inline constexpr auto capture_between_parts_of_a_call =
    error_entry("K032", Code::in_use,
                "the stream cannot be captured now: a launch or a copy on it comes in several parts, and is under way on "
                "another thread, or a native scope is open on it",
                "let that call return, or close the scope, first");
inline constexpr auto capture_ended_during_recording =
    error_entry("K033", Code::capture_error,
                "the capture was ended by another thread while this was about to be recorded",
                "one thread begins, fills and ends a capture");
inline constexpr auto capture_ended_by_another_thread =
    error_entry("K034", Code::capture_error,
                "a capture was ended by another thread than the one that began it",
                "end it, or let its scope close, on the thread that called begin_capture()");
inline constexpr auto capture_dropped_by_another_thread =
    error_entry("K035", Code::capture_error,
                "the stream is still captured: its Capture was destroyed by another thread than the one that began it, "
                "which alone can end it",
                "use this stream on that thread once more, or take another stream");
inline constexpr auto capture_with_unordered_append =
    error_entry("K036", Code::capture_error,
                "a graph that was appended came into the capture, and the driver refused to let what follows wait for it",
                "record again; the append had answered with the driver's error");
inline constexpr auto capture_with_unfinished_body =
    error_entry("K042", Code::capture_error,
                "the body of a loop or a branch was begun in the capture and not recorded to its end",
                "record again; the call with the body had answered with an error");
inline constexpr auto capture_records_a_body =
    error_entry("K043", Code::capture_error,
                "stream {stream:number} takes nothing now: its capture records the body of a loop or a branch",
                "give the work to the capture that the body's function gets, or wait until the function has returned");
inline constexpr auto host_function_in_body =
    error_entry("K044", Code::unsupported,
                "a host function was given to the body of a loop or a branch: its device decides when it runs, and CUDA allows "
                "no host nodes there",
                "call it before or behind the loop or the branch");
inline constexpr auto capture_lacks_a_stream =
    error_entry("K037", Code::capture_error,
                "stream {stream:number} joined the capture and did not come back: the stream that it began on does not wait for "
                "all of its work",
                "before end(), record an event on each stream that joined and let the first stream wait for it "
                "(wait_stream does both)");
inline constexpr auto capture_lacks_streams =
    error_entry("K038", Code::capture_error,
                "streams {streams} joined the capture and did not come back: the stream that it began on does not wait "
                "for all of their work",
                "before end(), record an event on each stream that joined and let the first stream wait for it "
                "(wait_stream does both)");
inline constexpr auto uses_without_order =
    error_entry("K039", Code::not_ordered,
                "{later} a buffer that {earlier}; nothing orders the two",
                "let stream {later_stream:number} wait for stream {earlier_stream:number} in between: "
                "later.wait_stream(earlier), or an event that the earlier stream records behind its use and the later "
                "one waits for");
inline constexpr auto uses_ordered_too_early =
    error_entry("K040", Code::not_ordered,
                "{later} a buffer that {earlier}; the two are ordered only up to position {position:number}: the event, "
                "or the wait, stands before the earlier use",
                "let stream {later_stream:number} wait for stream {earlier_stream:number} in between: "
                "later.wait_stream(earlier), or an event that the earlier stream records behind its use and the later "
                "one waits for");
// The code and the reason come from the driver.
inline constexpr auto adopted_memory_still_registered =
    error_entry("K041", Code::ok,
                "{reason}; the driver still has the memory registered, and nothing has changed",
                "release it again, or let the buffer go: the runtime then tries again, and tells the memory's owner when "
                "the driver has let go");
inline constexpr auto capture_with_failed_work =
    error_entry("K051", Code::capture_error,
                "the work '{name}' of other code failed in the capture, and the graph might hold part of it",
                "record again; enqueue_native() had answered with the work's own error");
inline constexpr auto argument_in_native_scope =
    error_entry("K052", Code::in_use,
                "{argument} {deed} {buffer} that other code works on in the native scope '{name}', which is open for {purpose}",
                "close the scope first; the launch, copy or fill then runs behind its work");
inline constexpr auto view_beside_native_scope =
    error_entry("K053", Code::in_use,
                "{wanted} to be opened on the host for {wanted_purpose}, and other code works on it in the native scope "
                "'{name}', which is open for {purpose}",
                "close the scope first; the view then waits for its work");
inline constexpr auto release_while_native_scope_is_open =
    error_entry("K054", Code::in_use,
                "the buffer cannot be released while other code works on it in the native scope '{name}'",
                "close the scope first");
inline constexpr auto dma_buf_not_synchronised =
    error_entry("K055", Code::system_error,
                "the caches of the CPU could not be synchronised with a dma-buf: {reason}",
                "see the error of the system; the driver that exported the dma-buf refuses its use by the CPU");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
