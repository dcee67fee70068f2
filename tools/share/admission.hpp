// Who connects is given the ring, on a thread of its own: one that says nothing holds up no frame.
#pragma once

#include "camera/frame_shape.hpp"

#include <isthmus/channel.hpp>
#include <isthmus/shared_frame_ring.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
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

private:
    void run(Listener listener);
    Result<void> admit(Listener& listener);
    Ring& ring_;
    std::mutex& ring_mutex_;
    const camera::FrameShape shape_;
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint32_t> admitted_{0};
    std::thread thread_;  // last
};

}  // namespace isthmus::tools::share
