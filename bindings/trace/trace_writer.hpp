// SPDX-License-Identifier: Apache-2.0
// The recorded events as one JSON document in the trace event format, which Perfetto reads.
#pragma once

#include "recorded_event.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::trace {

struct ThreadEvents {
    std::uint64_t thread = 0;
    const RecordedEvent* events = nullptr;
    std::size_t count = 0;
};

// Pure. Sorted by time. docs/observing.md describes its tracks and arguments.
std::string trace_json(const std::vector<ThreadEvents>& threads, std::uint64_t dropped);

}  // namespace isthmus::trace
