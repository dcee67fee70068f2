// SPDX-License-Identifier: Apache-2.0
// Error entries: captures, graphs and graph instances.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto device_without_captures =
    error_entry("G001", Code::unsupported,
                "this device runs work when it is given: it has no captures",
                "give the work to the stream each time; on this device that costs no driver call");
inline constexpr auto stream_captured_already =
    error_entry("G002", Code::capture_error,
                "the stream is being captured already",
                "end that capture first");
inline constexpr auto stream_captured_by_other_code =
    error_entry("G003", Code::capture_error,
                "code beside the runtime captures this external stream",
                "let it end that capture first");
inline constexpr auto capture_ended_before =
    error_entry("G004", Code::invalid_handle,
                "ending a capture: it has ended already, or was moved from",
                "keep the graph that end() answered with");
inline constexpr auto recording_into_ended_capture =
    error_entry("G005", Code::invalid_handle,
                "recording into a capture: it has ended already, or was moved from",
                "record before end(); an instance of the graph is launched with Stream::launch()");
inline constexpr auto stream_outside_of_capture =
    error_entry("G006", Code::capture_error,
                "stream {stream:number} takes no part in this capture",
                "let it wait for an event of the capture first: it joins by that");
inline constexpr auto appended_graph_of_another_device =
    error_entry("G007", Code::wrong_device,
                "appending a graph: it was recorded on another device than this stream's",
                "append it on a stream of the device that recorded it");
inline constexpr auto appended_graph_allocates =
    error_entry("G008", Code::unsupported,
                "a graph that allocates memory cannot be a part of another one",
                "allocate before the captures, or record the work itself in this one");
inline constexpr auto appended_graph_is_conditional =
    error_entry("G009", Code::unsupported,
                "a graph with loops or branches cannot be a part of another one",
                "record the loop or the branch in this capture; as a body, by a function that records it in place (loop_while, run_if)");
inline constexpr auto conditional_body_calls_the_host =
    error_entry("G010", Code::unsupported,
                "a loop or a branch cannot call host functions: its device decides when it runs",
                "call them before or behind it");
inline constexpr auto conditional_body_of_several_devices =
    error_entry("G011", Code::unsupported,
                "a loop or a branch runs on one device, and several take part in the graph",
                "record the body on one device's streams");
inline constexpr auto condition_word_is_empty =
    error_entry("G012", Code::invalid_handle,
                "the word that decides is empty, moved from or already released",
                "give a buffer of at least one element");
inline constexpr auto condition_word_of_another_device =
    error_entry("G013", Code::wrong_device,
                "the word that decides belongs to another device than the stream",
                "allocate it on the device that runs the loop or the branch");
inline constexpr auto condition_word_out_of_reach =
    error_entry("G014", Code::not_accessible,
                "the device cannot read the word that decides: it is {kind} memory",
                "use device, pinned or shared memory");
inline constexpr auto no_conditional_nodes =
    error_entry("G015", Code::unsupported,
                "{what} within a graph: this driver has no conditional nodes",
                "update the driver to CUDA 12.3 or newer; or launch an instance again from the host, or let kernels "
                "return early");
inline constexpr auto captured_kernel_without_items =
    error_entry("G016", Code::invalid_argument,
                "kernel '{kernel}' was given an empty index space, which makes no node",
                "leave it out of the graph, or give it at least one item");
inline constexpr auto graph_allocates_and_has_instance =
    error_entry("G017", Code::in_use,
                "a graph that allocates memory can have one instance at a time",
                "destroy the other instance first, or allocate before the capture");
inline constexpr auto graph_is_conditional_and_has_instance =
    error_entry("G018", Code::in_use,
                "a graph with loops or branches can have one instance at a time",
                "destroy the other instance first, or record the graph once more");
// Code, reason and remedy are those of opening the buffer.
inline constexpr auto graph_buffer_not_usable =
    error_entry("G019", Code::ok,
                "a buffer of the graph cannot be used now: {reason}",
                "{remedy}");
inline constexpr auto launched_graph_of_another_device =
    error_entry("G020", Code::wrong_device,
                "launching a graph: no part of it was recorded on this stream's device",
                "launch it on a stream of a device that takes part in it");
inline constexpr auto instance_on_captured_stream =
    error_entry("G021", Code::capture_error,
                "an instance was to be launched on a stream that is captured, which ends captures",
                "append the graph itself (Capture::append): it becomes a part of the new one");
inline constexpr auto update_to_graph_of_another_device =
    error_entry("G022", Code::wrong_device,
                "the graph was recorded on another device than the instance's",
                "instantiate it, and launch that instance on its own device");
inline constexpr auto node_of_another_graph =
    error_entry("G023", Code::invalid_handle,
                "the node is of another graph than the instance",
                "take a node that Capture::launch() answered with while the instance's own graph was recorded; after "
                "update() that is the graph it was updated to");
inline constexpr auto node_without_name =
    error_entry("G024", Code::unsupported,
                "kernel '{kernel}' has a node that the driver did not name when it was recorded",
                "instantiate the graph that the node was recorded in");
inline constexpr auto node_argument_needs_copies =
    error_entry("G025", Code::not_accessible,
                "{argument} would have to be copied around the kernel, and a graph's node does not do that",
                "pass memory that the device reaches");
inline constexpr auto node_argument_of_another_graph =
    error_entry("G026", Code::not_accessible,
                "{argument} is memory of another graph, which exists for its work only",
                "copy what you need of it into a buffer within the capture");
inline constexpr auto node_without_items =
    error_entry("G027", Code::invalid_argument,
                "kernel '{kernel}' was given an empty index space, which no node can have",
                "give it at least one item, and let the kernel return where there is nothing to do");
inline constexpr auto launched_graph_attaches_elsewhere =
    error_entry("G028", Code::wrong_device,
                "the graph uses managed memory of {owner}, which belongs to one stream of that device at a time, and was to be "
                "launched on a stream of {device}",
                "launch it on a stream of the memory's device, or use pinned memory");
inline constexpr auto body_ends_with_its_function =
    error_entry("G029", Code::capture_error,
                "ending the capture of the body of a loop or a branch: it belongs to the graph around it",
                "return from the function that records it, and end the capture around it");
inline constexpr auto body_capture_moved_away =
    error_entry("G030", Code::invalid_handle,
                "the capture of the body of a loop or a branch was moved away by the function that records it",
                "use it where it is; it ends with the function");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
