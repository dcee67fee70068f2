// SPDX-License-Identifier: Apache-2.0
// One frame: the producer's, to fill and publish, or the reader's, to read and finish.
#include "calls.hpp"
#include "ring.hpp"

#include <memory>

using namespace isthmus;

// Of a ring or of a reader; of neither once it is published or finished.
struct isthmus_frame {
    ~isthmus_frame() {
        if (ring) ring->core->abandon(number);
        if (reader) reader->core->give_back(number, buffer->cpp.state());
    }
    c::Ref<isthmus_shared_ring> ring;
    c::Ref<isthmus_shared_reader> reader;
    isthmus_buffer* buffer = nullptr;
    std::uint64_t number = 0;
    std::uint64_t missed = 0;
};

isthmus_code isthmus_shared_ring_begin(isthmus_shared_ring* ring, int64_t wait_ns, isthmus_frame** frame,
                                       isthmus_error** error) {
    return c::guarded("isthmus_shared_ring_begin", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"ring", ring}, {"frame", frame}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        auto made = std::make_unique<isthmus_frame>();
        ISTHMUS_TRY(made->number, ring->core->begin(wait));
        made->ring = c::Ref<isthmus_shared_ring>(*ring);
        made->buffer = &ring->slot_of(made->number);
        *frame = made.release();
        return {};
    });
}

isthmus_code isthmus_shared_reader_next(isthmus_shared_reader* reader, int64_t wait_ns, isthmus_frame** frame,
                                        isthmus_error** error) {
    return c::guarded("isthmus_shared_reader_next", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"reader", reader}, {"frame", frame}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        auto made = std::make_unique<isthmus_frame>();
        ISTHMUS_TRY(const detail::RingReaderCore::Taken taken, reader->core->take(wait));
        made->reader = c::Ref<isthmus_shared_reader>(*reader);
        made->buffer = reader->slots[taken.slot].get();
        made->number = taken.frame;
        made->missed = taken.missed;
        reader->core->arrived(*made->buffer->cpp.state());
        *frame = made.release();
        return {};
    });
}

isthmus_code isthmus_frame_publish(isthmus_frame* frame, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_frame_publish", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"frame", frame}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        if (!frame->ring) return call.refuse("frame", "is a reader's", "call isthmus_frame_finish()");
        ISTHMUS_TRY(frame->ring->core->publish(frame->number, *frame->buffer->cpp.state(), wait));
        const c::Ref<isthmus_shared_ring> published = std::move(frame->ring);  // nothing to abandon
        delete frame;
        return {};
    });
}

isthmus_code isthmus_frame_finish(isthmus_frame* frame, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_frame_finish", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"frame", frame}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        if (frame->ring) return call.refuse("frame", "is a producer's", "call isthmus_frame_publish()");
        if (!frame->reader) return detail::RingReaderCore::finished_before();
        Result<void> done = frame->reader->core->finish(frame->number, *frame->buffer->cpp.state(), wait);
        if (!done && done.code() != Code::overtaken && done.code() != Code::peer_broke_rules) return done;
        // Nothing to give back any more; the buffer goes with the reader.
        const c::Ref<isthmus_shared_reader> finished = std::move(frame->reader);
        if (done)
            delete frame;
        else
            frame->buffer = nullptr;
        return done;
    });
}

isthmus_buffer* isthmus_frame_buffer(isthmus_frame* frame) {
    return frame == nullptr ? nullptr : frame->buffer;
}
uint64_t isthmus_frame_number(const isthmus_frame* frame) {
    return frame == nullptr ? 0 : frame->number;
}
uint64_t isthmus_frame_missed(const isthmus_frame* frame) {
    return frame == nullptr ? 0 : frame->missed;
}
void isthmus_frame_free(isthmus_frame* frame) {
    delete frame;
}
