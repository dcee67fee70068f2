// Event: a point in a stream's work that others can wait for.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <memory>

namespace isthmus::inline v0 {

namespace detail {
struct EventState;
}

// One or the other: an event that other processes can open measures no time, and asking for both is refused (S11).
struct EventOptions {
    bool timing = false;        // for elapsed_ms(); recording it costs the device a little more
    bool interprocess = false;  // for export_event() (shared_event.hpp); only where Feature::ipc_events is
};

// Made by Device::create_event or Stream::record. A handle: copies name the same event, and one that was moved from
// still does. Thread-safe. Never recorded counts as complete, and waiting for it as done.
// Destroying an event that others still wait for is fine: they wait for the record that was the last one then. The
// driver's events are used again, so that in the long run recording a fresh event costs one driver call.
class ISTHMUS_API Event {
public:
    explicit Event(std::shared_ptr<detail::EventState> state);
    Event(const Event&) = default;  // no move: an event is never empty
    Event& operator=(const Event&) = default;
    ~Event() = default;

    // Has all work before the last record finished? One load once that was seen, by any call on any thread; a driver
    // call until then. Seen, it also counts for Stream::completed(). Code::device_lost after a fault. An event that
    // several processes share is asked for each time.
    Result<bool> finished() const;
    // Blocks the calling thread until it has (S9).
    Result<void> synchronize(Wait wait = {}) const;
    // Milliseconds between two records; both events must have been made with timing and be finished.
    // Errors: wrong_device, invalid_argument (without timing, never recorded), not_ready, device_lost.
    static Result<float> elapsed_ms(const Event& begin, const Event& end);
    EventOptions options() const noexcept;

    const std::shared_ptr<detail::EventState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::EventState> state_;
};

}  // namespace isthmus::inline v0
