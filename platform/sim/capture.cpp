// SPDX-License-Identifier: Apache-2.0
// Begins and ends stream captures, and answers queries about them.
#include "call.hpp"
#include "graph_objects.hpp"

#include <algorithm>
#include <cstring>

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
    const std::uint64_t capture = d.engine().capture_info(stream.id).id;
    engine::Graph captured;  // destroyed after the lock is released: its operations may own memory
    std::vector<engine::StreamId> unjoined;
    const Result code = d.engine().end_capture(stream.id, captured, &unjoined);
    for (const engine::StreamId lost : unjoined) {
        say("cuStreamEndCapture: stream %llu joined the capture and never came back",
            static_cast<unsigned long long>(lost));
    }
    if (capture == 0 || code == engine::code::capture_unmatched) return code;  // the capture continues
    const std::lock_guard lock(d.mutex);
    GraphObject* const ended = capture_ended(d, capture, code == result::ok ? &captured : nullptr);
    if (code == result::ok) *graph = ended;
    return code;
}

int status_number(engine::CaptureState state) {
    return static_cast<int>(state);
}  // 0 none, 1 active, 2 invalidated

// Destinations of the answers; all but the status may be null.
struct CaptureAnswers {
    int* status = nullptr;
    std::uint64_t* id = nullptr;
    GraphObject** graph = nullptr;
    NodeObject* const** dependencies = nullptr;
    const EdgeData** edges = nullptr;
    std::size_t* count = nullptr;
};

Result info(Driver& d, Stream* handle, const CaptureAnswers& answers) {
    if (!answers.status || (answers.edges && !answers.dependencies)) return result::invalid_value;
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    if (stream.legacy && d.engine().would_join_capture(stream.id)) return result::capture_implicit;
    const engine::CaptureInfo capture = d.engine().capture_info(stream.id);
    *answers.status = status_number(capture.state);
    if (capture.state != engine::CaptureState::active) return result::ok;
    if (answers.id) *answers.id = capture.id;
    if (answers.count) *answers.count = capture.dependencies.size();
    if (!answers.graph && !answers.dependencies) return result::ok;
    const std::lock_guard lock(d.mutex);
    handle = stream.stream;
    if (!d.streams.alive(handle)) return lost_or_unknown(d.streams, handle);
    GraphObject* const graph = graph_of_capture(d, capture);
    if (answers.graph) *answers.graph = graph;
    if (!answers.dependencies) return result::ok;
    // Documented: the arrays belong to the driver, and are valid until the next call for the stream.
    handle->capture_dependencies.clear();
    handle->capture_edges.assign(capture.dependencies.size(), EdgeData{});
    *answers.dependencies = nullptr;
    if (answers.edges) *answers.edges = handle->capture_edges.data();
    return look(d, *graph, [&](const engine::Graph& inside) {
        for (const engine::NodeIndex index : capture.dependencies) {
            handle->capture_dependencies.push_back(handle_of(d, *graph, inside, index));
        }
        *answers.dependencies = handle->capture_dependencies.data();
    });
}

bool plain(const EdgeData* edges, std::size_t count) {
    const unsigned char zeros[sizeof(EdgeData)] = {};
    for (std::size_t i = 0; edges && i < count; ++i) {
        if (std::memcmp(&edges[i], zeros, sizeof(zeros)) != 0) return false;
    }
    return true;
}

Result update_dependencies(Driver& d, Stream* handle, NodeObject* const* nodes, const EdgeData* edges,
                           std::size_t count, unsigned flags) {
    constexpr unsigned replace = 1;
    if (flags > replace || (count != 0 && !nodes)) return result::invalid_value;
    if (!plain(edges, count)) {
        say("cuStreamUpdateCaptureDependencies: programmatic edges are not modelled");
        return result::not_supported;
    }
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    const engine::CaptureInfo capture = d.engine().capture_info(stream.id);
    if (capture.state == engine::CaptureState::none) return engine::code::illegal_state;
    std::vector<engine::NodeIndex> wanted;
    if (flags != replace) wanted = capture.dependencies;
    const std::lock_guard lock(d.mutex);
    for (std::size_t i = 0; i < count; ++i) {
        const auto open = d.captured_graphs.find(capture.id);
        if (open == d.captured_graphs.end() || !d.nodes.alive(nodes[i]) || nodes[i]->graph != open->second) {
            return result::invalid_value;
        }
        if (std::find(wanted.begin(), wanted.end(), nodes[i]->index) == wanted.end()) wanted.push_back(nodes[i]->index);
    }
    return d.engine().set_capture_dependencies(stream.id, std::move(wanted));
}

