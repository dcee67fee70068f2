// SPDX-License-Identifier: Apache-2.0
// Default streams of threads: CU_STREAM_PER_THREAD, and the variants of functions (…_ptds, …_ptsz) for which the stream
// 0 is the calling thread's. Each thread has one in each context, made when it is first used; it waits for the legacy
// stream and that waits for it.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Whether the stream 0 is the calling thread's own: inside a call of such a variant.
bool default_stream_is_per_thread() noexcept;

// The calling thread's default stream in a live context. Requires the driver's mutex.
Stream* default_stream_of_thread(Driver& d, Context& context);

}  // namespace isthmus::sim
