// SPDX-License-Identifier: Apache-2.0
// Ring: the shared ring of a sink. Its slots are lent to upstream as GstMemory, one at a time and in their order.
#pragma once

#include "layout.hpp"
#include "memory.hpp"

#include "share/admission.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace isthmus::gst {

class Ring {
public:
    // A slot that was begun. Published or not, its memory is not filled again before this object ends: readers of this
    // process may still map it.
    class Slot final : public Tenancy {
    public:
        Slot(std::shared_ptr<Ring> ring, SharedFrameToFill<std::uint8_t> frame);
        ~Slot() override;
        const Buffer<std::uint8_t>& buffer() const noexcept override { return *buffer_; }
        Buffer<std::uint8_t>* writable() noexcept override;
        const Ring* ring() const noexcept { return ring_.get(); }
        // Gives the frame to the viewers. Errors: those of SharedFrameToFill::publish().
        Result<void> publish();

    private:
        std::shared_ptr<Ring> ring_;
        Buffer<std::uint8_t>* buffer_;
        std::size_t number_;
        std::optional<SharedFrameToFill<std::uint8_t>> frame_;  // under the ring's lock; empty: published
    };

    static Result<std::shared_ptr<Ring>> create(Device& device, const FrameShape& shape,
                                                const SharedRingOptions& options);
    // Admits viewers that connect to the listener, from now on. Errors: system_limit (no thread can be started).
    Result<void> open_to(Listener listener);
    // Viewers get the remaining frames, and then the end. No slot is begun any more.
    void close();
    bool is_closed() const;

    // The next slot, which is `self`'s. Waits for a millisecond at most. Errors: timed_out (viewers have the slot),
    // not_ready (this process still has the memory of the frame that was published in it), in_use (the slot before it
    // is not published yet), ended (closed).
    static Result<std::unique_ptr<Slot>> begin(const std::shared_ptr<Ring>& self);

    const FrameShape& shape() const noexcept { return shape_; }
    std::uint32_t admitted() const noexcept { return admission_ ? admission_->admitted() : 0; }
    // The error that ended the admission of viewers; null: none.
    const Error* admission_ended() const noexcept { return admission_ ? admission_->ended() : nullptr; }
    std::uint32_t live_viewers() const;

private:
    Ring(SharedFrameRing<std::uint8_t> ring, const FrameShape& shape)
        : ring_(std::move(ring)), shape_(shape), lent_(ring_.slots()) {}

    mutable std::mutex lock_;  // around every use of ring_ and of its frames
    SharedFrameRing<std::uint8_t> ring_;
    const FrameShape shape_;
    std::vector<bool> lent_;
    std::size_t unpublished_ = 0;  // slots that were begun and neither published nor freed: one at most
    bool closed_ = false;
    std::unique_ptr<tools::share::Admission> admission_{};  // last: its thread uses the members above
};

}  // namespace isthmus::gst
