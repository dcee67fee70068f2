// Stream: copies, fills, events and waits.
#include <isthmus/stream.hpp>

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <cstring>
#include <string>

namespace isthmus::inline v0 {
namespace {

using detail::BufferState;
using detail::DeviceState;
using detail::StreamState;

Error released(std::string_view what) {
    return {Code::invalid_handle, std::string(what) + ": a buffer is empty, moved from or already released",
            "pass the buffer that it was moved to"};
}

Result<void> position_only(Result<std::uint64_t> issued) {
    if (!issued) return std::move(issued).error();
    return {};
}

// The GPU copies or fills in stream order; everything else goes through host views.
bool on_device(const StreamState& stream, const BufferState& buffer) {
    return buffer.device == stream.device && !stream.device->synchronous;
}

platform::CopyDirection direction(const BufferState& destination, const BufferState& source) {
    const auto host_memory = [](const BufferState& buffer) {
        return buffer.kind == MemoryKind::host || buffer.kind == MemoryKind::pinned ||
               buffer.kind == MemoryKind::registered || buffer.kind == MemoryKind::write_combined ||
               buffer.kind == MemoryKind::host_numa;
    };
    if (host_memory(source)) {
        return host_memory(destination) ? platform::CopyDirection::host_to_host
                                        : platform::CopyDirection::host_to_device;
    }
    return host_memory(destination) ? platform::CopyDirection::device_to_host
                                    : platform::CopyDirection::device_to_device;
}

}  // namespace

Result<void> Stream::copy_bytes(const std::shared_ptr<BufferState>& destination,
                                const std::shared_ptr<BufferState>& source) {
    if (!destination || !source) return released("copy");
    StreamState& stream = *state_;
    if (!stream.device->usable()) return stream.device->unusable("a copy");
    if (destination->bytes != source->bytes) {
        return Error(Code::invalid_argument,
                     "a copy of " + std::to_string(source->bytes) + " bytes into a buffer of " +
                         std::to_string(destination->bytes),
                     "give both buffers the same size");
    }
    if (destination == source || destination->bytes == 0) return {};
    if (on_device(stream, *destination) && on_device(stream, *source)) {
        detail::Operation operation(stream, "a copy", nullptr);
        operation.uses(*source, ArgumentUse::read, 0);
        operation.uses(*destination, ArgumentUse::write, 1);
        return position_only(operation.issue([&] {
            return stream.device->driver->memory().copy(destination->device_address, source->device_address,
                                                        source->bytes, direction(*destination, *source), stream.handle);
        }));
    }
    if (source->host == nullptr || destination->host == nullptr) {
        return Error(Code::wrong_device, "a copy between devices where one side is not visible to the host",
                     "copy on the device that owns both buffers, or through a shared buffer");
    }
    Result<detail::ViewScope> from = detail::open_scope(source, ArgumentUse::read, Wait{});
    if (!from) return std::move(from).error();
    Result<detail::ViewScope> to = detail::open_scope(destination, ArgumentUse::write, Wait{});
    if (!to) return std::move(to).error();
    std::memcpy(destination->host, source->host, source->bytes);
    return {};
}

Result<void> Stream::fill(const std::shared_ptr<BufferState>& destination, std::uint8_t value) {
    if (!destination) return released("fill");
    StreamState& stream = *state_;
    if (!stream.device->usable()) return stream.device->unusable("a fill");
    if (destination->bytes == 0) return {};
    if (on_device(stream, *destination)) {
        detail::Operation operation(stream, "a fill", nullptr);
        operation.uses(*destination, ArgumentUse::write, 0);
        return position_only(operation.issue([&] {
            return stream.device->driver->memory().fill(destination->device_address, value, destination->bytes,
                                                        stream.handle);
        }));
    }
    if (destination->host == nullptr) {
        return Error(Code::wrong_device, "a fill of another device's memory that the host cannot see",
                     "fill it on a stream of its own device");
    }
    Result<detail::ViewScope> scope = detail::open_scope(destination, ArgumentUse::write, Wait{});
    if (!scope) return std::move(scope).error();
    std::memset(destination->host, value, destination->bytes);
    return {};
}

Result<Event> Stream::record(bool timing) {
    DeviceState& device = *state_->device;
    if (!device.usable()) return device.unusable("recording an event");
    platform::EventHandle handle = platform::EventHandle::none;
    if (const platform::Status status = device.driver->execution().create_event(timing, handle); !status.ok()) {
        return device.failure(status, "creating an event");
    }
    Event event(std::make_shared<detail::EventState>(state_->device, handle, timing));
    if (Result<void> recorded = record(event); !recorded) return std::move(recorded).error();
    return event;
}

Result<void> Stream::record(Event& event) {
    StreamState& stream = *state_;
    DeviceState& device = *stream.device;
    if (!device.usable()) return device.unusable("recording an event");
    if (event.state()->device != stream.device) {
        return Error(Code::wrong_device, "the event belongs to another device than the stream",
                     "make the event with this stream's device, or let the other stream wait for it");
    }
    const std::lock_guard lock(stream.mutex);
    if (Result<void> refused = stream.refuse_captured("an event was to be recorded"); !refused) return refused;
    if (Result<void> opened = stream.open_handle(); !opened) return opened;
    const platform::Status status = device.driver->execution().record_event(event.state()->handle, stream.handle);
    if (!status.ok()) return device.failure(status, "recording an event");
    const std::lock_guard event_lock(event.state()->mutex);
    event.state()->stream = state_;
    event.state()->position = stream.issued;
    return {};
}

Result<void> Stream::wait(const Event& event) {
    StreamState& stream = *state_;
    DeviceState& device = *stream.device;
    if (!device.usable()) return device.unusable("waiting for an event");
    if (!event.state()->device->usable()) return event.state()->device->unusable("waiting for an event");
    if (event.state()->device->synchronous) return {};   // the CPU device is always done
    if (device.synchronous) return event.synchronize();  // its work happens on this very thread
    const std::lock_guard lock(stream.mutex);
    if (Result<void> refused = stream.refuse_captured("an event was to be waited for"); !refused) return refused;
    if (Result<void> opened = stream.open_handle(); !opened) return opened;
    // Views of what was used so far do not wait for the event.
    if (Result<void> left = stream.depart(nullptr, 0); !left) return left;
    const platform::Status status = device.driver->execution().wait_event(stream.handle, event.state()->handle);
    if (!status.ok()) return device.failure(status, "waiting for an event");
    // What the stream does from here on ends after the event: an operation of its own, so that a synchronise of this
    // stream covers it.
    stream.advance("a wait for an event");
    return {};
}

Result<void> Stream::wait_stream(Stream& other) {
    if (other.state_ == state_) return {};
    Result<Event> event = other.record();
    if (!event) return std::move(event).error();
    return wait(*event);
}

Result<bool> Stream::finished() {
    Result<void> done = synchronize(Wait::never());
    if (done) return true;
    if (done.code() == Code::not_ready) return false;
    return std::move(done).error();
}

Result<void> Stream::synchronize(Wait wait) {
    if (!state_->device->usable()) return state_->device->unusable("a synchronisation");
    std::uint64_t last = 0;
    {
        const std::lock_guard lock(state_->mutex);
        if (Result<void> refused = state_->refuse_captured("the host was to wait for a stream"); !refused) {
            return refused;
        }
        last = state_->issued;
    }
    return state_->wait_until(last, wait);
}

std::uint64_t Stream::id() const noexcept {
    return state_->id;
}
void Stream::set_launch_mode(LaunchMode mode) noexcept {
    state_->mode.store(mode, std::memory_order_relaxed);
}
LaunchMode Stream::launch_mode() const noexcept {
    return state_->mode.load(std::memory_order_relaxed);
}

}  // namespace isthmus::inline v0
