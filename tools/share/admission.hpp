// Who connects is given the ring, on a thread of its own: one that says nothing holds up no frame. They come one at a
// time: one that says nothing holds up the next one for two steps of the channel, its greeting and its receipt.
#pragma once

#include "camera/frame_shape.hpp"

#include <isthmus/channel.hpp>
#include <isthmus/shared_frame_ring.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace isthmus::tools::share {

// The ring is one thread's at a time: `ring_mutex` is held around every use of it, here and by who fills frames.
class Admission {
public:
    using Ring = SharedFrameRing<std::uint8_t>;
    Admission(Listener listener, Ring& ring, std::mutex& ring_mutex, const camera::FrameShape& shape);
    ~Admission() { stop(); }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    // Nobody is admitted any more, and the listener's name is gone. Takes as long as the step of a handshake at most.
    void stop();
    std::uint32_t admitted() const noexcept { return admitted_.load(std::memory_order_acquire); }
    // Why nobody is admitted any more; null as long as somebody may be.
    const Error* ended() const noexcept { return has_ended_.load(std::memory_order_acquire) ? &*ended_ : nullptr; }

private:
    void run(Listener listener);
    Result<void> admit(Listener& listener);
    Ring& ring_;
    std::mutex& ring_mutex_;
    const camera::FrameShape shape_;
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint32_t> admitted_{0};
    std::optional<Error> ended_{};  // written once, before has_ended_
    std::atomic<bool> has_ended_{false};
    std::thread thread_;  // last
};

}  // namespace isthmus::tools::share
