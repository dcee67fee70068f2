// SPDX-License-Identifier: Apache-2.0
// Device: queries, streams and events.
#include <isthmus/device.hpp>

#include "device_allocators.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "stream_state.hpp"
#include "wait_pause.hpp"

#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

std::shared_ptr<detail::StreamState> new_stream(const std::shared_ptr<detail::DeviceState>& device, int priority) {
    std::shared_ptr<detail::StreamState> stream = detail::StreamState::make(device, priority);
    device->add_stream(stream);
    return stream;
}

}  // namespace

Device::Device(std::shared_ptr<detail::DeviceState> state)
    : state_(std::move(state)),
      allocators_(std::make_shared<detail::DeviceAllocators>(state_)),
      stream_(new_stream(state_, 0)) {
    state_->first_stream = stream_.state();
    state_->books->launches.devices.add(state_->index, state_);
}

std::size_t Device::index() const noexcept {
    return state_->index;
}
bool Device::is_cpu() const noexcept {
    return state_->driver->facts().is_cpu();
}
std::string_view Device::name() const noexcept {
    return state_->driver->facts().name;
}
const Capabilities& Device::capabilities() const noexcept {
    return state_->capabilities;
}
const DeviceFacts& Device::facts() const noexcept {
    return state_->driver->all_facts(state_->usable());
}
bool Device::healthy() const noexcept {
    return !state_->is_lost() && !state_->config->forked();
}
Stream& Device::stream() noexcept {
    return stream_;
}

Result<Stream> Device::create_stream(StreamOptions options) {
    if (state_->bars(rules::PublicCall::create_stream)) return state_->refusal(rules::PublicCall::create_stream);
    std::shared_ptr<detail::StreamState> stream = new_stream(state_, options.priority);
    const std::lock_guard lock(stream->mutex);
    if (Result<void> opened = stream->open_handle(); !opened) return std::move(opened).error();
    return Stream(stream);
}

Result<Event> Device::create_event(EventOptions options) {
    return detail::make_event(state_, options);
}

LaunchPath Device::launch_path(MemoryKind kind) const noexcept {
    const auto at = static_cast<std::size_t>(kind);
    return at < state_->paths.size() ? state_->paths[at].path : LaunchPath::refuse;
}

Result<void> Device::synchronize(Wait wait) {
    constexpr rules::PublicCall call = rules::PublicCall::synchronize_device;
    const rules::Bar bar = state_->bar(call);
    if (bar != rules::Bar::none && bar != rules::Bar::service) return state_->refusal(call);
    // Polls streams without holding a driver call that a starting service would wait for: user code that ends here may
    // start one.
    Result<void> waited;
    if (bar == rules::Bar::service) {
        waited = state_->services.refusal(rules::DriverUse::synchronize_device, "a synchronisation");
    }
    const detail::Deadline deadline(wait, state_->config->wait_timeout);
    const std::vector<std::shared_ptr<detail::StreamState>> streams = state_->live_streams();
    for (const std::shared_ptr<detail::StreamState>& stream : streams) {
        if (waited) waited = stream->wait_for_all(deadline.left());
    }
    if (waited) waited = state_->wait_for_ended_streams(deadline.left());
    if (waited) waited = state_->wait_for_others(deadline);
    for (const std::shared_ptr<detail::StreamState>& stream : streams) state_->end_host_functions(stream->host_calls);
    detail::end_dropped_buffers(*state_, false);
    return waited;
}

}  // namespace v0
}  // namespace isthmus
