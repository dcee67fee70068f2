// SPDX-License-Identifier: Apache-2.0
// Error entries: channels and listeners.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto channel_moved_from =
    error_entry("H001", Code::invalid_handle,
                "a channel or a listener was used that was moved from",
                "the object it was moved to");
inline constexpr auto listener_in_forked_child =
    error_entry("H002", Code::forked,
                "a listener was used in a child of the process that opened it",
                "open one in the child, in a directory of its own");
inline constexpr auto nobody_connected =
    error_entry("H003", Code::timed_out,
                "no process connected to a listener in time",
                "wait_for_connection(), or a larger ChannelOptions::step_timeout");

// Refused by the operating system.
inline constexpr auto channel_peer_lost =
    error_entry("H004", Code::peer_lost,
                "{what}: {reason}",
                "start the other process again, and connect anew");
inline constexpr auto channel_system_limit =
    error_entry("H005", Code::system_limit,
                "{what}: {reason}",
                "close descriptors, receive what is on its way, or raise the limit (ulimit -n; net.core.wmem_default)");
inline constexpr auto channel_not_permitted =
    error_entry("H006", Code::not_permitted,
                "{what}: {reason}",
                "a directory and processes of one user");
inline constexpr auto channel_out_of_memory =
    error_entry("H007", Code::out_of_memory,
                "{what}: {reason}",
                "release memory");
inline constexpr auto channel_unsupported =
    error_entry("H008", Code::unsupported,
                "{what}: {reason}",
                "a kernel that has it");
inline constexpr auto channel_system_error =
    error_entry("H009", Code::system_error,
                "{what}: {reason}",
                "see the error of the system; channels need sockets of the UNIX domain, and a listener its directory");

// The directory of a listener.
inline constexpr auto listener_without_directory =
    error_entry("H010", Code::invalid_argument,
                "a listener was asked for without a directory",
                "name a directory");
