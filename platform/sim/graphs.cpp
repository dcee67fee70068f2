// SPDX-License-Identifier: Apache-2.0
// Creates, clones, instantiates, launches and destroys whole graphs.
#include "access.hpp"
#include "call.hpp"
#include "copies.hpp"
#include "graph_memory.hpp"
#include "graph_objects.hpp"
#include "launch.hpp"

namespace isthmus::sim {
namespace {

// CUgraphInstantiateResult
constexpr int succeeded = 0, failed = 1, node_not_supported = 3, several_contexts = 4;

// Why an instance cannot be launched by a kernel.
struct Obstacle {
    int result = succeeded;
    engine::NodeIndex node = 0;
};

bool is_reachable(const MemoryNode::Operand& operand, int type) {
    constexpr int in_array = 3;
    return type != in_array && !(operand.host && operand.device < 0);
}

// Observed (580, H200): kernels, fills, copies without pageable memory, and child graphs of these, in one context.
Obstacle obstacle_in(const engine::Graph& graph, const Context*& context) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        const void* const details = node.operation.details.get();
        const Context* mine = context;
        if (node.condition) return {node_not_supported, i};
        if (node.child) {
            if (const Obstacle inner = obstacle_in(*node.child, context); inner.result != succeeded) {
                return {inner.result, i};
            }
            continue;
        }
        switch (node.operation.kind) {
            case engine::Kind::kernel: mine = static_cast<const KernelLaunch*>(details)->agent.context; break;
            case engine::Kind::memset: mine = static_cast<const MemoryNode*>(details)->context; break;
            case engine::Kind::copy: {
                const MemoryNode& copy = *static_cast<const MemoryNode*>(details);
                const bool reached =
                    is_reachable(copy.to, copy.copy.destination.type) && is_reachable(copy.from, copy.copy.source.type);
                if (!reached) return {node_not_supported, i};
                mine = copy.context;
                break;
            }
            default: return {node_not_supported, i};
        }
        if (context && mine != context) return {several_contexts, i};
        context = mine;
    }
    return {};
}

// `why` gets the reason where the answer is 1; its error node is left alone otherwise.
Result instantiate(Driver& d, GraphExec** instance, GraphObject* graph, unsigned long long flags,
                   InstantiateParameters& why) {
    constexpr unsigned long long auto_free_on_launch = 1, device_launch = 4, use_node_priority = 8;
    if (!instance) return result::invalid_value;
    // Observed (580, H200): 1 for unknown flags, and for launches by kernels with automatic frees.
    if ((flags & ~(auto_free_on_launch | device_launch | use_node_priority)) != 0) return result::invalid_value;
    if ((flags & auto_free_on_launch) != 0 && (flags & device_launch) != 0) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (!d.graphs.alive(graph)) return result::invalid_value;
    if (graph->was_moved) return result::not_supported;  // observed (580)
    auto made = std::make_shared<engine::GraphInstance>();
    if (const Result code = look(d, *graph, [&](const engine::Graph& g) { made->graph = g; })) return code;
    // Documented: memory that a graph allocates has one address, so one live instance. Observed for conditional nodes.
    const bool once = has_memory_nodes(made->graph) || has_conditions(made->graph);
    if (once && graph->live_instance.lock()) return result::not_supported;
    if (has_forbidden_bodies(made->graph)) return result::invalid_value;
    if ((flags & device_launch) != 0) {
        if (made->graph.size() == 0) return result::invalid_value;  // observed
        const Context* context = nullptr;
        if (const Obstacle found = obstacle_in(made->graph, context); found.result != succeeded) {
            why.result = found.result;
            why.error_node = handle_of(d, *graph, made->graph, found.node);
            return result::invalid_value;
        }
    }
    graph->live_instance = made;
    *instance = d.instances.create();
    (*instance)->instance = std::move(made);
    (*instance)->auto_free = (flags & auto_free_on_launch) != 0;
    (*instance)->node_priorities = (flags & use_node_priority) != 0;
    (*instance)->flags = flags;
    return result::ok;
}

// Observed (580, H100): 201 without a context, for any graph.
Result instantiate_in_context(Driver& d, GraphExec** instance, GraphObject* graph, unsigned long long flags,
                              InstantiateParameters& why) {
    Context* context = nullptr;
    if (const Result refused = need_context(d, context)) return refused;
    return instantiate(d, instance, graph, flags, why);
}

Result instantiate_with_log(Driver& d, GraphExec** instance, GraphObject* graph, NodeObject** error_node, char* log,
                            std::size_t log_bytes) {
    if (error_node) *error_node = nullptr;
    if (log && log_bytes != 0) *log = '\0';
    InstantiateParameters why = {};
    return instantiate_in_context(d, instance, graph, 0, why);
}

Result instantiate_with(Driver& d, GraphExec** instance, GraphObject* graph, InstantiateParameters& p) {
    constexpr unsigned long long upload = 2;
    p.error_node = nullptr;
    p.result = failed;
    StreamTarget stream;
    if ((p.flags & upload) != 0) {  // the simulator has nothing to upload
        if (const Result code = resolve_for_work(d, p.upload_stream, stream)) return code;
    }
    // Observed (580, H100): the stream of an upload has a context.
    const unsigned long long flags = p.flags & ~upload;
    const Result code = (p.flags & upload) != 0 ? instantiate(d, instance, graph, flags, p)
                                                : instantiate_in_context(d, instance, graph, flags, p);
    if (code == result::ok) p.result = succeeded;
    return code;
}

