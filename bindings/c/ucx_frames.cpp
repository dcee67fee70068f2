// SPDX-License-Identifier: Apache-2.0
// Senders and receivers of frames: the ends of isthmus.h as those of C++, on the same memory.
#include "ring.hpp"
#include "ucx.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace isthmus;

namespace {

// The same slots as buffers of bytes: their state is shared.
template <class End, class Core>
std::shared_ptr<detail::SharedRingState<std::uint8_t, Core>> parts_of(const End& end,
                                                                      const std::shared_ptr<Core>& core) {
    std::vector<Buffer<std::uint8_t>> buffers;
    buffers.reserve(end.slots.size());
    for (const auto& slot : end.slots) buffers.emplace_back(slot->cpp.state());
    return std::make_shared<detail::SharedRingState<std::uint8_t, Core>>(core, std::move(buffers));
}

}  // namespace

struct isthmus_ucx_sender {
    isthmus_ucx_sender(isthmus_shared_reader& of, ucx::FrameSender made) : reader(of), cpp(std::move(made)) {}
    c::Ref<isthmus_shared_reader> reader;
    ucx::FrameSender cpp;  // goes first: it reads the slots
};

struct isthmus_ucx_receiver {
    explicit isthmus_ucx_receiver(ucx::FrameReceiver made) : cpp(std::move(made)) {}
    c::Ref<isthmus_shared_ring> ring{};
    std::optional<SharedFrameRing<std::uint8_t>> filled{};
    std::vector<c::Ref<isthmus_buffer>> buffers{};
    ucx::FrameReceiver cpp;  // goes first: it fills the slots
};

struct isthmus_ucx_frame {
    isthmus_ucx_frame(c::Ref<isthmus_buffer> of, ucx::ReceivedFrame received)
        : buffer(std::move(of)), cpp(std::move(received)) {}
    c::Ref<isthmus_buffer> buffer;
    ucx::ReceivedFrame cpp;  // goes first: it gives the buffer back
};

isthmus_code isthmus_ucx_sender_create(isthmus_ucx_connection* connection, isthmus_shared_reader* reader,
                                       const void* note, size_t note_bytes, isthmus_ucx_sender** sender,
                                       isthmus_error** error) {
    return c::guarded("isthmus_ucx_sender_create", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"connection", connection}, {"reader", reader}, {"sender", sender}}));
        if (note_bytes > 0) ISTHMUS_TRY(call.needs({{"note", note}}));
        ISTHMUS_TRY(c::same_version(call));
        ISTHMUS_TRY(ucx::Connection taken, c::taken(call, *connection));
        if (note_bytes > ucx::Offer::max_note_bytes) {
            return call.refuse("note_bytes", "is " + std::to_string(note_bytes),
                               std::to_string(ucx::Offer::max_note_bytes) + " bytes at most");
        }
        const auto* const first = static_cast<const std::byte*>(note);
        ISTHMUS_TRY(
            ucx::FrameSender made,
            ucx::FrameSender::create(
                std::move(taken), detail::SharedRingParts::reader<std::uint8_t>(parts_of(*reader, reader->core)),
                note_bytes == 0 ? std::vector<std::byte>() : std::vector(first, first + note_bytes)));
        *sender = new isthmus_ucx_sender(*reader, std::move(made));
        return {};
    });
}

isthmus_code isthmus_ucx_sender_step(isthmus_ucx_sender* sender, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_ucx_sender_step", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"sender", sender}}));
        ISTHMUS_TRY(const std::chrono::nanoseconds at_most, c::step_time(call, wait_ns));
        return sender->cpp.step(at_most);
    });
}

isthmus_code isthmus_ucx_sender_counts(const isthmus_ucx_sender* sender, isthmus_ucx_sent_counts* counts,
                                       isthmus_error** error) {
    return c::guarded("isthmus_ucx_sender_counts", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"sender", sender}}));
        const ucx::SentCounts now = sender->cpp.counts();
        return c::write_struct<isthmus_ucx_sent_counts>(call, "counts", counts,
                                                        {0, now.frames, now.overtaken, now.missed});
    });
}

void isthmus_ucx_sender_free(isthmus_ucx_sender* sender) {
    delete sender;
}

isthmus_code isthmus_ucx_receiver_create(isthmus_ucx_connection* connection, isthmus_ucx_receiver** receiver,
                                         isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_create", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"connection", connection}, {"receiver", receiver}}));
        ISTHMUS_TRY(ucx::Connection taken, c::taken(call, *connection));
        ISTHMUS_TRY(ucx::FrameReceiver made, ucx::FrameReceiver::create(std::move(taken)));
        *receiver = new isthmus_ucx_receiver(std::move(made));
        return {};
    });
}

isthmus_code isthmus_ucx_receiver_offer(const isthmus_ucx_receiver* receiver, isthmus_ucx_offer* offer,
                                        isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_offer", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}}));
        const ucx::Offer& now = receiver->cpp.offer();
        return c::write_struct<isthmus_ucx_offer>(
            call, "offer", offer,
            {0, now.frame_bytes, now.slots, static_cast<uint32_t>(now.policy), now.note.data(), now.note.size()});
    });
}

