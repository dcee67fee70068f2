// Stream captures and graphs of one CUDA device.
#pragma once

#include "context.hpp"
#include "kernel_modules.hpp"

#include <vector>

namespace isthmus::platform::cuda {

class CudaCaptures final : public Captures {
public:
    CudaCaptures(DeviceContext& context, KernelModules& modules) noexcept : context_(context), modules_(modules) {}
    ~CudaCaptures() override;  // captures that were never ended endanger nobody any more
    CudaCaptures(const CudaCaptures&) = delete;
    CudaCaptures& operator=(const CudaCaptures&) = delete;

    Status begin(StreamHandle stream) override;
    Status end(StreamHandle stream, GraphHandle& out) override;
    Status state(StreamHandle stream, CaptureState& out) override;
    Status info(StreamHandle stream, CaptureState& out, std::uint64_t& id) override;
    Status last_node(StreamHandle stream, NodeHandle& out) override;
    Status append(StreamHandle stream, GraphHandle graph) override;
    Status append_conditional(StreamHandle stream, const ConditionalBody& request) override;

    Status instantiate(GraphHandle graph, GraphInstanceHandle& out) override;
    Status launch(GraphInstanceHandle instance, StreamHandle stream) override;
    Status resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) override;
    bool is_resolved_for_nodes(const KernelInfo& kernel) override { return modules_.knows_free_of_context(kernel); }
    Status set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node, const LaunchRequest& request) override;
    Status update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) override;
    Status destroy(GraphHandle graph) override;
    Status destroy(GraphInstanceHandle instance) override;

private:
    // Where the next work for a captured stream would go.
    struct Place {
        CUgraph graph = nullptr;  // the capture's own, while it is open
        const CUgraphNode* before = nullptr;
        std::size_t count = 0;
    };
    Status place(StreamHandle stream, Place& out);
    // Lets what the stream is given next follow the node; without it nothing would wait for that.
    Status follow(StreamHandle stream, CUgraphNode node);
    Status add_setter(StreamHandle stream, const Place& at, const KernelInfo& setter, const SetCondition& pack,
                      CUgraphNode& out);
    Status add_conditional(StreamHandle stream, const Place& at, const ConditionalBody& request, SetCondition& pack,
                           CUgraphNode& out);
    void opened(StreamHandle stream);
    void closed(StreamHandle stream);

    DeviceContext& context_;
    KernelModules& modules_;
    std::mutex mutex_;
    std::vector<StreamHandle> open_;  // begun here and not ended yet; Library::open_captures counts them
};

}  // namespace isthmus::platform::cuda
