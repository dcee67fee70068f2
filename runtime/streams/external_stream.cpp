// SPDX-License-Identifier: Apache-2.0
// External streams: wraps streams that other code created, and drops the handle with the last wrapper.
#include <isthmus/device.hpp>
#include <isthmus/stream.hpp>

#include "device_state.hpp"
#include "external_stream.hpp"
#include "recording.hpp"
#include "stream_state.hpp"
#include "streams_errors.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Shared by the copies of a wrapped Stream. The state stays while buffers and events refer to it. After the last
// wrapper the stream's owner may destroy the stream, and the runtime does not use it.
class StreamWrapper {
public:
    explicit StreamWrapper(std::shared_ptr<StreamState> wrapped) noexcept : stream_(std::move(wrapped)) {}
    StreamWrapper(const StreamWrapper&) = delete;
    StreamWrapper& operator=(const StreamWrapper&) = delete;
    ~StreamWrapper() {
        if (stream_->device->config->forked()) return;
        stream_->device->execution.forget_foreign_stream();
        // No lock while other wrappers exist: a thread that uses one may hold it, blocked in the driver.
        if (stream_->wrappers.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
        const std::lock_guard lock(stream_->mutex);
        if (stream_->wrappers.load(std::memory_order_acquire) > 0) return;  // wrapped again meanwhile
        if (stream_->device->usable()) {
            (void)stream_->capture();  // ends an abandoned capture
            // Usually recorded already, by fence_external().
            for (int tries = 0; tries < 3 && !stream_->fence(); ++tries) {
            }
        }
        stream_->handle = platform::StreamHandle::none;
    }

private:
    const std::shared_ptr<StreamState> stream_;
};

Error not_wrapped(const DeviceState& device, const platform::Status& status) {
    if (status.code == Code::wrong_device) {
        return make_error<errors::stream_of_another_context>(named(device));
    }
    if (device.synchronous) return make_error<errors::no_external_cpu_stream>();
    return make_error<errors::per_thread_default_stream>();
}

std::shared_ptr<StreamState> own_stream_of(DeviceState& device, const void* native) {
    if (native == nullptr) return nullptr;
    for (const std::shared_ptr<StreamState>& stream : device.live_streams()) {
        if (stream->external) continue;
        const std::lock_guard lock(stream->mutex);
        if (stream->handle != platform::StreamHandle::none &&
            device.execution.native_stream(stream->handle) == native) {
            // Other code that has the handle may give the stream work.
            stream->handed_out.store(true, std::memory_order_release);
            return stream;
        }
    }
    return nullptr;
}

// Finds the state by the driver's stream id, because a later stream may have the same handle value (S17).
std::shared_ptr<StreamState> state_of(DeviceState& device, const platform::ForeignStream& foreign) {
    for (std::shared_ptr<StreamState>& known : device.live_streams()) {
        if (known->external && known->external_id == foreign.id) return std::move(known);
    }
    std::shared_ptr<StreamState> made = StreamState::make(device.shared_from_this(), foreign);
    device.add_stream(made);
    return made;
}

}  // namespace

Result<Stream> wrapped_stream(const std::shared_ptr<DeviceState>& owner, void* native) {
    DeviceState& device = *owner;
    if (device.bars(rules::PublicCall::wrap_stream)) return device.refusal(rules::PublicCall::wrap_stream);
    if (std::shared_ptr<StreamState> own = own_stream_of(device, native)) return Stream(std::move(own));
    platform::ForeignStream foreign;
    const platform::Status status = device.execution.foreign_stream(native, foreign);
    if (!status.ok()) {
        if (status.driver_code == 0) return not_wrapped(device, status);
        return device.failure(status, "wrapping a stream");
    }
    const std::lock_guard one_at_a_time(device.wrapping);
    std::shared_ptr<StreamState> state = state_of(device, foreign);
    {
        const std::lock_guard lock(state->mutex);
        state->handle = foreign.handle;
        ++state->wrappers;
    }
    auto wrapper = std::make_shared<StreamWrapper>(state);
    return Stream(std::shared_ptr<StreamState>(std::move(wrapper), state.get()));
}

}  // namespace detail

Result<Stream> Device::wrap_stream(void* native) {
    return detail::wrapped_stream(state_, native);
}

bool Stream::external() const noexcept {
    return state_->external;
}

}  // namespace v0
}  // namespace isthmus
