// SPDX-License-Identifier: Apache-2.0
// Stream: events and waits.
#include <isthmus/stream.hpp>

#include "captured_events.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "stream_state.hpp"
#include "streams_errors.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

using detail::DeviceState;
using detail::StreamState;

namespace {

// The CPU device's work runs on the calling thread: that waits, and the driver of any GPU answers for the event.
Result<void> wait_on_host(const DeviceState& device, void* cu_event) {
    const std::shared_ptr<DeviceState> asked = device.books->launches.devices.first(
        [](const DeviceState& other) { return !other.synchronous && other.usable(); });
    if (!asked) return make_error<errors::native_event_without_driver>();
    const platform::Status status =
        detail::poll_event(*asked, asked->execution.foreign_event(cu_event), device.config->wait_timeout);
    if (status.code == Code::timed_out) {
        return make_error<errors::native_event_timed_out>(device.config->wait_timeout.count() / 1000);
    }
    return status.ok() ? Result<void>() : asked->failure(status, "waiting for an event of other code");
}

// For the order checker: other code's work may stand behind anything that the runtime's streams were given so far.
void show_all_work(const DeviceState& device) {
    std::vector<std::shared_ptr<StreamState>> streams;
    (void)device.books->launches.devices.first([&](DeviceState& one) {
        for (std::shared_ptr<StreamState>& stream : one.live_streams()) streams.push_back(std::move(stream));
        return false;
    });
    for (const std::shared_ptr<StreamState>& stream : streams) device.books->order->shown(*stream, stream->issued);
}

// Nearly always: open_handle() would find nothing to do. Expects the stream's mutex.
bool is_open(const StreamState& stream) noexcept {
    return stream.handle != platform::StreamHandle::none && stream.recording == nullptr;
}

// Nearly always: a record is the driver's call alone. Expects the stream's mutex.
bool is_plain(const StreamState& stream) noexcept {
    return is_open(stream) && !stream.external && stream.tail.empty();
}

// Expects the stream's mutex. `of_event`: the event's lock; nullptr if no other thread has the event. The device takes
// the call, and is the event's. `before`: as EventState::record_on().
Result<void> record_event(const std::shared_ptr<StreamState>& stream, detail::EventState& event,
                          detail::PolledLock* of_event, std::shared_ptr<StreamState>& before) {
    if (stream->recording != nullptr) {
        Result<bool> captured = detail::record_in_capture(*stream, event, before);
        if (!captured) return std::move(captured).error();
        if (*captured) return {};
    }
    if (stream->external) {
        if (Result<void> refused = stream->refuse_captured("an event was to be recorded"); !refused) return refused;
    }
    if (!is_open(*stream)) {
        if (Result<void> opened = stream->open_handle(); !opened) return opened;
    }
    if (of_event == nullptr) return event.record_first_on(stream);
    const std::lock_guard lock_of_event(*of_event);
    return event.record_on(stream, before);
}

}  // namespace

Result<Event> Stream::record(EventOptions options) {
    DeviceState& device = *state_->device;
    // What bars the record bars the event's making: one question for both (admission_rules.hpp).
    if (device.bars(rules::PublicCall::create_event)) return device.refusal(rules::PublicCall::create_event);
    detail::FenceEvent* taken = nullptr;
    if (!options.timing && !options.interprocess) {
        const platform::Status status = device.take_event(taken);
        if (!status.ok()) return device.failure(status, "creating an event");
    } else if (const Result<detail::FenceEvent*> other = detail::event_for(device, options); other) {
        taken = *other;
    } else {
        return other.error();
    }
    std::shared_ptr<detail::EventState> event = detail::EventState::make_to_record(device, taken);
    {
        std::shared_ptr<StreamState> none;
        const std::lock_guard lock(state_->mutex);
        if (is_plain(*state_)) {
            state_->gives("the record of an event");
            const platform::Status status = device.execution.record_event(taken->handle, state_->handle);
            if (!status.ok()) return device.failure(status, "recording an event");
            event->note_first(state_);
        } else if (Result<void> recorded = record_event(state_, *event, nullptr, none); !recorded) {
            return std::move(recorded).error();
        }
    }
    return detail::event_of(std::move(event));
}

Result<void> Stream::record(Event& event) {
    const DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::record_event)) return device.refusal(rules::PublicCall::record_event);
    detail::EventState& recorded = *event.state();
    if (recorded.device != &device) return make_error<errors::event_of_another_device>();
    std::shared_ptr<StreamState> before;  // until the locks are given back
    const std::lock_guard lock(state_->mutex);
    return record_event(state_, recorded, &recorded.mutex, before);
}

