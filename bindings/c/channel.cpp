// SPDX-License-Identifier: Apache-2.0
// Channels: messages and file descriptors between two processes.
#include <isthmus/ipc/channel.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

using namespace isthmus;

struct isthmus_listener {
    explicit isthmus_listener(Listener made) : cpp(std::move(made)) {}
    Listener cpp;
};
struct isthmus_channel {
    explicit isthmus_channel(Channel made) : cpp(std::move(made)) {}
    Channel cpp;
};
struct isthmus_message {
    explicit isthmus_message(ChannelMessage received) : cpp(std::move(received)) {
        for (const FileDescriptor& fd : cpp.fds) numbers.push_back(fd.get());
    }
    ChannelMessage cpp;
    std::vector<int> numbers;  // of cpp.fds; they stay when those are taken
};

namespace {

// More than the bounds of ChannelQuota.
constexpr std::size_t most_fds = 64;

// Waits by `come(timeout)`, which tells whether there is something; true: there is, or the peer owes it.
template <class Come>
Result<void> waited(const c::Call& call, std::int64_t wait_ns, const char* what, Come come) {
    if (wait_ns == ISTHMUS_WAIT_DEFAULT) return {};
    ISTHMUS_TRY(call.wait(wait_ns));
    ISTHMUS_TRY(const bool there, come(std::chrono::nanoseconds(wait_ns)));
    if (there) return {};
    return Error(wait_ns == ISTHMUS_WAIT_NEVER ? Code::not_ready : Code::timed_out,
                 std::string(call.name) + ": no " + what + " within " + std::to_string(wait_ns) + " ns",
                 "call again, or wait with poll()");
}

}  // namespace

isthmus_code isthmus_listener_create(const char* directory, isthmus_listener** listener, isthmus_error** error) {
    return c::guarded("isthmus_listener_create", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"directory", directory}, {"listener", listener}}));
        return c::make_handle(listener, Listener::create(directory));
    });
}

isthmus_code isthmus_listener_accept(isthmus_listener* listener, int64_t wait_ns, isthmus_channel** channel,
                                     isthmus_error** error) {
    return c::guarded("isthmus_listener_accept", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"listener", listener}, {"channel", channel}}));
        ISTHMUS_TRY(waited(call, wait_ns, "connection",
                           [&](std::chrono::nanoseconds most) { return listener->cpp.wait_for_connection(most); }));
        return c::make_handle(channel, listener->cpp.accept());
    });
}

int isthmus_listener_fd(const isthmus_listener* listener) {
    return listener == nullptr ? -1 : listener->cpp.descriptor();
}
void isthmus_listener_free(isthmus_listener* listener) {
    delete listener;
}

isthmus_code isthmus_channel_connect(const char* directory, isthmus_channel** channel, isthmus_error** error) {
    return c::guarded("isthmus_channel_connect", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"directory", directory}, {"channel", channel}}));
        return c::make_handle(channel, connect_channel(directory));
    });
}

isthmus_code isthmus_channel_send(isthmus_channel* channel, uint32_t kind, const void* bytes, size_t size,
                                  const int* fds, size_t fd_count, isthmus_error** error) {
    return c::guarded("isthmus_channel_send", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"channel", channel}}));
        if (size > 0) ISTHMUS_TRY(call.needs({{"bytes", bytes}}));
        if (fd_count > most_fds) {
            return call.refuse("fd_count", "is " + std::to_string(fd_count), "a message has at most 64");
        }
        if (fd_count > 0) ISTHMUS_TRY(call.needs({{"fds", fds}}));
        return channel->cpp.send(kind, std::span(static_cast<const std::byte*>(bytes), size), std::span(fds, fd_count));
    });
}

isthmus_code isthmus_channel_receive(isthmus_channel* channel, int64_t wait_ns, isthmus_message** message,
                                     isthmus_error** error) {
    return c::guarded("isthmus_channel_receive", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"channel", channel}, {"message", message}}));
        ISTHMUS_TRY(waited(call, wait_ns, "message",
                           [&](std::chrono::nanoseconds most) { return channel->cpp.wait_for_message(most); }));
        return c::make_handle(message, channel->cpp.receive());
    });
}

int isthmus_channel_fd(const isthmus_channel* channel) {
    return channel == nullptr ? -1 : channel->cpp.descriptor();
}
int32_t isthmus_channel_peer_pid(const isthmus_channel* channel) {
    return channel == nullptr ? 0 : channel->cpp.peer().pid;
}
void isthmus_channel_free(isthmus_channel* channel) {
    delete channel;
}

uint32_t isthmus_message_kind(const isthmus_message* message) {
    return message == nullptr ? 0 : message->cpp.kind;
}
const void* isthmus_message_bytes(const isthmus_message* message, size_t* size) {
    if (size != nullptr) *size = message == nullptr ? 0 : message->cpp.bytes.size();
    return message == nullptr ? nullptr : message->cpp.bytes.data();
}
const int* isthmus_message_fds(const isthmus_message* message, size_t* count) {
    if (count != nullptr) *count = message == nullptr ? 0 : message->numbers.size();
    return message == nullptr ? nullptr : message->numbers.data();
}
void isthmus_message_take_fds(isthmus_message* message) {
    if (message == nullptr) return;
    for (FileDescriptor& fd : message->cpp.fds) (void)fd.release();
}
void isthmus_message_free(isthmus_message* message) {
    delete message;
}
