// SPDX-License-Identifier: Apache-2.0
// SharedFrameRing is for one thread at a time; here upstream, the sink and the admission of viewers take turns.
#include "ring.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {

Ring::Slot::Slot(std::shared_ptr<Ring> ring, SharedFrameToFill<std::uint8_t> frame)
    : ring_(std::move(ring)),
      buffer_(&frame.buffer()),
      number_(static_cast<std::size_t>(frame.number() % ring_->ring_.slots())),
      frame_(std::move(frame)) {}

Ring::Slot::~Slot() {
    const std::lock_guard locked(ring_->lock_);
    if (frame_) --ring_->unpublished_;
    frame_.reset();
    ring_->lent_[number_] = false;
}

Buffer<std::uint8_t>* Ring::Slot::writable() noexcept {
    const std::lock_guard locked(ring_->lock_);
    return frame_ ? buffer_ : nullptr;
}

Result<void> Ring::Slot::publish() {
    const std::lock_guard locked(ring_->lock_);
    if (!frame_) return Error(Code::invalid_handle, "the frame was published before");
    Result<void> done = frame_->publish();
    if (!done) return done;
    frame_.reset();
    --ring_->unpublished_;
    return done;
}

Result<std::shared_ptr<Ring>> Ring::create(Device& device, const FrameShape& shape, const SharedRingOptions& options) {
    auto made = SharedFrameRing<std::uint8_t>::create(device, shape.size_bytes, options);
    if (!made) return std::move(made).error();
    return std::shared_ptr<Ring>(new Ring(std::move(made).value(), shape));
}

// An exception must not leave the plugin: GStreamer's functions in C would not give their locks back.
Result<void> Ring::open_to(Listener listener) try {
    admission_ = std::make_unique<tools::share::Admission>(
        std::move(listener), ring_, lock_, shape_,
        [](std::string_view line) { GST_WARNING("%.*s", static_cast<int>(line.size()), line.data()); });
    return {};
} catch (const std::system_error& error) {
    return Error(Code::system_limit, std::string("no thread can be started to admit viewers: ") + error.what(),
                 "allow more threads: ulimit -u, or pids.max of the control group")
        .from_call("pthread_create", error.code().value());
}

void Ring::close() {
    if (admission_) admission_->stop();  // not under the lock, which its thread takes
    const std::lock_guard locked(lock_);
    closed_ = true;
    ring_.close();
}

bool Ring::is_closed() const {
    const std::lock_guard locked(lock_);
    return closed_;
}

Result<std::unique_ptr<Ring::Slot>> Ring::begin(const std::shared_ptr<Ring>& self) {
    const std::lock_guard locked(self->lock_);
    if (self->closed_) return Error(Code::ended, "the ring is closed");
    if (self->unpublished_ > 0) {
        return Error(Code::in_use, "the slot before it is not published yet", "publish that frame, or free it");
    }
    Result<SharedFrameToFill<std::uint8_t>> frame =
        self->ring_.begin_frame(Wait::at_most(std::chrono::milliseconds(1)));
    if (!frame) return std::move(frame).error();
    const std::size_t slot = static_cast<std::size_t>(frame->number() % self->ring_.slots());
    if (self->lent_[slot]) {
        return Error(Code::not_ready, "a reader in this process still has the slot of the next frame",
                     "more slots, or give frames back sooner");
    }
    self->lent_[slot] = true;
    ++self->unpublished_;
    return std::make_unique<Slot>(self, std::move(frame).value());
}

std::uint32_t Ring::live_viewers() const {
    const std::lock_guard locked(lock_);
    const std::vector<SharedReaderInfo> readers = ring_.readers();
    return static_cast<std::uint32_t>(std::count_if(readers.begin(), readers.end(), [](const SharedReaderInfo& reader) {
        return reader.state == ReaderState::live;
    }));
}

}  // namespace isthmus::gst