Result<void> Stream::wait(const Event& event) {
    StreamState& stream = *state_;
    DeviceState& device = *stream.device;
    if (device.bars(rules::PublicCall::wait_for_event)) return device.refusal(rules::PublicCall::wait_for_event);
    detail::EventState& waited_for = *event.state();
    const DeviceState& its_device = *waited_for.device;
    if (&its_device != &device) {
        if (its_device.bars(rules::PublicCall::wait_for_event))
            return its_device.refusal(rules::PublicCall::wait_for_event);
        if (waited_for.kind == platform::EventKind::interprocess && !device.synchronous) {
            return make_error<errors::interprocess_event_of_another_device>(named(device), named(its_device));
        }
    }
    const detail::HeldRecord last(waited_for, device.books->order != nullptr);
    if (last.none()) return {};  // whatever record the pooled driver event has from an earlier use
    std::unique_lock lock(stream.mutex);
    if (stream.recording != nullptr || last.captured != nullptr) {
        Result<bool> captured = detail::wait_in_capture(stream, last, its_device);
        if (!captured) return std::move(captured).error();
        if (*captured) return {};
    }
    if (is_plain(stream) && &its_device == &device && !device.synchronous && device.books->order == nullptr) {
        stream.gives("a wait for an event");
        const platform::Status status = device.execution.wait_event(stream.handle, last.handle());
        if (!status.ok()) return device.failure(status, "waiting for an event");
        stream.advance("a wait for an event");  // an operation of its own, as below
        return {};
    }
    if (its_device.synchronous) return {};  // the CPU device has no outstanding work
    if (device.synchronous) {               // its work runs on the calling thread
        lock.unlock();
        return event.synchronize();
    }
    if (stream.external) {
        if (Result<void> refused = stream.refuse_captured("an event was to be waited for"); !refused) return refused;
    }
    if (!is_open(stream)) {
        if (Result<void> opened = stream.open_handle(); !opened) return opened;
    }
    // Fences the work so far, so that host views of its buffers do not wait for the event.
    if (!stream.tail.empty()) {
        if (Result<void> left = stream.depart(nullptr, 0); !left) return left;
    }
    stream.gives("a wait for an event");
    const platform::Status status = device.execution.wait_event(stream.handle, last.handle());
    if (!status.ok()) return device.failure(status, "waiting for an event");
    if (device.books->order != nullptr) {
        if (last.shared) {
            device.books->order->waits_for_others(stream);
        } else {
            device.books->order->waits(stream, *last.stream, last.position);
        }
    }
    // The wait is an operation of its own, so that a synchronisation of this stream covers the event, too.
    stream.advance("a wait for an event");
    stream.fence_external();
    return {};
}

Result<void> Stream::wait_native(void* cu_event) {
    StreamState& stream = *state_;
    DeviceState& device = *stream.device;
    if (device.bars(rules::PublicCall::wait_for_native_event))
        return device.refusal(rules::PublicCall::wait_for_native_event);
    if (device.synchronous) return cu_event == nullptr ? Result<void>() : wait_on_host(device, cu_event);
    if (cu_event == nullptr) return make_error<errors::null_native_event>();
    if (device.books->order != nullptr) show_all_work(device);
    const std::lock_guard lock(stream.mutex);
    if (Result<void> opened = stream.open_handle(); !opened) return opened;
    // The driver would end the capture (905): the event was recorded outside, as far as is known here.
    if (Result<void> refused = stream.refuse_captured("an event of other code was to be waited for"); !refused)
        return refused;
    // Views of the buffers used so far must not wait for the event.
    if (Result<void> left = stream.depart(nullptr, 0); !left) return left;
    stream.gives("a wait for an event of other code");
    const platform::Status status =
        device.execution.wait_event(stream.handle, device.execution.foreign_event(cu_event));
    if (!status.ok()) return device.failure(status, "waiting for an event of other code");
    if (device.books->order != nullptr) device.books->order->waits_for_others(stream);
    stream.advance("a wait for an event of other code");
    stream.fence_external();
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
    if (state_->device->bars(rules::PublicCall::synchronize))
        return state_->device->refusal(rules::PublicCall::synchronize);
    {
        const Result<detail::StreamLock> lock = state_->lock_within(wait, "a synchronisation");
        if (!lock) return lock.error();
        if (Result<void> refused = state_->refuse_captured("the host was to wait for a stream"); !refused) {
            return refused;
        }
    }
    return state_->wait_for_all(wait);
}

std::uint64_t Stream::id() const noexcept {
    return state_->id;
}

Result<int> Stream::priority() const {
    DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::ask_stream_priority))
        return device.refusal(rules::PublicCall::ask_stream_priority);
    Wait wait;
    const Result<detail::StreamLock> lock = state_->lock_within(wait, "asking for a stream's priority");
    if (!lock) return lock.error();
    if (Result<void> opened = state_->open_handle(); !opened) return std::move(opened).error();
    int priority = 0;
    const platform::Status status = device.execution.stream_priority(state_->handle, priority);
    if (!status.ok()) return device.failure(status, "asking for a stream's priority");
    return priority;
}

Result<void*> Stream::native_handle() const {
    DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::ask_native_stream)) return device.refusal(rules::PublicCall::ask_native_stream);
    if (device.synchronous) {
        return make_error<errors::no_native_cpu_stream>();
    }
    Wait wait;
    const Result<detail::StreamLock> lock = state_->lock_within(wait, "asking for a driver's stream");
    if (!lock) return lock.error();
    if (Result<void> opened = state_->open_handle(); !opened) return std::move(opened).error();
    state_->handed_out.store(true, std::memory_order_release);
    return device.execution.native_stream(state_->handle);
}

void Stream::set_launch_mode(LaunchMode mode) noexcept {
    state_->mode.store(mode, std::memory_order_relaxed);
}
LaunchMode Stream::launch_mode() const noexcept {
    return state_->mode.load(std::memory_order_relaxed);
}

}  // namespace v0
}  // namespace isthmus
