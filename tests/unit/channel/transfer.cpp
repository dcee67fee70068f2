// SPDX-License-Identifier: Apache-2.0
#include "transfer.hpp"

#include "channel_state.hpp"
#include "sealed_memory.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace {

using namespace isthmus;
using detail::ChannelAccess;
using detail::SealedMemory;
using platform::os::ProcessCalls;

constexpr std::size_t shared_bytes = 8192;
constexpr std::uint32_t here_is_memory = 1;
constexpr std::uint32_t that_was_all = 2;
constexpr std::uint32_t thanks = 3;

Error wrong(const char* what) {
    return {Code::driver_error, std::string("a wrong value: ") + what, "no remedy: the test has failed"};
}

ChannelOptions options_of(const Meeting& meeting) {
    ChannelOptions options;
    options.step_timeout = meeting.step_timeout;
    return options;
}

Result<Channel> connect(Meeting& meeting, const ProcessCalls& calls) {
    if (meeting.directory.empty()) {
        return ChannelAccess::adopt(std::move(meeting.end), ChannelSide::receiving, options_of(meeting), calls);
    }
    // The listener may not exist yet; no_listener is peer_lost before any connection was made.
    while (true) {
        const bool over = meeting.other_is_over && meeting.other_is_over();
        Result<Channel> channel = ChannelAccess::connect(meeting.directory, options_of(meeting), calls);
        if (channel || channel.code() != Code::peer_lost || over || !meeting.other_is_over) return channel;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

// Expects the other side's orderly close.
Result<void> hear_the_end(Channel& channel) {
    const Result<ChannelMessage> message = channel.receive();
    if (message) return wrong("a message behind the last one");
    return message.code() == Code::peer_lost ? Result<void>() : Result<void>(message.error());
}

}  // namespace

Result<void> play_offering(Meeting meeting, const ProcessCalls& calls) {
    std::optional<Listener> listener;
    std::optional<Result<Channel>> met;
    if (meeting.directory.empty()) {
        met = ChannelAccess::adopt(std::move(meeting.end), ChannelSide::offering, options_of(meeting), calls);
    } else {
        Result<Listener> made = ChannelAccess::listen(meeting.directory, options_of(meeting), calls);
        if (!made) return std::move(made).error();
        listener = std::move(made).value();
        while (true) {
            const bool over = meeting.other_is_over && meeting.other_is_over();
            Result<bool> there = listener->wait_for_connection(std::chrono::milliseconds(1));
            if (!there) return std::move(there).error();
            if (*there) break;
            if (over) return {};  // no peer connected
        }
        met = listener->accept();
    }
    if (!*met) return std::move(*met).error();
    Channel channel = std::move(*met).value();
    Result<SealedMemory> memory = SealedMemory::create(shared_bytes, "isthmus-test", calls);
    if (!memory) return std::move(memory).error();
    memory->data()[0] = std::byte{1};
    const int fds[2] = {memory->fd(), memory->fd()};
    if (Result<void> sent = channel.send(here_is_memory, std::as_bytes(std::span(&shared_bytes, 1)), fds); !sent)
        return sent;
    if (Result<void> sent = channel.send(that_was_all, {}); !sent) return sent;
    if (Result<void> had = channel.wait_received(); !had) return had;
    Result<ChannelMessage> answer = channel.receive();
    if (!answer) return std::move(answer).error();
    if (answer->kind != thanks || !answer->fds.empty()) return wrong("the answer");
    if (memory->data()[1] != std::byte{2}) return wrong("what the other side wrote");
    return hear_the_end(channel);
}

Result<void> play_receiving(Meeting meeting, const ProcessCalls& calls) {
    Result<Channel> met = connect(meeting, calls);
    if (!met) return std::move(met).error();
    Channel channel = std::move(met).value();
    Result<ChannelMessage> first = channel.receive();
    if (!first) return std::move(first).error();
    std::size_t bytes = 0;
    if (first->kind != here_is_memory || first->bytes.size() != sizeof(bytes) || first->fds.size() != 2)
        return wrong("the offer");
    std::memcpy(&bytes, first->bytes.data(), sizeof(bytes));
    Result<SealedMemory> memory = SealedMemory::accept(std::move(first->fds[0]), bytes, calls);
    if (!memory) return std::move(memory).error();
    if (memory->data()[0] != std::byte{1}) return wrong("what the other side wrote");
    memory->data()[1] = std::byte{2};
    Result<ChannelMessage> last = channel.receive();
    if (!last) return std::move(last).error();
    if (last->kind != that_was_all) return wrong("the second message");
    if (Result<void> sent = channel.send(thanks, {}); !sent) return sent;
    return channel.wait_received();
}