// Documented: captured nodes are added to the graph, the first ones after `dependencies`.
Result begin_into(Driver& d, Stream* handle, GraphObject* graph, NodeObject* const* nodes, const EdgeData* edges,
                  std::size_t count, int mode) {
    if (mode < 0 || mode > 2) return result::invalid_value;
    if (!plain(edges, count)) {
        say("cuStreamBeginCaptureToGraph: programmatic edges are not modelled");
        return result::not_supported;
    }
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    if (const Result lost = d.engine().device_code(stream.device)) return lost;
    if (stream.legacy) return result::capture_unsupported;
    const std::lock_guard lock(d.mutex);
    if (!d.graphs.alive(graph)) return result::invalid_value;
    bool is_body = false;
    if (graph->parent) {
        const Result code = look(d, *graph->parent->graph, [&](const engine::Graph& around) {
            is_body = around.node(graph->parent->index).condition.has_value();
        });
        if (code != result::ok) return code;
    }
    if ((graph->parent && !is_body) || graph->captured_by != engine::StreamId::none) {
        say("cuStreamBeginCaptureToGraph into a child graph, or one that is being captured into, is not modelled");
        return result::not_supported;
    }
    std::vector<engine::NodeIndex> dependencies;
    if (const Result code = indices_of(d, *graph, nodes, count, dependencies)) return code;
    engine::Graph into;
    if (const Result code = look(d, *graph, [&](const engine::Graph& so_far) { into = so_far; })) return code;
    if (const Result code = d.engine().begin_capture(stream.id, static_cast<engine::CaptureMode>(mode), std::move(into),
                                                     std::move(dependencies))) {
        return code;
    }
    graph->captured_by = stream.id;
    graph->was_given = true;
    d.captured_graphs[d.engine().capture_info(stream.id).id] = graph;
    return result::ok;
}

// Observed: the sticky code of the stream's device.
Result lost_stream(Driver& d, Stream* stream) {
    StreamTarget target;
    return resolve(d, stream, target) == result::ok ? d.engine().device_code(target.device) : result::ok;
}

}  // namespace

extern "C" {

Result cuStreamBeginCapture_v2(Stream* stream, int mode) {
    return call(CallId::cuStreamBeginCapture_v2, [&](Driver& d) { return begin(d, stream, mode); });
}

Result cuStreamEndCapture(Stream* stream, GraphObject** graph) {
    return call(CallId::cuStreamEndCapture, [&](Driver& d) -> Result {
        if (const Result lost = lost_stream(d, stream)) return lost;
        return end(d, stream, graph);
    });
}

Result cuStreamBeginCaptureToGraph(Stream* stream, GraphObject* graph, NodeObject* const* dependencies,
                                   const EdgeData* edges, std::size_t count, int mode) {
    return call(CallId::cuStreamBeginCaptureToGraph,
                [&](Driver& d) { return begin_into(d, stream, graph, dependencies, edges, count, mode); });
}

Result cuStreamIsCapturing(Stream* stream, int* status) {
    return call(CallId::cuStreamIsCapturing, [&](Driver& d) -> Result {
        if (const Result lost = lost_stream(d, stream)) return lost;
        return info(d, stream, {status});
    });
}

Result cuStreamGetCaptureInfo_v2(Stream* stream, int* status, std::uint64_t* id, GraphObject** graph,
                                 NodeObject* const** dependencies, std::size_t* count) {
    return call(CallId::cuStreamGetCaptureInfo_v2, [&](Driver& d) {
        return info(d, stream, {status, id, graph, dependencies, nullptr, count});
    });
}

Result cuStreamGetCaptureInfo_v3(Stream* stream, int* status, std::uint64_t* id, GraphObject** graph,
                                 NodeObject* const** dependencies, const EdgeData** edges, std::size_t* count) {
    return call(CallId::cuStreamGetCaptureInfo_v3, [&](Driver& d) {
        return info(d, stream, {status, id, graph, dependencies, edges, count});
    });
}

Result cuStreamUpdateCaptureDependencies(Stream* stream, NodeObject** dependencies, std::size_t count, unsigned flags) {
    return call(CallId::cuStreamUpdateCaptureDependencies,
                [&](Driver& d) { return update_dependencies(d, stream, dependencies, nullptr, count, flags); });
}

Result cuStreamUpdateCaptureDependencies_v2(Stream* stream, NodeObject** dependencies, const EdgeData* edges,
                                            std::size_t count, unsigned flags) {
    return call(CallId::cuStreamUpdateCaptureDependencies_v2,
                [&](Driver& d) { return update_dependencies(d, stream, dependencies, edges, count, flags); });
}

Result cuThreadExchangeStreamCaptureMode(int* mode) {
    return call(CallId::cuThreadExchangeStreamCaptureMode, [&](Driver&) -> Result {
        if (!mode || *mode < 0 || *mode > 2) return result::invalid_value;
        *mode = static_cast<int>(engine::Engine::exchange_thread_capture_mode(static_cast<engine::CaptureMode>(*mode)));
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
