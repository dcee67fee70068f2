// SPDX-License-Identifier: Apache-2.0
// Event nodes from a capture (CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL).
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Appends a node that records the event, or waits for it, to the graph that the stream is being captured into; 1 where
// there is none. `call`: for messages.
Result capture_event_node(Driver& d, Stream* stream, Event* event, bool waits, const char* call);

}  // namespace isthmus::sim
