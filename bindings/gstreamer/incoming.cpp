// SPDX-License-Identifier: Apache-2.0
// SharedFrameReader is for one thread at a time, and downstream frees frames on any. Such a thread never waits for the
// one that takes frames: where that is within the reader, the frame is left in a list, which it empties soon.
#include "incoming.hpp"

#include <chrono>
#include <utility>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

// A producer that waits for its readers waits for a frame in the list this long at most.
constexpr std::chrono::milliseconds one_wait{2};

}  // namespace

Incoming::Frame::~Frame() {
    if (frame_) ring_->give_back(std::move(*frame_));
}

bool Incoming::Frame::finish() {
    if (!frame_) return true;
    const std::lock_guard locked(ring_->reading_);
    const bool whole = ring_->finish(*frame_);
    frame_.reset();
    return whole;
}

Result<std::shared_ptr<Incoming>> Incoming::open(const OpenSession& opened, const tools::share::MeetingOptions& options,
                                                 std::shared_ptr<OvertakenCount> overtaken) {
    Result<tools::share::OpenedRing> ring = tools::share::open_ring(*opened.device, options);
    if (!ring) return std::move(ring).error();
    return std::shared_ptr<Incoming>(new Incoming(std::move(ring).value(), std::move(overtaken)));
}

Result<Incoming::Taken> Incoming::next(const std::shared_ptr<Incoming>& self) {
    Result<SharedFrame<std::uint8_t>> frame = [&] {
        const std::lock_guard locked(self->reading_);
        return self->ring_.reader.next_frame(Wait::at_most(one_wait));
    }();
    self->finish_returned();
    if (!frame) return std::move(frame).error();
    Taken taken;
    taken.number = frame->number();
    taken.missed = frame->missed();
    taken.frame = std::make_unique<Frame>(self, std::move(frame).value());
    return taken;
}

// Under reading_.
bool Incoming::finish(SharedFrame<std::uint8_t>& frame) {
    const Result<void> whole = frame.finish();
    if (whole) return true;
    if (whole.code() == Code::overtaken) {
        overtaken_->fetch_add(1, std::memory_order_relaxed);  // a count alone
    } else {                                                  // the reader's next calls try again
        GST_WARNING("frame %" G_GUINT64_FORMAT " could not be given back: %s", frame.number(),
                    whole.error().text().c_str());
    }
    return false;
}

void Incoming::give_back(SharedFrame<std::uint8_t> frame) {
    {
        const std::lock_guard locked(returning_);
        returned_.push_back(std::move(frame));
    }
    finish_returned();
}

// Whoever finds the reader free empties the list. Whoever does not leaves that to the thread within the reader, which
// looks at the list after it has left the reader.
void Incoming::finish_returned() {
    for (;;) {
        std::vector<SharedFrame<std::uint8_t>> frames;
        {
            const std::lock_guard locked(returning_);
            if (returned_.empty()) return;
        }
        const std::unique_lock reading(reading_, std::try_to_lock);
        if (!reading.owns_lock()) return;
        {
            const std::lock_guard locked(returning_);
            frames.swap(returned_);
        }
        for (SharedFrame<std::uint8_t>& frame : frames) finish(frame);
        frames.clear();  // under the lock, too
    }
}

}  // namespace isthmus::gst
