// SPDX-License-Identifier: Apache-2.0
// What events that other processes know do in addition to the engine's: their records are told to all, and the last
// record may be another process's.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Before the engine's own record: the operation that tells the others, when the stream comes to it.
Result announce_record(Driver& d, Event* handle, const Event& event, engine::StreamId stream);

// Whether the event's last record is another process's; `record` is that one.
bool recorded_elsewhere(const Event& event, std::uint64_t& record);
Result query_elsewhere(Driver& d, const Event& event, std::uint64_t record);
Result wait_elsewhere(Driver& d, const Event& event, std::uint64_t record);  // the calling thread
Result wait_in_stream(Driver& d, const Event& event, std::uint64_t record, const StreamTarget& stream);

}  // namespace isthmus::sim
