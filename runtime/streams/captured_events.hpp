// SPDX-License-Identifier: Apache-2.0
// Events of captures: records and waits of a captured stream, or of an event that belongs to a capture.
#pragma once

#include <isthmus/result.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;
struct EventState;
class HeldRecord;
struct Recording;
struct StreamState;

// The last record of an event that was recorded in a capture. Such an event marks no point in time: nothing has run.
// Observed on driver 580: a query of it ends the capture (907); after the capture, queries and waits return 1 until the
// event is recorded again.
struct CapturedRecord {
    std::weak_ptr<Recording> recording;
    std::uint64_t recording_id = 0;
    std::vector<std::uint32_t> behind;  // operations of the recording
};

// Both expect the stream's mutex to be held. false: no capture is involved, and nothing was done. Refused before the
// driver is called (its error code): in a capture, waiting for an event outside it (905; 900 for an interprocess event)
// or of another capture (902: both are lost), and recording an interprocess event (900); anywhere, waiting for an event
// of a capture that is over (1).
// `before`: as EventState::record_on().
Result<bool> record_in_capture(StreamState& stream, EventState& event, std::shared_ptr<StreamState>& before);
// A stream that is not captured joins the event's capture. Expects a record; `of_event`: the event's device.
Result<bool> wait_in_capture(StreamState& stream, const HeldRecord& last, const DeviceState& of_event);
// The error of a host query about an event of a capture.
Error no_answer_in_capture(const char* what);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
