// SPDX-License-Identifier: Apache-2.0
// Incoming: a producer's ring, whose frames are lent downstream and given back by whatever thread frees them.
#pragma once

#include "layout.hpp"
#include "memory.hpp"

#include "share/meeting.hpp"

#include <isthmus/ipc/shared_frame_ring.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace isthmus::gst {

using OvertakenCount = std::atomic<std::uint64_t>;

class Incoming {
public:
    class Frame final : public Tenancy {
    public:
        Frame(std::shared_ptr<Incoming> ring, SharedFrame<std::uint8_t> frame)
            : ring_(std::move(ring)), frame_(std::move(frame)), buffer_(&frame_->buffer()) {}
        ~Frame() override;
        const Buffer<std::uint8_t>& buffer() const noexcept override { return *buffer_; }
        Buffer<std::uint8_t>* writable() noexcept override { return nullptr; }
        // Gives the frame back now; the calling thread is that of next(). False: it was overwritten meanwhile.
        bool finish();

    private:
        std::shared_ptr<Incoming> ring_;
        std::optional<SharedFrame<std::uint8_t>> frame_;  // empty: given back
        const Buffer<std::uint8_t>* buffer_;
    };
    struct Taken {
        std::unique_ptr<Frame> frame;
        std::uint64_t number = 0;
        std::uint64_t missed = 0;
    };

    // Errors: those of open_ring().
    static Result<std::shared_ptr<Incoming>> open(const OpenSession& opened,
                                                  const tools::share::MeetingOptions& options,
                                                  std::shared_ptr<OvertakenCount> overtaken);
    // The next frame of `self`. One thread at a time; it waits for a few milliseconds at most. Errors: those of
    // SharedFrameReader::next_frame().
    static Result<Taken> next(const std::shared_ptr<Incoming>& self);
    const FrameShape& shape() const noexcept { return ring_.shape; }

private:
    Incoming(tools::share::OpenedRing ring, std::shared_ptr<OvertakenCount> overtaken)
        : ring_(std::move(ring)), overtaken_(std::move(overtaken)) {}
    bool finish(SharedFrame<std::uint8_t>& frame);
    void give_back(SharedFrame<std::uint8_t> frame);
    void finish_returned();

    tools::share::OpenedRing ring_;
    std::shared_ptr<OvertakenCount> overtaken_;
    std::mutex reading_;    // around every use of the reader and of its frames
    std::mutex returning_;  // of the list below; taken alone, or within reading_
    std::vector<SharedFrame<std::uint8_t>> returned_{};
};

}  // namespace isthmus::gst
