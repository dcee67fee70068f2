// SPDX-License-Identifier: Apache-2.0
// Sends the ring to the processes that connect, on a thread of its own, so that none of them delays a frame. Greetings
// and receipts of several processes overlap, so that a silent process delays no other. For `isthmus share` and for the
// GStreamer element isthmussink.
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

// The ring is for one thread at a time: `ring_mutex` is held around every use of it, here and where frames are filled.
// `say` gets the lines about connections, on the admission's thread.
class Admission {
public:
    using Ring = SharedFrameRing<std::uint8_t>;
    Admission(Listener listener, Ring& ring, std::mutex& ring_mutex, const camera::FrameShape& shape, Notices::Say say);
    ~Admission() { stop(); }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    // Ends the thread without waiting for other processes, and removes the listener's name.
    void stop();
    std::uint32_t admitted() const noexcept { return admitted_.load(std::memory_order_acquire); }
    // The error that ended admission; null while processes are admitted.
    const Error* ended() const noexcept { return has_ended_.load(std::memory_order_acquire) ? &*ended_ : nullptr; }

private:
    // A process that was sent the ring, and has not yet confirmed it.
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
    std::string said_{};  // the last line about an error of this process itself
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint32_t> admitted_{0};
    std::optional<Error> ended_{};  // written once, before has_ended_
    std::atomic<bool> has_ended_{false};
    std::thread thread_;  // last, so that all other members exist before the thread starts
};

}  // namespace isthmus::tools::share
