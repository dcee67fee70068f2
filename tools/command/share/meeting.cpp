// SPDX-License-Identifier: Apache-2.0
// The reader's side of the one message in ring_message.hpp.
#include "meeting.hpp"

#include "ring_message.hpp"

#include <isthmus/ipc/channel.hpp>

#include <span>
#include <thread>
#include <utility>

namespace isthmus::tools::share {
namespace {

using Clock = std::chrono::steady_clock;

// Retries: the producer may start after its viewers, be busy with another one, or have no place left at the moment.
Result<ChannelMessage> connect_and_receive(const MeetingOptions& options) {
    const Clock::time_point until = Clock::now() + options.connect_deadline;
    for (;;) {
        Result<Channel> channel = connect_channel(options.at);
        if (channel && options.producer != 0 && channel->peer().pid != options.producer) {
            return Error(Code::in_use, "another producer is at '" + options.at + "' already",
                         "another directory for --at");
        }
        Result<ChannelMessage> message = channel ? channel->receive() : Result<ChannelMessage>(channel.error());
        const bool may_come = !message && (message.code() == Code::peer_lost || message.code() == Code::timed_out);
        if (!may_come || Clock::now() >= until || (options.stopped && options.stopped())) return message;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

}  // namespace

Result<OpenedRing> open_ring(Device& device, const MeetingOptions& options) {
    Result<ChannelMessage> message = connect_and_receive(options);
    if (!message) return std::move(message).error();
    const auto refused = [](Error&& error) {
        return Error(Code::peer_broke_rules, std::string(error.message()), std::string(error.remedy()));
    };
    if (message->kind != ring_message_kind) {
        return refused(Error(Code::peer_broke_rules, "the producer's message is not one about a ring",
                             "an `isthmus share` of this version at the other end"));
    }
    Result<camera::FrameShape> shape = shape_in(message->bytes);
    if (!shape) return refused(std::move(shape).error());
    Result<SharedRingDescriptor> descriptor = SharedRingDescriptor::received(
        std::span<const std::byte>(message->bytes).first(SharedRingDescriptor::size_bytes), std::move(message->fds));
    if (!descriptor) return refused(std::move(descriptor).error());
    SharedReaderOptions own;
    own.waiting = options.waiting;
    own.elements = shape->size_bytes;  // must equal the descriptor's value, or the ring is refused
    auto reader = SharedFrameReader<std::uint8_t>::open(device, std::move(descriptor).value(), own);
    if (!reader && reader.code() == Code::invalid_argument) return refused(std::move(reader).error());
    if (!reader) return std::move(reader).error();
    return OpenedRing{*shape, std::move(reader).value()};
}

}  // namespace isthmus::tools::share
