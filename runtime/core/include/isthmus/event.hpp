// SPDX-License-Identifier: Apache-2.0
// Event: a point in a stream's work that other streams and the host can wait for.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <memory>

namespace isthmus {
inline namespace v0 {

namespace detail {
struct EventState;
}

// At most one of the two: an event that other processes can open cannot measure time, and a request for both is refused
// (S11).
struct EventOptions {
    bool timing = false;        // for elapsed_ms(); recording then costs the device a little more
    bool interprocess = false;  // for export_event() (shared_event.hpp); needs Feature::ipc_events
};

// Made by Device::create_event or Stream::record. A handle: copies and moved-from objects name the same event.
// Thread-safe. An event that was never recorded counts as complete, and waiting for it returns at once. An event may be
// destroyed while streams or threads wait for it: they wait for its last record at that time. Driver events are reused,
// so that in steady state recording a fresh event costs one driver call.
class ISTHMUS_API Event {
public:
    explicit Event(std::shared_ptr<detail::EventState> state);
    Event(const Event&) = default;  // no move: an event is never empty
    Event& operator=(const Event&) = default;
    ~Event() = default;

    // Whether all work before the last record has finished. A driver call until any call on any thread has seen that;
    // one load afterwards. It then also counts for Stream::completed(). An event shared between processes is queried
    // each time. Errors: device_lost (after a fault).
    Result<bool> finished() const;
    // Blocks the calling thread until finished() is true (S9).
    Result<void> synchronize(Wait wait = {}) const;
    // Milliseconds between two records. Both events must have been made with timing, and have finished.
    // Errors: wrong_device, invalid_argument (without timing, never recorded), not_ready, device_lost.
    static Result<float> elapsed_ms(const Event& begin, const Event& end);
    EventOptions options() const noexcept;
    // The CUevent of the last record, for other code to wait for and to query; it may not record or destroy it. Valid
    // until the event is recorded again, which may take another driver event, and while an Event names it. nullptr on
    // the CPU device, whose work is done already. Errors: invalid_argument (never recorded: the driver event may have
    // an older record of other work), device_lost.
    Result<void*> native_handle() const;

    const std::shared_ptr<detail::EventState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::EventState> state_;
};

}  // namespace v0
}  // namespace isthmus