// Sets the conditions with a default value, in the order of the launches.
engine::Operation first_operation(const engine::Graph& graph) {
    engine::Operation operation;
    std::vector<engine::Condition> conditions;
    collect_initial_values(graph, conditions);
    if (conditions.empty()) return operation;
    operation.label = "default values of conditions";
    operation.body = [conditions = std::move(conditions)] {
        for (const engine::Condition& one : conditions) one.value->store(*one.initial, std::memory_order_relaxed);
        return 0;
    };
    return operation;
}

Result launch(Driver& d, GraphExec* handle, Stream* stream_handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, stream_handle, stream)) return code;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.instances.alive(handle)) return result::invalid_value;
        const bool captured = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
        engine::GraphInstance& instance = *handle->instance;
        if (!captured) {
            if (const Result code = check_launch(d, instance.graph, handle->auto_free)) return code;
        }
        if (const Result code = d.engine().launch(stream.id, instance, first_operation(instance.graph))) return code;
        note_launch(d, instance.graph);
    }
    update_managed_access(d);
    return result::ok;
}

}  // namespace

extern "C" {

Result cuGraphCreate(GraphObject** graph, unsigned flags) {
    return call(CallId::cuGraphCreate, [&](Driver& d) -> Result {
        if (!graph || flags != 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *graph = d.graphs.create();
        return result::ok;
    });
}

Result cuGraphClone(GraphObject** clone, GraphObject* original) {
    return call(CallId::cuGraphClone, [&](Driver& d) -> Result {
        if (!clone) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (!d.graphs.alive(original)) return result::invalid_value;
        engine::Graph copied;
        if (const Result code = look(d, *original, [&](const engine::Graph& graph) { copied = graph; })) return code;
        if (has_memory_nodes(copied)) return result::not_supported;  // documented as unsupported
        if (has_conditions(copied)) return result::not_supported;    // observed
        copied.renew_identities();
        *clone = d.graphs.create();
        (*clone)->graph.swap(copied);
        return result::ok;
    });
}

// As cuGraphInstantiateWithFlags without flags. There is no error node and no log: instances fail as a whole.
Result cuGraphInstantiate(GraphExec** instance, GraphObject* graph, NodeObject** error_node, char* log,
                          std::size_t log_bytes) {
    return call(CallId::cuGraphInstantiate,
                [&](Driver& d) { return instantiate_with_log(d, instance, graph, error_node, log, log_bytes); });
}

Result cuGraphInstantiate_v2(GraphExec** instance, GraphObject* graph, NodeObject** error_node, char* log,
                             std::size_t log_bytes) {
    return call(CallId::cuGraphInstantiate_v2,
                [&](Driver& d) { return instantiate_with_log(d, instance, graph, error_node, log, log_bytes); });
}

Result cuGraphInstantiateWithFlags(GraphExec** instance, GraphObject* graph, unsigned long long flags) {
    return call(CallId::cuGraphInstantiateWithFlags, [&](Driver& d) -> Result {
        InstantiateParameters why = {};
        return instantiate_in_context(d, instance, graph, flags, why);
    });
}

Result cuGraphInstantiateWithParams(GraphExec** instance, GraphObject* graph, InstantiateParameters* parameters) {
    return call(CallId::cuGraphInstantiateWithParams, [&](Driver& d) -> Result {
        return parameters ? instantiate_with(d, instance, graph, *parameters) : result::invalid_value;
    });
}

Result cuGraphExecGetFlags(GraphExec* instance, std::uint64_t* flags) {
    return call(CallId::cuGraphExecGetFlags, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!flags || !d.instances.alive(instance)) return result::invalid_value;
        *flags = instance->flags;
        return result::ok;
    });
}

Result cuGraphLaunch(GraphExec* instance, Stream* stream) {
    return call(CallId::cuGraphLaunch, [&](Driver& d) { return launch(d, instance, stream); });
}

Result cuGraphUpload(GraphExec* instance, Stream* stream) {
    return call(CallId::cuGraphUpload, [&](Driver& d) -> Result {
        StreamTarget target;
        if (const Result code = resolve_for_work(d, stream, target)) return code;
        const std::lock_guard lock(d.mutex);
        return d.instances.alive(instance) ? result::ok : result::invalid_value;
    });
}

Result cuGraphExecDestroy(GraphExec* handle) {
    return call(CallId::cuGraphExecDestroy, [&](Driver& d) -> Result {
        // Destroyed after the lock is released: its operations may own memory.
        std::shared_ptr<engine::GraphInstance> last;
        const std::lock_guard lock(d.mutex);
        if (!d.instances.alive(handle)) return result::invalid_value;
        last = std::move(handle->instance);
        d.instances.destroy(handle);
        return result::ok;
    });
}

Result cuGraphDestroy(GraphObject* handle) {
    return call(CallId::cuGraphDestroy, [&](Driver& d) -> Result {
        engine::Graph last;  // destroyed after the lock is released: its operations may own memory
        const std::lock_guard lock(d.mutex);
        if (!d.graphs.alive(handle)) return result::invalid_value;
        // The graph belongs to a capture or a node (assumed: the documentation forbids destroying it).
        if (handle->parent || handle->captured_by != engine::StreamId::none) return result::invalid_value;
        end_graph(d, handle, last);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
