// SPDX-License-Identifier: Apache-2.0
// Where received frames are put: into the slots of a ring, or into buffers of the program.
#pragma once

#include "worker.hpp"

#include <isthmus/ucx.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace ucx {

// Room for one frame. Destroyed without end(): it was not filled.
class Place {
public:
    virtual ~Place() = default;
    std::uint8_t* data() const noexcept { return data_; }
    // Memory of CUDA, as UCX registered it; nullptr: memory that the CPU sees.
    void* device() const noexcept { return device_; }
    // Shows the frame that is here, or drops it. `missed`: frames that were not sent before it.
    virtual Result<void> end(bool whole, std::uint64_t missed) = 0;

protected:
    std::uint8_t* data_ = nullptr;
    void* device_ = nullptr;
};

class Landing {
public:
    virtual ~Landing() = default;
    // The next place. `first`: no other one is begun, so that a short wait is in order. Errors: timed_out, not_ready
    // (no room now), and those of the ring or the device.
    virtual Result<std::unique_ptr<Place>> begin(bool first) = 0;
    virtual std::size_t ahead() const noexcept = 0;  // how many places may be begun
    // Registers the memory that UCX writes to.
    virtual Result<void> map(ucx_wire::Worker& worker) = 0;
    // Calls UCX where it may use device memory: with the device's context current, which its transports for CUDA need.
    // Errors, with which nothing was called: those of Stream::enqueue_native().
    virtual Result<void> with_context(const std::function<void()>& calls) {
        calls();
        return {};
    }
};

std::unique_ptr<Landing> make_landing(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard);

// Buffers of the program, and the frames in them.
struct ReceivedFrame::Slots {
    struct Ready {
        std::size_t slot = 0;
        std::uint64_t number = 0;
        std::uint64_t missed = 0;
    };
    std::mutex mutex{};  // frames are given back on any thread
    std::vector<Buffer<std::uint8_t>> buffers{};
    std::vector<std::size_t> free{};
    std::deque<Ready> ready{};
    std::uint64_t shown = 0;
    std::uint64_t missed = 0;  // since the last one that was shown
};
// Errors: as FrameReceiver::begin().
Result<std::unique_ptr<Landing>> make_landing(Device& device, const Stream& stream,
                                              const std::shared_ptr<ReceivedFrame::Slots>& slots,
                                              std::uint64_t frame_bytes, ReceivePath path,
                                              std::vector<void*> device_memory);
// Makes the context of the stream's device current for UCX. As Landing::with_context().
Result<void> with_context(Stream& stream, const std::function<void()>& calls);
// Whether the CPU sees the buffer. Errors: those of a view.
Result<bool> cpu_sees(Buffer<std::uint8_t>& buffer);

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
