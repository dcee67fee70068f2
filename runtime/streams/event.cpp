// SPDX-License-Identifier: Apache-2.0
// Event: completion, waiting and timing.
#include <isthmus/event.hpp>

#include "device_state.hpp"
#include "event_state.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"
#include "streams_errors.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::unique_lock<PolledLock> lock_event(EventState& event, Wait& wait) {
    const RuntimeConfig& config = *event.device->config;
    return lock_within(event.mutex, wait, config.wait_timeout, config.wait_policy);
}

Error being_recorded(const Wait& wait, const char* what) {
    return make_error_as<errors::event_is_being_recorded>(wait.refuse ? Code::not_ready : Code::timed_out, what);
}

// The recording process, and whether it still runs, are unknown.
Result<void> wait_for_recorder(DeviceState& device, platform::EventHandle event, const Wait& wait) {
    const std::chrono::nanoseconds timeout =
        wait.refuse ? std::chrono::nanoseconds(0) : wait.timeout.value_or(device.config->wait_timeout);
    ObservedSpan span(device.observer(), Span::wait, "an event of several processes",
                      [&] { return device.observed(); });
    const platform::Status status = poll_event(device, event, timeout);
    if (status.ok()) return {};
    if (status.code != Code::timed_out)
        return span.over(device.failure(status, "waiting for an event of several processes"));
    if (wait.refuse) {
        return span.over(make_error<errors::shared_event_not_ready>());
    }
    return span.over(make_error<errors::shared_event_timed_out>(timeout.count() / 1000));
}

}  // namespace

// For std::allocate_shared(): takes the memory that lies beside a pooled event, and returns both at the end.
template <class T>
struct EventAllocator {
    using value_type = T;
    explicit EventAllocator(FenceEvent* of) noexcept : home(of) {}
    template <class U>
    EventAllocator(const EventAllocator<U>& other) noexcept : home(other.home) {}
    T* allocate(std::size_t count) {  // always of the same size
        if (home->block == nullptr) {
            note_heap("operator new");
            home->block = ::operator new(count * sizeof(T));
        }
        return static_cast<T*>(home->block);
    }
    void deallocate(T*, std::size_t) noexcept {
        const std::shared_ptr<void> kept = std::move(home->keeps_owner);  // perhaps the last to hold the device
        if (!home->owner->config->forked()) home->owner->drop_event(home);
    }
    friend bool operator==(const EventAllocator&, const EventAllocator&) noexcept = default;
    FenceEvent* home;
};

std::shared_ptr<EventState> EventState::make(std::shared_ptr<DeviceState> owner, FenceEvent* from_pool) {
    DeviceState& its_device = *owner;
    return std::allocate_shared<EventState>(EventAllocator<EventState>(from_pool), its_device, std::move(owner),
                                            from_pool);
}

std::shared_ptr<EventState> EventState::make_to_record(DeviceState& owner, FenceEvent* from_pool) {
    return std::allocate_shared<EventState>(EventAllocator<EventState>(from_pool), owner, nullptr, from_pool);
}

EventState::EventState(DeviceState& owner, std::shared_ptr<DeviceState> kept, FenceEvent* from_pool) noexcept
    : device(&owner), keeps_device(std::move(kept)), home(from_pool), kind(from_pool->kind), taken(from_pool) {}

// `home` goes back with its memory, in EventAllocator, which comes after this.
EventState::~EventState() {
    if (taken != home && !device->config->forked()) device->drop_event(taken);
    home->owner = device;
    if (keeps_device != nullptr) {
        home->keeps_owner = std::move(keeps_device);
    } else {
        home->keeps_owner = std::move(stream);  // none: the record failed, and the maker keeps the device
    }
}

void EventState::leave_stream(std::shared_ptr<StreamState>& before) {
    if (keeps_device == nullptr) keeps_device = device->shared_from_this();
    before = std::exchange(stream, nullptr);
}

Result<FenceEvent*> EventState::next_to_record() {
    if (!taken->shared() || kind == platform::EventKind::interprocess) return taken;
    // A fence or a wait still uses the last record, which keeps its driver event.
    if (taken != home && !home->shared()) return home;
    FenceEvent* fresh = nullptr;
    if (const platform::Status status = device->take_event(fresh, kind); !status.ok()) {
        return device->failure(status, "creating an event");
    }
    return fresh;
}

