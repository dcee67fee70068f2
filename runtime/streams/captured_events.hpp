// Events of captures: recording and waiting where the stream is captured or the event belongs to a capture.
#pragma once

#include <isthmus/result.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus::inline v0::detail {

struct EventState;
class HeldRecord;
struct Recording;
struct StreamState;

// What an event stands behind that was last recorded in a capture. Such an event is not a point in time: nothing has
// run. Observed on driver 580: a question about it ends the capture (907); when that is over, questions and waits
// answer 1 until the event is recorded anew.
struct CapturedRecord {
    std::weak_ptr<Recording> recording;
    std::uint64_t recording_id = 0;
    std::vector<std::uint32_t> behind;  // operations of the recording
};

// Both expect the stream's mutex to be held. false: no capture has to do with it, and nothing was done. Refused before
// the driver is asked: in a capture, waiting for what is outside of it (905; 900 for an event of several processes) or
// for another capture (902: both are lost), and recording an event for other processes (900); anywhere, waiting for a
// capture that is over (1).
Result<bool> record_in_capture(StreamState& stream, EventState& event);
// A stream that is not captured joins the capture of the event. Expects a record.
Result<bool> wait_in_capture(StreamState& stream, const HeldRecord& last);
// What the host may not ask of an event of a capture.
Error no_answer_in_capture(const char* what);

}  // namespace isthmus::inline v0::detail
