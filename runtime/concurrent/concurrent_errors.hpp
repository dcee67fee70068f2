// SPDX-License-Identifier: Apache-2.0
// Error entries: mailboxes, services, frame rings, waits for a word, sharded counters.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto word_not_changed_yet =
    error_entry("Q001", Code::not_ready,
                "the word still holds what it held",
                "wait, or ask again later");
inline constexpr auto word_not_changed_in_time =
    error_entry("Q002", Code::timed_out,
                "the word did not change in time",
                "check that the work which changes it runs, and does not wait for this thread");
inline constexpr auto frame_ring_is_closed =
    error_entry("Q003", Code::ended,
                "the ring of frames is closed",
                "open another one for further frames");
inline constexpr auto frame_ring_not_ready =
    error_entry("Q004", Code::not_ready,
                "{what}, and waiting was ruled out",
                "allow a wait");
inline constexpr auto frame_ring_timed_out =
    error_entry("Q005", Code::timed_out,
                "{what} before the deadline",
                "allow more time, or more frames in the ring");
inline constexpr auto newest_frame_dropped =
    error_entry("Q006", Code::not_ready,
                "the consumer has all frames, and the newest is dropped",
                "go on with the next frame, or make the ring longer");
inline constexpr auto frame_ring_too_short =
    error_entry("Q007", Code::invalid_argument,
                "a ring of fewer than two frames was asked for",
                "give two or more buffers of one size: one is filled while another is used");
inline constexpr auto frame_ring_sizes =
    error_entry("Q008", Code::invalid_argument,
                "the frames of a ring are empty, or differ in size",
                "give two or more buffers of one size: one is filled while another is used");
inline constexpr auto mailbox_is_broken =
    error_entry("Q009", Code::invalid_handle,
                "the mailbox of {peer} holds an impossible counter or stamp: its memory was overwritten",
                "look for a kernel or a thread that writes beyond its memory, and make a new mailbox");
inline constexpr auto mailbox_capacity =
    error_entry("Q010", Code::invalid_argument,
                "a mailbox for {messages:number} messages; it has to be a power of two, at most 2^20",
                "take the next power of two");
inline constexpr auto mailbox_not_ready =
    error_entry("Q011", Code::not_ready,
                "{what} {peer} and waiting was ruled out",
                "ask again later, or allow a wait");
inline constexpr auto mailbox_timed_out =
    error_entry("Q012", Code::timed_out,
                "{what} {peer} within {timeout:number} µs",
                "give a longer timeout if it is meant to take that long, and see that its kernel runs");
inline constexpr auto service_not_possible =
    error_entry("Q013", Code::unsupported,
                "a service of kernel '{kernel}' cannot run on {device}: {reason}",
                "{remedy}");
inline constexpr auto service_with_mailbox_of_another_device =
    error_entry("Q014", Code::wrong_device,
                "a service of kernel '{kernel}' was given a mailbox of another device",
                "create the mailbox on the device that the service runs on");
inline constexpr auto service_has_ended =
    error_entry("Q015", Code::invalid_handle,
                "the service '{kernel}' has ended",
                "start it again; it ends when it is stopped, or when its kernel returns");
inline constexpr auto service_still_runs =
    error_entry("Q016", Code::not_ready,
                "the service is told to stop and still runs",
                "stop it again");
// Used inside service_does_not_end.
inline constexpr auto service_not_ended_in_time =
    error_entry("Q017", Code::timed_out,
                "its kernel has not ended in time",
                "");
inline constexpr auto service_does_not_end =
    error_entry("Q018", Code::timed_out,
                "kernel '{kernel}' of a service has not ended though it was told to: {reason}",
                "stop it again with a longer wait; a kernel that looks at its mailbox no more ends with the process");
inline constexpr auto service_found_mailbox_broken =
    error_entry("Q019", Code::invalid_handle,
                "kernel '{kernel}' of a service ended before it was stopped: it found a counter or a stamp in its "
                "mailbox that cannot be",
                "look for a kernel or a thread that writes beyond its memory, and make a new mailbox");
inline constexpr auto sharded_counter_without_slots =
    error_entry("Q020", Code::invalid_argument,
                "a sharded counter of no slots was asked for",
                "ask for at least one");
inline constexpr auto sharded_counter_slot =
    error_entry("Q021", Code::invalid_argument,
                "the sharded counter has no such slot",
                "ask for a slot below size()");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
