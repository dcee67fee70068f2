// Stream capture, and graphs as far as capture makes them.
#include "access.hpp"
#include "call.hpp"
#include "graph_memory.hpp"
#include "graph_objects.hpp"

namespace isthmus::sim {
namespace {

Stream* const first_real_handle = reinterpret_cast<Stream*>(3);

Result begin(Driver& d, Stream* handle, int mode) {
    if (mode < 0 || mode > 2) return result::invalid_value;
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    if (const Result lost = d.engine().device_code(stream.device)) return lost;
    if (stream.legacy) return result::capture_unsupported;
    return d.engine().begin_capture(stream.id, static_cast<engine::CaptureMode>(mode));
}

Result end(Driver& d, Stream* handle, GraphObject** graph) {
    if (!graph) return result::invalid_value;
    *graph = nullptr;
    if (handle >= first_real_handle) {
        const std::lock_guard lock(d.mutex);
        if (d.streams.was_alive(handle) && !d.streams.lost(handle))
            die_like_the_driver("cuStreamEndCapture on a destroyed stream");
    }
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    auto captured = std::make_shared<engine::Graph>();
    std::vector<engine::StreamId> unjoined;
    if (const Result code = d.engine().end_capture(stream.id, *captured, &unjoined)) {
        for (const engine::StreamId lost : unjoined) {
            say("cuStreamEndCapture: stream %llu joined the capture and never came back",
                static_cast<unsigned long long>(lost));
        }
        return code;
    }
    const std::lock_guard lock(d.mutex);
    GraphObject* made = d.graphs.create();
    made->graph = std::move(captured);
    *graph = made;
    return result::ok;
}

int status_number(engine::CaptureState state) {
    return static_cast<int>(state);
}  // 0 none, 1 active, 2 invalidated

Result info(Driver& d, Stream* handle, int* status, std::uint64_t* id, bool wants_graph) {
    if (!status) return result::invalid_value;
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    if (wants_graph) {
        say("cuStreamGetCaptureInfo: the graph of an open capture and its dependencies are not modelled");
        return result::not_supported;
    }
    if (stream.legacy && d.engine().legacy_stream_would_join_capture(stream.device)) return result::capture_implicit;
    const engine::CaptureInfo capture = d.engine().capture_info(stream.id);
    *status = status_number(capture.state);
    if (id && capture.state == engine::CaptureState::active) *id = capture.id;
    return result::ok;
}

Result instantiate(Driver& d, GraphExec** instance, GraphObject* graph, unsigned long long flags) {
    constexpr unsigned long long auto_free_on_launch = 1, use_node_priority = 8;
    if (!instance) return result::invalid_value;
    if ((flags & ~(auto_free_on_launch | use_node_priority)) != 0) {
        say("cuGraphInstantiate: flags %#llx are not modelled", flags);
        return result::not_supported;
    }
    const std::lock_guard lock(d.mutex);
    if (!d.graphs.alive(graph)) return result::invalid_value;
    // Memory that a graph allocates has one address: documented as one live instance.
    if (has_memory_nodes(*graph->graph) && graph->live_instance.lock()) return result::not_supported;
    auto made = std::make_shared<engine::GraphInstance>();
    made->graph = *graph->graph;
    graph->live_instance = made;
    *instance = d.instances.create();
    (*instance)->instance = std::move(made);
    (*instance)->auto_free = (flags & auto_free_on_launch) != 0;
    return result::ok;
}

Result launch(Driver& d, GraphExec* handle, Stream* stream_handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, stream_handle, stream)) return code;
    std::shared_ptr<engine::GraphInstance> instance;
    const bool captured = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.instances.alive(handle)) return result::invalid_value;
        instance = handle->instance;
        // Documented: such a graph is a child only where it is moved into its parent.
        if (captured && has_memory_nodes(instance->graph)) return result::not_supported;
        if (!captured) {
            if (const Result code = check_launch(d, instance->graph, handle->auto_free)) return code;
            if (const Result code = d.engine().launch(stream.id, *instance)) return code;
            note_launch(d, instance->graph);
        }
    }
    const Result code = captured ? d.engine().launch(stream.id, *instance) : result::ok;
    update_managed_access(d);
    return code;
}

}  // namespace

