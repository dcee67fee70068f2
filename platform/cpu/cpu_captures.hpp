// SPDX-License-Identifier: Apache-2.0
// Captures on the CPU device: work of a captured stream is recorded, and run at each launch of the graph.
#pragma once

#include <platform/driver.hpp>

#include "cpu_graph.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace isthmus::platform::cpu {

// The streams of one capture share one list of steps. An event waits only for steps recorded before it, so the
// recording order is a valid order of the whole graph, forks and joins included. Codes are those of a CUDA driver;
// calls that would end a capture there are refused here, and the capture continues. Thread-safe.
class CpuCaptures final : public Captures {
public:
    explicit CpuCaptures(CpuWorkers& workers) : workers_(workers) {}
    Status begin(StreamHandle stream) override;
    Status end(StreamHandle stream, GraphHandle& out) override;
    Status state(StreamHandle stream, CaptureState& out) override;
    Status info(StreamHandle stream, CaptureState& out, std::uint64_t& id) override;
    Status last_node(StreamHandle stream, NodeHandle& out) override;
    Status append(StreamHandle stream, GraphHandle graph) override;
    Status append_conditional(StreamHandle stream, const ConditionalBody& request) override;
    Status begin_body(StreamHandle outer, StreamHandle inside, ConditionalBody& body) override;
    Status finish_body(StreamHandle inside, const ConditionalBody& body) override;
    Status end_body(StreamHandle outer, StreamHandle inside, const ConditionalBody& body) override;

    Status instantiate(GraphHandle graph, GraphInstanceHandle& out) override;
    // Code::capture_error on a captured stream.
    Status launch(GraphInstanceHandle instance, StreamHandle stream) override;
    Status resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) override;
    Status set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node, const LaunchRequest& request) override;
    Status update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) override;
    Status destroy(GraphHandle graph) override;
    Status destroy(GraphInstanceHandle instance) override;

    // Does the work now, or records it if the stream is captured. `work`: callable as Status(), may run repeatedly, and
    // owns what it needs.
    template <class Work>
    Status run(StreamHandle stream, Work work) {
        if (open_.load(std::memory_order_acquire) == 0) return work();
        return keep(stream, Step::of(work)) ? Status{} : work();
    }
    // The same for a kernel.
    Status launch(const LaunchRequest& request);

    // Records an event in the capture of its stream. true: it belongs to that capture and to nothing else.
    bool recorded(EventHandle event, StreamHandle stream);
    // Joins the stream to the event's capture. A capture cannot wait for an event outside it.
    Status waited(StreamHandle stream, EventHandle event);
    // Code::capture_error for an event of an open capture: it can be neither queried nor waited for.
    Status outside(EventHandle event, const char* call);
    void forget(EventHandle event);
    void forget(StreamHandle stream);

private:
    CpuWorkers& workers_;  // of kernels, recorded or not

    // For each stream, how many of its steps come before a point.
    using Clock = std::map<StreamHandle, std::uint64_t>;
    struct Branch {
        Clock before;
        // The step that its next one follows; none: no step or, after a wait, several.
        NodeHandle last = NodeHandle::none;
    };
    struct Capture {
        StreamHandle origin = StreamHandle::none;
        std::uint64_t id = 0;
        std::thread::id thread = std::this_thread::get_id();
        Steps steps;
        std::map<StreamHandle, Branch> streams;
    };
    struct Mark {
        std::weak_ptr<Capture> capture;
        Branch at;
    };

    std::shared_ptr<Capture> capture_of(StreamHandle stream) const;
    bool keep(StreamHandle stream, std::shared_ptr<const Step> step);
    void close(const std::shared_ptr<Capture>& capture);
    Status steps_of_graph(GraphHandle graph, const char* call, Steps& out) const;
    std::shared_ptr<Instance> instance_of(GraphInstanceHandle instance) const;

    std::atomic<int> open_{0};
    mutable std::mutex mutex_;
    std::map<StreamHandle, std::shared_ptr<Capture>> captured_;
    std::map<EventHandle, Mark> marks_;
    std::uintptr_t last_id_ = 0;
    std::map<GraphHandle, Steps> graphs_;
    std::map<GraphInstanceHandle, std::shared_ptr<Instance>> instances_;
};

}  // namespace isthmus::platform::cpu
