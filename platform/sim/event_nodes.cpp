// SPDX-License-Identifier: Apache-2.0
// Nodes that record an event or wait for one at each launch; also from a capture with the external flag.
#include "event_nodes.hpp"

#include "call.hpp"
#include "node_kinds.hpp"

#include <memory>
#include <utility>

namespace isthmus::sim {
namespace {

// `details` of the operation: the program's handle.
struct EventOfNode {
    Event* event = nullptr;
};

engine::Operation operation_of(Event* event, engine::Kind kind) {
    engine::Operation operation;
    operation.kind = kind;
    operation.label = kind == engine::Kind::wait ? "an event wait node" : "an event record node";
    operation.event = event->id;
    operation.device = event->context->device;
    operation.details = std::make_shared<const EventOfNode>(EventOfNode{event});
    return operation;
}

// Requires the driver's mutex.
Result check(Driver& d, const char* call, const Event* event) {
    if (!event) return result::invalid_value;
    if (!d.events.alive(event)) return lost_or_unknown(d.events, event);
    if (!event->shared) return result::ok;
    say("%s: nodes of interprocess events are not modelled", call);
    return result::not_supported;
}

engine::Kind kind_of(bool waits) {
    return waits ? engine::Kind::wait : engine::Kind::event_record;
}

bool is_event_node(const engine::GraphNode& node, engine::Kind kind) {
    return !node.child && node.operation.kind == kind && node.operation.details;
}

Result get(CallId id, NodeObject* node, Event** event, engine::Kind kind) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            if (!event || !is_event_node(found, kind)) return result::invalid_value;
            *event = static_cast<const EventOfNode*>(found.operation.details.get())->event;
            return result::ok;
        });
    });
}

}  // namespace

Result add_event_node(Driver& d, const NodePlace& place, Event* event, bool waits, const char* call) {
    const std::lock_guard lock(d.mutex);
    if (const Result code = check(d, call, event)) return code;
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(operation_of(event, kind_of(waits)), std::move(after));
                    });
}

Result set_event_node(Driver& d, const NodeChange& change, Event* event, bool waits, const char* call) {
    engine::Operation last;
    const std::lock_guard lock(d.mutex);
    if (const Result code = check(d, call, event)) return code;
    return replace_operation(d, change.instance, change.node, last,
                             [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
                                 if (!is_event_node(now, kind_of(waits))) return result::invalid_value;
                                 made = operation_of(event, kind_of(waits));
                                 return result::ok;
                             });
}

namespace {

Result add(CallId id, const NodePlace& place, Event* event, bool waits) {
    return call(id, [&](Driver& d) { return add_event_node(d, place, event, waits, name(id)); });
}

Result set(CallId id, const NodeChange& change, Event* event, bool waits) {
    return call(id, [&](Driver& d) { return set_event_node(d, change, event, waits, name(id)); });
}

}  // namespace

Result capture_event_node(Driver& d, Stream* handle, Event* event, bool waits, const char* call) {
    StreamTarget stream;
    if (const Result code = resolve(d, handle, stream)) return code;
    // Documented as invalid outside of captures.
    if (d.engine().capture_info(stream.id).state == engine::CaptureState::none) return result::invalid_value;
    engine::Operation operation;
    {
        const std::lock_guard lock(d.mutex);
        if (const Result code = check(d, call, event)) return code;
        operation = operation_of(event, kind_of(waits));
    }
    return d.engine().submit(stream.id, std::move(operation));
}

extern "C" {

Result cuGraphAddEventRecordNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                                 std::size_t count, Event* event) {
    return add(CallId::cuGraphAddEventRecordNode, {node, graph, dependencies, count}, event, false);
}

Result cuGraphAddEventWaitNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                               std::size_t count, Event* event) {
    return add(CallId::cuGraphAddEventWaitNode, {node, graph, dependencies, count}, event, true);
}

Result cuGraphEventRecordNodeGetEvent(NodeObject* node, Event** event) {
    return get(CallId::cuGraphEventRecordNodeGetEvent, node, event, engine::Kind::event_record);
}

Result cuGraphEventWaitNodeGetEvent(NodeObject* node, Event** event) {
    return get(CallId::cuGraphEventWaitNodeGetEvent, node, event, engine::Kind::wait);
}

Result cuGraphEventRecordNodeSetEvent(NodeObject* node, Event* event) {
    return set(CallId::cuGraphEventRecordNodeSetEvent, {node, nullptr}, event, false);
}

Result cuGraphEventWaitNodeSetEvent(NodeObject* node, Event* event) {
    return set(CallId::cuGraphEventWaitNodeSetEvent, {node, nullptr}, event, true);
}

Result cuGraphExecEventRecordNodeSetEvent(GraphExec* instance, NodeObject* node, Event* event) {
    return set(CallId::cuGraphExecEventRecordNodeSetEvent, {node, &instance}, event, false);
}

Result cuGraphExecEventWaitNodeSetEvent(GraphExec* instance, NodeObject* node, Event* event) {
    return set(CallId::cuGraphExecEventWaitNodeSetEvent, {node, &instance}, event, true);
}
}

}  // namespace isthmus::sim
