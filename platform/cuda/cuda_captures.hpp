// SPDX-License-Identifier: Apache-2.0
// Stream captures and graphs of one CUDA device.
#pragma once

#include "context.hpp"
#include "kernel_modules.hpp"

#include <vector>

namespace isthmus::platform::cuda {

class CudaCaptures final : public Captures {
public:
    CudaCaptures(DeviceContext& context, KernelModules& modules) noexcept : context_(context), modules_(modules) {}
    ~CudaCaptures() override;  // captures never ended need no protection any more
    CudaCaptures(const CudaCaptures&) = delete;
    CudaCaptures& operator=(const CudaCaptures&) = delete;

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
    Status launch(GraphInstanceHandle instance, StreamHandle stream) override;
    Status resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) override;
    bool is_resolved_for_nodes(const KernelInfo& kernel) override { return modules_.knows_free_of_context(kernel); }
    Status set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node, const LaunchRequest& request) override;
    Status update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) override;
    Status destroy(GraphHandle graph) override;
    Status destroy(GraphInstanceHandle instance) override;

private:
    // Where the stream's next captured work would be added.
    struct Place {
        CUgraph graph = nullptr;  // the capture's own, valid while it is open
        const CUgraphNode* before = nullptr;
        std::size_t count = 0;
    };
    Status place(StreamHandle stream, Place& out);
    // Makes the stream's next work follow the node; otherwise nothing would wait for the node.
    Status follow(StreamHandle stream, CUgraphNode node);
    Status add_setter(StreamHandle stream, const Place& at, const KernelInfo& setter, const SetCondition& pack,
                      CUgraphNode& out);
    Status add_condition(StreamHandle stream, const Place& at, const ConditionalBody& request, SetCondition& pack,
                         CUgraphNode& first);
    Status add_conditional(StreamHandle stream, const Place& at, const ConditionalBody& request,
                           const SetCondition& pack, CUgraphNode& out, CUgraph& body);
    struct Conditional {
        SetCondition pack;
        CUgraphNode node = nullptr;
        CUgraph body = nullptr;
    };
    Status add_nodes(StreamHandle stream, const ConditionalBody& request, Conditional& out);
    // The same call's error, after nodes were added: the capture cannot go on.
    static Status or_lost(const Status& status) noexcept {
        return status.ok() ? status : Status{Code::capture_error, status.driver_code, status.call};
    }
    Status fill(StreamHandle stream, CUgraph graph, const ConditionalBody& request, const SetCondition& pack);
    void opened(StreamHandle stream);
    void closed(StreamHandle stream);

    DeviceContext& context_;
    KernelModules& modules_;
    std::mutex mutex_;
    std::vector<StreamHandle> open_;  // begun here and not ended yet; counted in Library::open_captures
};

}  // namespace isthmus::platform::cuda
