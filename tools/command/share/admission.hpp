// SPDX-License-Identifier: Apache-2.0
// Gives the ring to the processes that connect, on a thread of its own, so that none of them holds up a frame.
// Greetings and receipts of several processes go on side by side, so that one that says nothing holds up no other.
#pragma once

#include "camera/frame_shape.hpp"
#include "notices.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace isthmus::tools::share {

// The ring is one thread's at a time: `ring_mutex` is held around every use of it, here and where frames are filled.
class Admission {
public:
    using Ring = SharedFrameRing<std::uint8_t>;
    Admission(Listener listener, Ring& ring, std::mutex& ring_mutex, const camera::FrameShape& shape);
    ~Admission() { stop(); }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    // Ends the thread, which waits for no other process, and removes the listener's name.
    void stop();
    std::uint32_t admitted() const noexcept { return admitted_.load(std::memory_order_acquire); }
    // Why no process is admitted any more; null as long as one may be.
    const Error* ended() const noexcept { return has_ended_.load(std::memory_order_acquire) ? &*ended_ : nullptr; }

private:
    // Was sent the ring, and has not said yet that it came.
    struct Receipt {
        Channel channel;
        std::chrono::steady_clock::time_point deadline;
    };
    void run(Listener listener) noexcept;
    Result<void> serve(Listener& listener);
    Result<void> admit(Listener& listener);
    void collect_receipts();
    void report(const Error& error);

    Ring& ring_;
    std::mutex& ring_mutex_;
    const camera::FrameShape shape_;
    std::vector<Receipt> receipts_{};
    Notices notices_;
    std::string said_{};  // the last line that was about this process
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint32_t> admitted_{0};
    std::optional<Error> ended_{};  // written once, before has_ended_
    std::atomic<bool> has_ended_{false};
    std::thread thread_;  // last
};

}  // namespace isthmus::tools::share
