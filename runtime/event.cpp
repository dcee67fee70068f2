// Event: completion, waiting and timing.
#include <isthmus/event.hpp>

#include "device_state.hpp"
#include "event_state.hpp"
#include "stream_state.hpp"

#include <string>
#include <utility>

namespace isthmus::inline v0 {
namespace detail {

EventState::~EventState() {
    if (device->config->forked()) return;
    (void)device->driver->execution().destroy_event(handle);  // the driver keeps it for those who still wait
}

}  // namespace detail

namespace {

std::pair<std::shared_ptr<detail::StreamState>, std::uint64_t> recorded_at(detail::EventState& event) {
    const std::lock_guard lock(event.mutex);
    return {event.stream, event.position};
}

}  // namespace

Event::Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}

Result<bool> Event::finished() const {
    detail::DeviceState& device = *state_->device;
    const auto [stream, position] = recorded_at(*state_);
    if (!stream || stream->reached(position)) return true;
    if (!device.usable()) return device.unusable("asking an event");
    const platform::Status status = device.driver->execution().query_event(state_->handle);
    if (status.code == Code::not_ready) return false;
    if (!status.ok()) return device.failure(status, "asking an event");
    return true;
}

Result<void> Event::synchronize(Wait wait) const {
    const auto [stream, position] = recorded_at(*state_);
    if (!stream || stream->reached(position)) return {};
    if (!state_->device->usable()) return state_->device->unusable("waiting for an event");
    return stream->wait_for(state_->handle, position, wait);
}

Result<float> Event::elapsed_ms(const Event& begin, const Event& end) {
    detail::DeviceState& device = *begin.state_->device;
    if (begin.state_->device != end.state_->device) {
        return Error(Code::wrong_device, "the two events belong to different devices",
                     "time on one device, or use the host's clock around a synchronise");
    }
    if (!begin.state_->timing || !end.state_->timing) {
        return Error(Code::invalid_argument, "elapsed time needs two events that were made with timing",
                     "create_event(true) or record(true)");
    }
    if (!recorded_at(*begin.state_).first || !recorded_at(*end.state_).first) {
        return Error(Code::invalid_argument, "an event that was never recorded has no time",
                     "record both events first");
    }
    if (!device.usable()) return device.unusable("reading elapsed time");
    float milliseconds = 0;
    const platform::Status status =
        device.driver->execution().elapsed_ms(begin.state_->handle, end.state_->handle, milliseconds);
    if (status.code == Code::not_ready) {
        return Error(Code::not_ready, "the work between the two events is still running", "synchronize the later one");
    }
    if (!status.ok()) return device.failure(status, "reading elapsed time");
    return milliseconds;
}

}  // namespace isthmus::inline v0
