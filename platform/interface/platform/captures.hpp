// The facet of stream capture and graphs. While a capture that began here is open, calls that would end one
// (allocations, frees, queries, waits for other streams) run with the thread's capture mode exchanged to RELAXED:
// observed on driver 580, all of them then leave the capture alone, on the capturing thread too.
#pragma once

#include <platform/status.hpp>

#include <isthmus/kernel_info.hpp>

#include <cstdint>

namespace isthmus::platform {

struct LaunchRequest;  // driver.hpp

enum class CaptureState : std::uint8_t { none, open, lost };

// A part of a graph that its device runs again and again, or once, or not at all.
struct ConditionalBody {
    bool loops = false;      // while the word is not 0, which is looked at before each turn; else: if it is not 0
    GraphHandle body{};      // a copy of it runs
    std::uint64_t word = 0;  // the device's address of 32 bits
    // Sets the condition from the word: its pack is a SetCondition. The driver launches it before each turn.
    const KernelInfo* setter = nullptr;
};
struct SetCondition {
    std::uint64_t condition = 0;  // the driver's name for it
    std::uint64_t word = 0;       // a View<const std::int32_t> of one element
    std::uint64_t count = 1;
};

class Captures {
public:
    virtual ~Captures() = default;
    // THREAD_LOCAL: what other threads do does not end it. Ended by end(), from the same thread.
    virtual Status begin(StreamHandle stream) = 0;
    // Code::capture_error where the capture was lost; no graph then, and the stream works again.
    virtual Status end(StreamHandle stream, GraphHandle& out) = 0;
    // Also of captures begun behind the runtime's back. Leaves a capture alone.
    virtual Status state(StreamHandle stream, CaptureState& out) = 0;
    // As state(), with the capture's number, which no other capture of the process has; 0 where none is open.
    virtual Status info(StreamHandle stream, CaptureState& out, std::uint64_t& id) = 0;
    // What the next work for a captured stream would follow, which after a launch is the node that it became; none
    // where that is nothing, or several nodes (a join).
    virtual Status last_node(StreamHandle stream, NodeHandle& out) = 0;

    // Puts a copy of the graph into the capture, as one node behind what the stream was given so far; what it is given
    // next follows. Code::capture_error: the capture is of no use any more, because it was lost, or because the copy
    // came into it and nothing will wait for it. (Launching an instance on a captured stream ends the capture: 900,
    // observed on driver 580.)
    virtual Status append(StreamHandle, GraphHandle) { return {Code::unsupported, 0, "append"}; }
    // As append(), of a graph that runs by a condition. The body has nodes that run on the stream's device alone (no
    // host functions, no memory) and no further conditions. Of the whole graph there is one instance at a time, it
    // cannot be appended, and is not updated. Code::unsupported: the driver has no such nodes.
    virtual Status append_conditional(StreamHandle, const ConditionalBody&) {
        return {Code::unsupported, 0, "append_conditional"};
    }

    virtual Status instantiate(GraphHandle graph, GraphInstanceHandle& out) = 0;
    virtual Status launch(GraphInstanceHandle instance, StreamHandle stream) = 0;
    // The handle by which set_kernel_arguments() knows a kernel, good for as long as the driver lives; what Execution
    // resolves is for launches.
    virtual Status resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) = 0;
    // Would it find that without asking the driver?
    virtual bool is_resolved_for_nodes(const KernelInfo&) { return true; }
    // Gives a kernel's node another extent and pack, for launches of this instance from now on; those that were given
    // to a stream before are not touched. `node` is of the graph that the instance was made from, which still lives,
    // and `request` names the node's own kernel, by the handle for nodes; its stream does not matter. One driver call,
    // and no change where it fails.
    virtual Status set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node,
                                        const LaunchRequest& request) = 0;
    // Gives all nodes of the instance what the graph's have, for launches from now on. Where the graphs differ too much
    // (Code::invalid_argument; the driver says 910), nothing has changed, and `why` tells the
    // difference in words of static storage; it is "" otherwise. Nodes stay those of the first graph.
    virtual Status update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) = 0;
    virtual Status destroy(GraphHandle graph) = 0;
    virtual Status destroy(GraphInstanceHandle instance) = 0;
};

}  // namespace isthmus::platform
