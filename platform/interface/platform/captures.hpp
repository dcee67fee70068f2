// SPDX-License-Identifier: Apache-2.0
// The facet of stream capture and graphs. While a capture begun here is open, calls that would end one (allocations,
// frees, queries, waits for other streams) run with the thread's capture mode exchanged to RELAXED: observed on driver
// 580, they then leave the capture intact, on the capturing thread too.
#pragma once

#include <platform/status.hpp>

#include <isthmus/kernel_info.hpp>

#include <cstdint>

namespace isthmus::platform {

struct LaunchRequest;  // driver.hpp

enum class CaptureState : std::uint8_t { none, open, lost };

// A part of a graph that its device runs repeatedly, once, or not at all.
struct ConditionalBody {
    // true: repeats while the word is not 0, tested before each turn; false: runs once if it is not 0
    bool loops = false;
    GraphHandle body{};           // a copy of it runs
    std::uint64_t word = 0;       // device address of 32 bits
    std::uint64_t condition = 0;  // the driver's handle; set by begin_body()
    // Sets the condition from the word; its pack is a SetCondition. The driver launches it before each turn.
    const KernelInfo* setter = nullptr;
};
struct SetCondition {
    std::uint64_t condition = 0;  // the driver's handle of the condition
    std::uint64_t word = 0;       // a View<const std::int32_t> of one element
    std::uint64_t count = 1;
};

class Captures {
public:
    virtual ~Captures() = default;
    // THREAD_LOCAL: calls of other threads do not end it. end() must come from the same thread.
    virtual Status begin(StreamHandle stream) = 0;
    // Code::capture_error if the capture was lost: no graph then, and the stream works again.
    virtual Status end(StreamHandle stream, GraphHandle& out) = 0;
    // Also reports captures begun by other code. Does not affect a capture.
    virtual Status state(StreamHandle stream, CaptureState& out) = 0;
    // As state(), with the capture's id, unique in the process; 0 if none is open.
    virtual Status info(StreamHandle stream, CaptureState& out, std::uint64_t& id) = 0;
    // The node that the stream's next captured work would follow: after a launch, the launch's own node. none if there
    // is no such node or several (a join).
    virtual Status last_node(StreamHandle stream, NodeHandle& out) = 0;

    // Adds a copy of the graph to the capture as one node after the stream's earlier work; later work follows it.
    // Code::capture_error: the capture is unusable, because it was lost, or because the copy was added and nothing will
    // wait for it. (Launching an instance on a captured stream ends the capture: 900, observed on driver 580.)
    virtual Status append(StreamHandle, GraphHandle) { return {Code::unsupported, 0, "append"}; }
    // As append(), for a conditional graph. The body may contain only nodes of the stream's device (no host functions,
    // no memory) and no further conditions. The whole graph may have one instance at a time, cannot be appended, and is
    // not updated. Code::unsupported: the driver has no such nodes.
    virtual Status append_conditional(StreamHandle, const ConditionalBody&) {
        return {Code::unsupported, 0, "append_conditional"};
    }
    // The same, with a body that is recorded where it stands, and may hold further conditions: adds the node after the
    // work of `outer`, and begins a capture of `inside` that fills the body. `body.body` is ignored.
    // Code::capture_error: the outer capture is unusable. Code::unsupported: the driver has no such nodes, and nothing
    // was added.
    virtual Status begin_body(StreamHandle /*outer*/, StreamHandle /*inside*/, ConditionalBody& /*body*/) {
        return {Code::unsupported, 0, "begin_body"};
    }
    // Adds what a loop needs behind the body's work, once. Then end_body() ends the capture of `inside`, as end() does;
    // the recorded work belongs to the outer capture. If either fails, the outer capture makes no graph.
    virtual Status finish_body(StreamHandle /*inside*/, const ConditionalBody& /*body*/) {
        return {Code::unsupported, 0, "finish_body"};
    }
    virtual Status end_body(StreamHandle /*outer*/, StreamHandle /*inside*/, const ConditionalBody& /*body*/) {
        return {Code::unsupported, 0, "end_body"};
    }

    virtual Status instantiate(GraphHandle graph, GraphInstanceHandle& out) = 0;
    virtual Status launch(GraphInstanceHandle instance, StreamHandle stream) = 0;
    // The handle of a kernel for set_kernel_arguments(), valid as long as the driver; Execution::resolve()'s handle is
    // for launches only.
    virtual Status resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) = 0;
    // Whether it would succeed without a driver call.
    virtual bool is_resolved_for_nodes(const KernelInfo&) { return true; }
    // Sets a kernel node's extent and pack for later launches of this instance; launches already given to a stream keep
    // theirs. `node` is of the graph that the instance was made from, which must still exist. `request` names the
    // node's own kernel by its handle for nodes; its stream is ignored. One driver call; no change if it fails.
    virtual Status set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node,
                                        const LaunchRequest& request) = 0;
    // Gives all nodes of the instance the parameters of the graph's, for later launches. If the graphs differ too much
    // (Code::invalid_argument; the driver says 910), nothing has changed and `why` is the difference as text of static
    // storage; otherwise it is "". Nodes stay those of the first graph.
    virtual Status update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) = 0;
    virtual Status destroy(GraphHandle graph) = 0;
    virtual Status destroy(GraphInstanceHandle instance) = 0;
};

}  // namespace isthmus::platform
