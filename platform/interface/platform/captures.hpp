// The facet of stream capture and graphs. While a capture that began here is open, calls that would end one
// (allocations, frees, queries, waits for other streams) run with the thread's capture mode exchanged to RELAXED:
// observed on driver 580, all of them then leave the capture alone, on the capturing thread too.
#pragma once

#include <platform/status.hpp>

#include <cstdint>

namespace isthmus::platform {

enum class CaptureState : std::uint8_t { none, open, lost };

class Captures {
public:
    virtual ~Captures() = default;
    // THREAD_LOCAL: what other threads do does not end it. Ended by end(), from the same thread.
    virtual Status begin(StreamHandle stream) = 0;
    // Code::capture_error where the capture was lost; no graph then, and the stream works again.
    virtual Status end(StreamHandle stream, GraphHandle& out) = 0;
    // Also of captures begun behind the runtime's back. Leaves a capture alone.
    virtual Status state(StreamHandle stream, CaptureState& out) = 0;

    virtual Status instantiate(GraphHandle graph, GraphInstanceHandle& out) = 0;
    virtual Status launch(GraphInstanceHandle instance, StreamHandle stream) = 0;
    virtual Status destroy(GraphHandle graph) = 0;
    virtual Status destroy(GraphInstanceHandle instance) = 0;
};

}  // namespace isthmus::platform
