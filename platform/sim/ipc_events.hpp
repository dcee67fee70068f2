// SPDX-License-Identifier: Apache-2.0
// The part of interprocess events beyond the engine's: their records are visible to all processes, and the last record
// may be another process's.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Called before the engine's own record: submits the operation that announces the record when the stream reaches it.
Result announce_record(Driver& d, Event* handle, const Event& event, engine::StreamId stream);

// Whether the event's last record is another process's; `record` is its number.
bool recorded_elsewhere(const Event& event, std::uint64_t& record);
Result query_elsewhere(Driver& d, const Event& event, std::uint64_t record);
Result wait_elsewhere(Driver& d, const Event& event, std::uint64_t record);  // blocks the calling thread
Result wait_in_stream(Driver& d, const Event& event, std::uint64_t record, const StreamTarget& stream);

}  // namespace isthmus::sim
