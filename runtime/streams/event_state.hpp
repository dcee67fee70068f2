// SPDX-License-Identifier: Apache-2.0
// EventState: a driver event from the pool and the stream position of its last record.
#pragma once

#include <isthmus/event.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "captured_events.hpp"
#include "device_state.hpp"
#include "polled_lock.hpp"
#include "stream_state.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Lock order: a stream's mutex, then that of its capture, then an event's mutex. The event's mutex is held while the
// driver takes a record, so a call with a deadline acquires it by lock_within().
struct EventState {
    // Takes over the caller's reference to an event of the pool. Its memory lies beside that event.
    static std::shared_ptr<EventState> make(std::shared_ptr<DeviceState> owner, FenceEvent* from_pool);
    // The same for an event that its maker records at once, and that nobody else has before: the stream of the record
    // keeps the device, so that no reference to that is counted.
    static std::shared_ptr<EventState> make_to_record(DeviceState& owner, FenceEvent* from_pool);
    EventState(DeviceState& owner, std::shared_ptr<DeviceState> kept, FenceEvent* from_pool) noexcept;
    ~EventState();

    DeviceState* const device;  // kept by the next member, or by `stream`
    std::shared_ptr<DeviceState> keeps_device;
    FenceEvent* const home;  // whose memory this is; referenced until the end, also by another record
    const platform::EventKind kind;
    // Nothing was recorded, or the last record was seen complete. Stored with release under the mutex. Never true for a
    // shared event.
    std::atomic<bool> complete{true};

    PolledLock mutex;                     // guards the members below
    FenceEvent* taken;                    // of the last record: `home`, or another one while that was in use
    std::shared_ptr<StreamState> stream;  // of the last record; null: never recorded
    std::uint64_t position = 0;
    std::uint64_t records = 0;
    // Exported or imported: the last record may be another process's, and only the driver knows it.
    bool shared = false;
    bool imported = false;
    bool is_fence = false;  // once it is complete, the stream has reached the position for every purpose
    std::shared_ptr<const CapturedRecord> captured;  // the last record was in a capture; then `stream` is empty

    // These expect `mutex` to be held, or that no other thread has the event. next_to_record() returns the driver event
    // for the next record: another one if the last record is still in use. recorded() makes it this event's; after a
    // failed record, abandon() keeps the last record.
    Result<FenceEvent*> next_to_record();
    void recorded(FenceEvent* next) noexcept;
    void abandon(FenceEvent* next) noexcept;
    // The same, and the stream's mutex to be held and its handle to be open. The stream of the last record may end with
    // this one, for which other streams' locks are taken: `before` has it until the caller has given its locks back.
    Result<void> record_on(const std::shared_ptr<StreamState>& on, std::shared_ptr<StreamState>& before);
    // The same for an event of make_to_record(). note_first(): what is left of it where the stream is its own and owes
    // no fence, and the driver has taken the record.
    Result<void> record_first_on(const std::shared_ptr<StreamState>& on);
    void note_first(const std::shared_ptr<StreamState>& on) noexcept {
        records = 1;
        stream = on;
        position = on->issued;
        is_fence = true;
        const bool over = kind != platform::EventKind::timing && !on->others() && on->reached(position);
        complete.store(over, std::memory_order_release);
    }
    // Names no stream any more: `before` has it. The device is kept without one.
    void leave_stream(std::shared_ptr<StreamState>& before);
    // Expects `mutex` to be held.
    void share() noexcept;

private:
    void note(const std::shared_ptr<StreamState>& on, bool fence, std::shared_ptr<StreamState>& before);
};

// A snapshot of an event's last record. While it is held, the runtime does not record the driver event again, except
// for interprocess events: the processes that opened one keep the same driver event.
class HeldRecord {
public:
    // `with_stream`: false, if `stream` is not asked for. Inline: a wait of a stream for an event is little else.
    HeldRecord(EventState& event, bool with_stream) : HeldRecord(event, with_stream, std::lock_guard(event.mutex)) {}
    HeldRecord(EventState& event, std::unique_lock<PolledLock> of_event);
    ~HeldRecord() { event_.device->drop_event(taken_); }
    HeldRecord(const HeldRecord&) = delete;
    HeldRecord& operator=(const HeldRecord&) = delete;

    // Never recorded; unknown for a shared event.
    bool none() const noexcept { return !outside_ && captured == nullptr && !shared; }
    // Recorded on a stream, outside of captures, by this runtime.
    bool outside() const noexcept { return outside_; }
    platform::EventHandle handle() const noexcept { return taken_->handle; }
    // Known complete without a driver call. Never true for timing events (the driver may not have taken the time yet),
    // nor if other code may give the stream work, because such work has no position.
    bool reached() const noexcept;
    // Notes that the record was seen complete. If it serves as a fence, the stream has reached its position. The event
    // is complete unless it has a newer record.
    void note_complete() const;

    std::shared_ptr<StreamState> stream;  // null also for a record in a capture, and for a shared event; see above
    std::uint64_t position = 0;
    std::shared_ptr<const CapturedRecord> captured;
    bool shared = false;

private:
    struct Locked {};
    HeldRecord(EventState& event, Locked /*expects the event's lock*/)
        : position(event.position),
          captured(event.captured),
          shared(event.shared),
          event_(event),
          taken_(event.taken),
          number_(event.records),
          is_fence_(event.is_fence),
          outside_(!event.shared && event.stream != nullptr) {
        taken_->keep();
    }
    HeldRecord(EventState& event, bool with_stream, const std::lock_guard<PolledLock>& /*of_event*/)
        : HeldRecord(event, Locked{}) {
        if (with_stream && outside_) stream = event.stream;
    }
    EventState& event_;
    FenceEvent* taken_;
    std::uint64_t number_;
    bool is_fence_;
    bool outside_;
};

// Common part of Device::create_event and Stream::record(): refuses what the device lacks, and takes an event from its
// pool. The caller has checked that the device takes the call.
Result<FenceEvent*> event_for(DeviceState& device, EventOptions options);
Result<Event> make_event(const std::shared_ptr<DeviceState>& device, EventOptions options);
// The event of a state that nobody else has. An Event has no move, and on the way through a Result each copy would
// count a reference: so the way is made without a state.
inline Result<Event> event_of(std::shared_ptr<EventState> state) {
    Result<Event> made{Event(nullptr)};
    const_cast<std::shared_ptr<EventState>&>(std::as_const(made)->state()) = std::move(state);
    return made;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