inline constexpr auto channel_directory_is_a_link =
    error_entry("H011", Code::not_permitted,
                "the directory {directory} is no place for a channel: it is a symbolic link, or no directory",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto channel_directory_of_another_user =
    error_entry("H012", Code::not_permitted,
                "the directory {directory} is no place for a channel: it belongs to user {owner:number}",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto channel_directory_not_of_its_listener =
    error_entry("H013", Code::not_permitted,
                "the directory {directory} is no place for a channel: it belongs to user {owner:number}, and user "
                "{listener:number} listens there",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto channel_directory_open_to_others =
    error_entry("H014", Code::not_permitted,
                "the directory {directory} is no place for a channel: others may enter it",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto channel_directory_writable_by_others =
    error_entry("H015", Code::not_permitted,
                "the directory {directory} is no place for a channel: others may write into it",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto channel_entry_no_socket =
    error_entry("H016", Code::not_permitted,
                "the directory {directory} is no place for a channel: its entry '{entry}' is no socket",
                "a directory of this user's own with mode 0700, such as one in XDG_RUNTIME_DIR");
inline constexpr auto listener_entry_no_socket =
    error_entry("H017", Code::not_permitted,
                "the directory {directory} is no place for a channel: its entry '{entry}' is no socket, and was left as it is",
                "move that entry away, or name another directory");
inline constexpr auto listener_entry_of_another_user =
    error_entry("H018", Code::not_permitted,
                "the directory {directory} is no place for a channel: its entry '{entry}' belongs to user {owner:number}, and was "
                "left as it is",
                "move that entry away, or name another directory");
inline constexpr auto listener_entry_in_use =
    error_entry("H019", Code::in_use,
                "another program listens at '{entry}' in the directory {directory}",
                "a directory for each listener, or end the other program");
inline constexpr auto listener_directory_in_use =
    error_entry("H020", Code::in_use,
                "another listener lives in the directory {directory}",
                "a directory for each listener, or end the other one");
inline constexpr auto no_listener =
    error_entry("H021", Code::peer_lost,
                "no process listens in the directory {directory}",
                "start the other process first, and connect again");
inline constexpr auto listener_accepts_nobody =
    error_entry("H022", Code::timed_out,
                "the listener in {directory} accepted no connection in time",
                "ask the other process what it waits for, or give it longer (ChannelOptions::step_timeout)");

// Opening a channel.
inline constexpr auto channel_socket_refused =
    error_entry("H023", Code::invalid_argument,
                "a channel over a descriptor was refused: {reason}",
                "one end of create_channel_pair(), or a connected SOCK_SEQPACKET socket of the UNIX domain");
inline constexpr auto channel_quota_out_of_bounds =
    error_entry("H024", Code::invalid_argument,
                "the quota of a channel is out of bounds",
                "at most 65536 bytes and 64 descriptors in a message, and 1 to 64 messages");
inline constexpr auto channel_steps_without_time =
    error_entry("H025", Code::invalid_argument,
                "the steps of a channel were given no time",
                "a timeout above zero");
inline constexpr auto channel_peer_not_admitted =
    error_entry("H026", Code::not_permitted,
                "a process of user {user:number} (pid {pid:number}) is at the other end of a channel, and is not admitted",
                "both processes of one user, or ChannelOptions::allow for this one");
inline constexpr auto channel_handshake_displaced =
    error_entry("H027", Code::timed_out,
                "pid {pid:number} was given up during its handshake: too many later connections wait for theirs",
                "connect anew; fewer processes that connect at the same time");

// Using a channel.
inline constexpr auto channel_in_forked_child =
    error_entry("H028", Code::forked,
                "a channel was used in a child of the process that opened it",
                "open one in the child: create_channel_pair() before fork(), Channel::adopt() behind it");
inline constexpr auto channel_closed_here =
    error_entry("H029", Code::invalid_handle,
                "a channel was used that this end had closed",
                "open another one");
inline constexpr auto message_descriptor_not_open =
    error_entry("H030", Code::invalid_argument,
                "a message was refused: one of its descriptors is not open",
                "descriptors that are open until send() returns");
inline constexpr auto message_too_long =
    error_entry("H031", Code::invalid_argument,
                "a message of {bytes:number} bytes and {fds:number} descriptors was refused: the other end accepts {most:number} "
                "bytes",
                "several messages, or a larger ChannelOptions::quota at the other end");
inline constexpr auto message_with_too_many_descriptors =
    error_entry("H032", Code::invalid_argument,
                "a message of {bytes:number} bytes and {fds:number} descriptors was refused: the other end accepts {most:number} "
                "descriptors",
                "several messages, or a larger ChannelOptions::quota at the other end");
inline constexpr auto channel_peer_silent =
    error_entry("H033", Code::timed_out,
                "pid {pid:number} was silent, and the channel is closed: it owed {what}",
                "ask the other process what it waits for, or give it longer (ChannelOptions::step_timeout)");
inline constexpr auto channel_message_owed =
    error_entry("H034", Code::timed_out,
                "pid {pid:number} was silent, and the channel is closed: it owed a message",
                "wait_for_message() where no message is owed; otherwise a larger ChannelOptions::step_timeout");
inline constexpr auto channel_ended_in_handshake =
    error_entry("H035", Code::peer_lost,
                "the process at the other end is gone: it closed the connection before the handshake was over; it may not admit "
                "this user",
                "start it again, and connect anew; what was received before stays valid");
inline constexpr auto channel_peer_vanished =
    error_entry("H036", Code::peer_lost,
                "the process at the other end is gone: it ended without a word",
                "start it again, and connect anew; what was received before stays valid");
inline constexpr auto channel_closed_by_peer =
    error_entry("H037", Code::peer_lost,
                "the process at the other end is gone: it closed its end",
                "start it again, and connect anew; what was received before stays valid");
inline constexpr auto channel_descriptors_lost =
    error_entry("H038", Code::system_limit,
                "descriptors from another process were lost: this one may not open that many",
                "close descriptors, or raise the limit of open files (ulimit -n), and connect anew");
inline constexpr auto channel_frame_refused =
    error_entry("H039", Code::peer_broke_rules,
                "a frame from pid {pid:number} was refused: {reason}",
                "the same version of the library at both ends; otherwise do not trust that process");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
