// SPDX-License-Identifier: Apache-2.0
// Work of a context that is to come waits for an event: its streams do, and those that it gets later wait for its gate,
// a stream of the engine that the program does not see. All functions require the driver's mutex.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// 900, and lost captures, where the event or a stream of the context is being captured.
Result wait_for_event(Driver& d, Context& context, engine::EventId event);
// A new stream waits for what its context waited for.
void hold_new_stream(Driver& d, const Stream& stream);
// The context ends.
void open_gate(Driver& d, Context& context);

}  // namespace isthmus::sim
