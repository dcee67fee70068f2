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

// Made by Device::create_event or Stream::record. A handle: copies name the same event, and one that was moved from
// still does. Thread-safe. Never recorded counts as complete.
// Destroying an event that others still wait for is fine: the driver keeps what they need.
class ISTHMUS_API Event {
public:
    explicit Event(std::shared_ptr<detail::EventState> state);
    Event(const Event&) = default;  // no move: an event is never empty
    Event& operator=(const Event&) = default;
    ~Event() = default;

    // Has all work before the last record finished? Code::device_lost after a fault.
    Result<bool> finished() const;
    // Blocks the calling thread until it has (S9).
    Result<void> synchronize(Wait wait = {}) const;
    // Milliseconds between two records; both events must have been made with timing and be finished.
    static Result<float> elapsed_ms(const Event& begin, const Event& end);

    const std::shared_ptr<detail::EventState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::EventState> state_;
};

}  // namespace isthmus::inline v0