extern "C" {

Result cuStreamBeginCapture_v2(Stream* stream, int mode) {
    return call(CallId::cuStreamBeginCapture_v2, [&](Driver& d) { return begin(d, stream, mode); });
}

Result cuStreamEndCapture(Stream* stream, GraphObject** graph) {
    return call(CallId::cuStreamEndCapture, [&](Driver& d) { return end(d, stream, graph); });
}

Result cuStreamIsCapturing(Stream* stream, int* status) {
    return call(CallId::cuStreamIsCapturing, [&](Driver& d) { return info(d, stream, status, nullptr, false); });
}

Result cuStreamGetCaptureInfo_v2(Stream* stream, int* status, std::uint64_t* id, GraphObject** graph,
                                 void* const** dependencies, std::size_t* count) {
    return call(CallId::cuStreamGetCaptureInfo_v2,
                [&](Driver& d) { return info(d, stream, status, id, graph || dependencies || count); });
}

Result cuStreamGetCaptureInfo_v3(Stream* stream, int* status, std::uint64_t* id, GraphObject** graph,
                                 void* const** dependencies, const void** edges, std::size_t* count) {
    return call(CallId::cuStreamGetCaptureInfo_v3,
                [&](Driver& d) { return info(d, stream, status, id, graph || dependencies || edges || count); });
}

Result cuThreadExchangeStreamCaptureMode(int* mode) {
    return call(CallId::cuThreadExchangeStreamCaptureMode, [&](Driver&) -> Result {
        if (!mode || *mode < 0 || *mode > 2) return result::invalid_value;
        *mode = static_cast<int>(engine::Engine::exchange_thread_capture_mode(static_cast<engine::CaptureMode>(*mode)));
        return result::ok;
    });
}

Result cuGraphCreate(GraphObject** graph, unsigned flags) {
    return call(CallId::cuGraphCreate, [&](Driver& d) -> Result {
        if (!graph || flags != 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *graph = d.graphs.create();
        (*graph)->graph = std::make_shared<engine::Graph>();
        return result::ok;
    });
}

Result cuGraphClone(GraphObject** clone, GraphObject* original) {
    return call(CallId::cuGraphClone, [&](Driver& d) -> Result {
        if (!clone) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (!d.graphs.alive(original)) return result::invalid_value;
        if (has_memory_nodes(*original->graph)) return result::not_supported;  // documented as unsupported
        const engine::Graph copied = *original->graph;
        *clone = d.graphs.create();
        (*clone)->graph = std::make_shared<engine::Graph>(copied);
        return result::ok;
    });
}

Result cuGraphInstantiateWithFlags(GraphExec** instance, GraphObject* graph, unsigned long long flags) {
    return call(CallId::cuGraphInstantiateWithFlags, [&](Driver& d) { return instantiate(d, instance, graph, flags); });
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
        std::shared_ptr<engine::GraphInstance> last;  // ends after the lock: its operations may own memory
        const std::lock_guard lock(d.mutex);
        if (!d.instances.alive(handle)) return result::invalid_value;
        last = std::move(handle->instance);
        d.instances.destroy(handle);
        return result::ok;
    });
}

Result cuGraphDestroy(GraphObject* handle) {
    return call(CallId::cuGraphDestroy, [&](Driver& d) -> Result {
        std::shared_ptr<engine::Graph> last;  // ends after the lock: its operations may own memory
        const std::lock_guard lock(d.mutex);
        if (!d.graphs.alive(handle)) return result::invalid_value;
        last = std::move(handle->graph);
        d.graphs.destroy(handle);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