void EventState::recorded(FenceEvent* next) noexcept {
    ++records;
    if (next == taken) return;
    if (FenceEvent* const last = std::exchange(taken, next); last != home) device->drop_event(last);
}

void EventState::abandon(FenceEvent* next) noexcept {
    if (next != taken && next != home) device->drop_event(next);
}

[[gnu::always_inline]] inline void EventState::note(const std::shared_ptr<StreamState>& on, bool fence,
                                                    std::shared_ptr<StreamState>& before) {
    // The state itself: the event must not hold the wrapper of an external stream. Two statements: a conditional
    // expression of both would be constant, and count a reference twice.
    if (stream.get() != on.get()) {
        before = std::move(stream);
        if (on->external) {
            stream = on->weak_from_this().lock();
        } else {
            stream = on;
        }
    }
    position = on->issued;
    is_fence = fence;
    const bool over = kind != platform::EventKind::timing && !shared && !on->others() && on->reached(position);
    complete.store(over, std::memory_order_release);
    if (shared && device->books->order != nullptr) device->books->order->shown(*on, position);
}

Result<void> EventState::record_on(const std::shared_ptr<StreamState>& on, std::shared_ptr<StreamState>& before) {
    FenceEvent* next = taken;
    if (taken->shared()) {
        const Result<FenceEvent*> other = next_to_record();
        if (!other) return other.error();
        next = *other;
    }
    const Result<bool> fence = on->record_user_event(*next);
    if (!fence) return abandon(next), fence.error();
    recorded(next);
    if (captured) captured = nullptr;
    return note(on, *fence, before), Result<void>();
}

Result<void> EventState::record_first_on(const std::shared_ptr<StreamState>& on) {
    const Result<bool> fence = on->record_user_event(*taken);
    if (!fence) return fence.error();
    ++records;
    std::shared_ptr<StreamState> none;
    return note(on, *fence, none), Result<void>();
}

void EventState::share() noexcept {
    shared = true;
    complete.store(false, std::memory_order_release);
    if (stream != nullptr && device->books->order != nullptr) device->books->order->shown(*stream, position);
}

HeldRecord::HeldRecord(EventState& event, std::unique_lock<PolledLock> /*of_event*/) : HeldRecord(event, Locked{}) {
    if (outside_) stream = event.stream;
}
bool HeldRecord::reached() const noexcept {
    if (shared) return false;
    return none() || (event_.kind != platform::EventKind::timing && !stream->others() && stream->reached(position));
}

void HeldRecord::note_complete() const {
    Wait wait = Wait::never();
    const std::unique_lock<PolledLock> lock = lock_event(event_, wait);
    if (!lock.owns_lock()) return;  // another thread is recording the event, which replaces this record
    // If an interprocess event was recorded again meanwhile, it is not known which record was seen complete.
    if (event_.records != number_ || event_.shared != shared) return;
    if (shared) {
        if (event_.device->books->order != nullptr) event_.device->books->order->seen_others();
        return;
    }
    if (is_fence_) stream->raise(position);
    if (event_.device->books->order != nullptr && !none()) event_.device->books->order->seen(*stream, position);
    // Stored last: a thread that reads it may continue at once, and relies on the changes above. Pairs with the acquire
    // in Event::finished().
    event_.complete.store(true, std::memory_order_release);
}

Result<FenceEvent*> event_for(DeviceState& device, EventOptions options) {
    platform::EventKind kind = options.timing ? platform::EventKind::timing : platform::EventKind::plain;
    if (options.interprocess) {
        if (options.timing) return make_error<errors::interprocess_timing_event>();
        const Capability& shared = device.capabilities.feature(Feature::ipc_events);
        if (!shared) return make_error<errors::no_interprocess_events>(shared.reason);
        kind = platform::EventKind::interprocess;
    }
    FenceEvent* taken = nullptr;
    if (const platform::Status status = device.take_event(taken, kind); !status.ok()) {
        return device.failure(status, "creating an event");
    }
    return taken;
}

Result<Event> make_event(const std::shared_ptr<DeviceState>& device, EventOptions options) {
    if (device->bars(rules::PublicCall::create_event)) return device->refusal(rules::PublicCall::create_event);
    const Result<FenceEvent*> taken = event_for(*device, options);
    if (!taken) return taken.error();
    return event_of(EventState::make(device, *taken));
}

}  // namespace detail