isthmus_code isthmus_ucx_receiver_begin(isthmus_ucx_receiver* receiver, isthmus_shared_ring* ring,
                                        isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_begin", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}, {"ring", ring}}));
        ISTHMUS_TRY(c::same_version(call));
        if (receiver->ring || !receiver->buffers.empty()) {
            return call.refuse("receiver", "has begun before", "begin once");
        }
        SharedFrameRing<std::uint8_t> filled = detail::SharedRingParts::ring<std::uint8_t>(parts_of(*ring, ring->core));
        if (filled.buffer(0).size() != receiver->cpp.offer().frame_bytes) {
            return call.refuse("ring", "has frames of " + std::to_string(filled.buffer(0).size()) + " bytes",
                               "a ring of frames of " + std::to_string(receiver->cpp.offer().frame_bytes) + " bytes");
        }
        receiver->ring = c::Ref<isthmus_shared_ring>(*ring);
        receiver->filled.emplace(std::move(filled));
        Result<void> begun = receiver->cpp.begin(*receiver->filled);
        if (!begun) {
            receiver->filled.reset();
            receiver->ring = {};
        }
        return begun;
    });
}

isthmus_code isthmus_ucx_receiver_begin_into(isthmus_ucx_receiver* receiver, isthmus_stream* stream,
                                             isthmus_buffer* const* buffers, size_t count, isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_begin_into", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}, {"stream", stream}, {"buffers", buffers}}));
        ISTHMUS_TRY(c::same_version(call));
        if (receiver->ring || !receiver->buffers.empty()) {
            return call.refuse("receiver", "has begun before", "begin once");
        }
        std::vector<c::Ref<isthmus_buffer>> kept;
        std::vector<Buffer<std::uint8_t>> given;
        for (std::size_t at = 0; at < count; ++at) {
            ISTHMUS_TRY(call.needs({{"buffers[…]", buffers[at]}}));
            kept.emplace_back(*buffers[at]);
            given.emplace_back(buffers[at]->cpp.state());
        }
        ISTHMUS_TRY(receiver->cpp.begin(*stream->device->cpp, stream->cpp, std::move(given)));
        receiver->buffers = std::move(kept);
        return {};
    });
}

int32_t isthmus_ucx_receiver_path(const isthmus_ucx_receiver* receiver) {
    return receiver == nullptr ? ISTHMUS_UCX_PATH_IN_PLACE : static_cast<std::int32_t>(receiver->cpp.path());
}
const char* isthmus_ucx_path_name(int32_t path) {
    return ucx::name(static_cast<ucx::ReceivePath>(path < 0 || path > 2 ? 3 : path)).data();
}

isthmus_code isthmus_ucx_receiver_next(isthmus_ucx_receiver* receiver, int64_t wait_ns, isthmus_ucx_frame** frame,
                                       isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_next", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}, {"frame", frame}}));
        ISTHMUS_TRY(const std::chrono::nanoseconds at_most, c::step_time(call, wait_ns));
        Result<ucx::ReceivedFrame> came = receiver->cpp.next_frame(at_most);
        if (!came && came.code() == Code::timed_out && wait_ns == ISTHMUS_WAIT_NEVER) {
            return Error(Code::not_ready, std::string(call.name) + ": no frame is here", "call again");
        }
        if (!came) return std::move(came).error();
        const auto has = [&](const c::Ref<isthmus_buffer>& each) {
            return each->cpp.state() == came->buffer().state();
        };
        const auto found = std::find_if(receiver->buffers.begin(), receiver->buffers.end(), has);
        if (found == receiver->buffers.end()) {
            return Error(Code::invalid_handle, std::string(call.name) + ": the frame lies in a buffer without a handle",
                         "report this as a bug");
        }
        *frame = new isthmus_ucx_frame(*found, std::move(came).value());
        return {};
    });
}

isthmus_buffer* isthmus_ucx_frame_buffer(isthmus_ucx_frame* frame) {
    return frame == nullptr ? nullptr : frame->buffer.get();
}
uint64_t isthmus_ucx_frame_number(const isthmus_ucx_frame* frame) {
    return frame == nullptr ? 0 : frame->cpp.number();
}
uint64_t isthmus_ucx_frame_missed(const isthmus_ucx_frame* frame) {
    return frame == nullptr ? 0 : frame->cpp.missed();
}
void isthmus_ucx_frame_free(isthmus_ucx_frame* frame) {
    delete frame;
}

isthmus_code isthmus_ucx_receiver_step(isthmus_ucx_receiver* receiver, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_step", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}}));
        ISTHMUS_TRY(const std::chrono::nanoseconds at_most, c::step_time(call, wait_ns));
        return receiver->cpp.step(at_most);
    });
}

int32_t isthmus_ucx_receiver_producer_is_gone(const isthmus_ucx_receiver* receiver) {
    return receiver != nullptr && receiver->cpp.producer_is_gone() ? 1 : 0;
}

isthmus_code isthmus_ucx_receiver_counts(const isthmus_ucx_receiver* receiver, isthmus_ucx_received_counts* counts,
                                         isthmus_error** error) {
    return c::guarded("isthmus_ucx_receiver_counts", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"receiver", receiver}}));
        const ucx::ReceivedCounts now = receiver->cpp.counts();
        return c::write_struct<isthmus_ucx_received_counts>(call, "counts", counts,
                                                            {0, now.frames, now.discarded, now.missed});
    });
}

void isthmus_ucx_receiver_free(isthmus_ucx_receiver* receiver) {
    delete receiver;
}
