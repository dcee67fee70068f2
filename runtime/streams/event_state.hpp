// EventState: a driver event from the pool and the stream position that it stands behind.
#pragma once

#include <isthmus/event.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "captured_events.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct FenceEvent;
struct StreamState;

// Locks: a stream's mutex, and that of its capture, is taken before an event's, which is held while the driver is given
// a record: who has a deadline takes it by lock_within().
struct EventState {
    EventState(std::shared_ptr<DeviceState> owner, platform::EventKind wanted, FenceEvent* from_pool) noexcept
        : device(std::move(owner)), kind(wanted), taken(from_pool) {}
    ~EventState();

    const std::shared_ptr<DeviceState> device;
    const platform::EventKind kind;
    // Nothing was recorded, or the last record was seen to be complete. Stored with release under the mutex. Never of a
    // shared one.
    std::atomic<bool> complete{true};

    std::mutex mutex;                     // guards what follows
    FenceEvent* taken;                    // never null; another one where the last record is still leant on
    std::shared_ptr<StreamState> stream;  // of the last record; empty: never recorded
    std::uint64_t position = 0;
    std::uint64_t records = 0;
    // Exported or imported: the last record may be another process's, so that only the driver knows what it stands for.
    bool shared = false;
    bool imported = false;
    bool is_fence = false;  // where it is complete, the stream has reached the position for every purpose
    std::shared_ptr<const CapturedRecord> captured;  // the last record was in a capture; then `stream` is empty

    // These expect `mutex`. What the next record is made on: another driver's event where something leans on the last
    // one. It is this event's from recorded() on; where the record failed, abandon() leaves the last one as it was.
    Result<FenceEvent*> next_to_record();
    void recorded(FenceEvent* next) noexcept;
    void abandon(FenceEvent* next) noexcept;
    // Expects the stream's mutex, and its handle open.
    Result<void> record_on(const std::shared_ptr<StreamState>& on);
    // Expects `mutex`.
    void share() noexcept;
};

// The last record of an event as it was when this was made. While it is held, the driver's event is not recorded anew
// by us, but for interprocess ones, which stay one and the same for those who opened them.
class HeldRecord {
public:
    explicit HeldRecord(EventState& event);
    HeldRecord(EventState& event, std::unique_lock<std::mutex> of_event);
    ~HeldRecord();
    HeldRecord(const HeldRecord&) = delete;
    HeldRecord& operator=(const HeldRecord&) = delete;

    // Never recorded; of a shared event that is not known.
    bool none() const noexcept { return stream == nullptr && captured == nullptr && !shared; }
    platform::EventHandle handle() const noexcept;
    // Known without asking. Never of timing events: that the work ended does not mean that the driver took the time.
    // Nor where other code may give the stream work, which has no position.
    bool reached() const noexcept;
    // It was seen to be complete: so is the stream up to its position, and the event, where it has no newer record.
    void note_complete() const;

    std::shared_ptr<StreamState> stream;  // empty also where the record was in a capture, and of a shared event
    std::uint64_t position = 0;
    std::shared_ptr<const CapturedRecord> captured;
    bool shared = false;

private:
    EventState& event_;
    FenceEvent* taken_;
    std::uint64_t number_;
    bool is_fence_;
};

// What Device::create_event and Stream::record() do: refuses what the device lacks, and takes an event from its pool.
Result<Event> make_event(const std::shared_ptr<DeviceState>& device, EventOptions options);

}  // namespace isthmus::inline v0::detail