Event::Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}

EventOptions Event::options() const noexcept {
    return {state_->kind == platform::EventKind::timing, state_->kind == platform::EventKind::interprocess};
}

Result<bool> Event::finished() const {
    if (state_->complete.load(std::memory_order_acquire)) return true;
    detail::DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::ask_known_event))
        return device.refusal(rules::PublicCall::ask_known_event);  // takes no lock (R3)
    Wait wait = Wait::never();
    std::unique_lock<detail::PolledLock> lock = detail::lock_event(*state_, wait);
    if (!lock.owns_lock()) return false;  // another thread is recording it
    const detail::HeldRecord last(*state_, std::move(lock));
    if (last.captured) return detail::no_answer_in_capture("asking an event");
    if (!last.reached()) {
        if (device.bars(rules::PublicCall::ask_event)) return device.refusal(rules::PublicCall::ask_event);
        const platform::Status status = device.execution.query_event(last.handle());
        if (status.code == Code::not_ready) return false;
        if (!status.ok()) return device.failure(status, "asking an event");
    }
    last.note_complete();
    return true;
}

Result<void> Event::synchronize(Wait wait) const {
    if (state_->complete.load(std::memory_order_acquire)) return {};
    detail::DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::wait_for_known_event))
        return device.refusal(rules::PublicCall::wait_for_known_event);
    std::unique_lock<detail::PolledLock> lock = detail::lock_event(*state_, wait);
    if (!lock.owns_lock()) return detail::being_recorded(wait, "waiting for an event");
    const detail::HeldRecord last(*state_, std::move(lock));
    if (last.captured) return detail::no_answer_in_capture("waiting for an event");
    if (!last.reached()) {
        if (device.bars(rules::PublicCall::wait_for_event)) return device.refusal(rules::PublicCall::wait_for_event);
        Result<void> waited = last.shared ? detail::wait_for_recorder(device, last.handle(), wait)
                                          : last.stream->wait_for(last.handle(), last.position, wait);
        if (!waited) return waited;
    }
    last.note_complete();
    return {};
}

Result<void*> Event::native_handle() const {
    detail::DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::ask_native_event)) return device.refusal(rules::PublicCall::ask_native_event);
    Wait wait;
    const std::unique_lock<detail::PolledLock> lock = detail::lock_event(*state_, wait);
    if (!lock.owns_lock()) return detail::being_recorded(wait, "asking for a driver's event");
    if (state_->records == 0 && !state_->shared && !device.synchronous)
        return make_error<errors::native_event_without_record>();
    return device.execution.native_event(state_->taken->handle);
}

Result<float> Event::elapsed_ms(const Event& begin, const Event& end) {
    detail::DeviceState& device = *begin.state_->device;
    if (begin.state_->device != end.state_->device) {
        return make_error<errors::elapsed_time_between_devices>();
    }
    if (!begin.options().timing || !end.options().timing) {
        return make_error<errors::elapsed_time_without_timing>();
    }
    if (device.bars(rules::PublicCall::read_known_elapsed_time))
        return device.refusal(rules::PublicCall::read_known_elapsed_time);
    Wait wait;
    std::unique_lock<detail::PolledLock> lock = detail::lock_event(*begin.state_, wait);
    if (!lock.owns_lock()) return detail::being_recorded(wait, "reading elapsed time");
    const detail::HeldRecord first(*begin.state_, std::move(lock));
    lock = detail::lock_event(*end.state_, wait);
    if (!lock.owns_lock()) return detail::being_recorded(wait, "reading elapsed time");
    const detail::HeldRecord last(*end.state_, std::move(lock));
    if (first.captured || last.captured) return detail::no_answer_in_capture("reading elapsed time");
    if (first.none() || last.none()) {
        return make_error<errors::elapsed_time_without_record>();
    }
    if (device.bars(rules::PublicCall::read_elapsed_time)) return device.refusal(rules::PublicCall::read_elapsed_time);
    float milliseconds = 0;
    const platform::Status status = device.execution.elapsed_ms(first.handle(), last.handle(), milliseconds);
    if (status.code == Code::not_ready) {
        return make_error<errors::elapsed_time_not_ready>();
    }
    if (!status.ok()) return device.failure(status, "reading elapsed time");
    return milliseconds;
}

}  // namespace v0
}  // namespace isthmus
