// SPDX-License-Identifier: Apache-2.0
// Attributes of streams and of kernel nodes: set, read and copied.
#include "call.hpp"
#include "graph_objects.hpp"
#include "launch.hpp"

namespace isthmus::sim {
namespace {

// Requires the driver's mutex, and a stream that is alive or the legacy one.
StreamSettings& settings_of(Driver& d, const StreamTarget& target) {
    return target.legacy ? d.devices[static_cast<std::size_t>(target.device)].legacy_settings : target.stream->settings;
}

// Body: Result(const StreamTarget&, StreamSettings&), called with the driver's mutex held.
template <class Body>
Result call_for_settings(CallId id, Stream* handle, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget target;
        if (const Result code = resolve(d, handle, target)) return code;
        if (const Result lost = d.engine().device_code(target.device)) return lost;
        const std::lock_guard lock(d.mutex);
        if (!target.legacy && !d.streams.alive(target.stream)) return lost_or_unknown(d.streams, target.stream);
        return body(d, target, settings_of(d, target));
    });
}

// Observed (580, H200): the legacy stream tells the priority that it was given. Nothing is drawn by it here.
void apply_priority(Driver& d, const StreamTarget& target, StreamSettings& settings) {
    if (target.legacy) return;
    target.stream->priority = settings.of_launches.priority.value_or(0);
    d.engine().set_priority(target.id, target.stream->priority);
}

// Body: Result(const KernelLaunch&), called with the driver's mutex held.
template <class Body>
Result look_at_kernel(Driver& d, const NodeObject* node, Body&& body) {
    return look_at_node(d, node, [&](const engine::GraphNode& now) -> Result {
        const KernelLaunch* const launch = launch_of(now);
        return launch ? body(*launch) : result::invalid_value;
    });
}

// Change: Result(const KernelLaunch&, LaunchSettings&). The node gets a launch with the changed settings.
template <class Change>
Result change_settings(Driver& d, NodeObject* node, Change&& change) {
    engine::Operation last;  // may hold the last reference to the kernel's resources
    const std::lock_guard lock(d.mutex);
    return replace_operation(d, nullptr, node, last,
                             [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
                                 const KernelLaunch* const old = launch_of(now);
                                 if (!old) return result::invalid_value;
                                 LaunchRequest request = request_of(*old);
                                 if (const Result code = change(*old, request.settings)) return code;
                                 auto launch = std::make_shared<KernelLaunch>();
                                 if (const Result code = prepare_launch(d, request, *launch)) return code;
                                 made = kernel_operation(d, std::move(launch));
                                 return result::ok;
                             });
}

}  // namespace

LaunchSettings settings_of_work(const Driver& d, const StreamTarget& target) {
    if (target.legacy) return d.devices[static_cast<std::size_t>(target.device)].legacy_settings.of_launches;
    return d.streams.alive(target.stream) ? target.stream->settings.of_launches : LaunchSettings{};
}

extern "C" {

Result cuStreamGetAttribute(Stream* stream, int id, LaunchAttributeValue* value) {
    return call_for_settings(CallId::cuStreamGetAttribute, stream,
                             [&](Driver&, const StreamTarget&, const StreamSettings& settings) {
                                 return value ? get_of_stream(settings, id, *value) : result::invalid_value;
                             });
}

Result cuStreamSetAttribute(Stream* stream, int id, const LaunchAttributeValue* value) {
    return call_for_settings(CallId::cuStreamSetAttribute, stream,
                             [&](Driver& d, const StreamTarget& target, StreamSettings& settings) -> Result {
                                 if (!value) return result::invalid_value;
                                 const AttributeFacts facts = attribute_facts(d, target.device);
                                 const Result code = set_of_stream(facts, id, *value, settings);
                                 if (code == result::ok) apply_priority(d, target, settings);
                                 return code;
                             });
}

// Documented: streams of one context.
Result cuStreamCopyAttributes(Stream* to, Stream* from) {
    return call(CallId::cuStreamCopyAttributes, [&](Driver& d) -> Result {
        StreamTarget target, source;
        if (const Result code = resolve(d, to, target)) return code;
        if (const Result code = resolve(d, from, source)) return code;
        if (const Result lost = d.engine().device_code(target.device)) return lost;
        if (target.context != source.context) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (!target.legacy && !d.streams.alive(target.stream)) return lost_or_unknown(d.streams, target.stream);
        if (!source.legacy && !d.streams.alive(source.stream)) return lost_or_unknown(d.streams, source.stream);
        const StreamSettings wanted = settings_of(d, source);
        StreamSettings& mine = settings_of(d, target);
        mine = wanted;
        apply_priority(d, target, mine);
        return result::ok;
    });
}

Result cuGraphKernelNodeGetAttribute(NodeObject* node, int id, LaunchAttributeValue* value) {
    return call(CallId::cuGraphKernelNodeGetAttribute, [&](Driver& d) -> Result {
        if (!value) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        return look_at_kernel(d, node,
                              [&](const KernelLaunch& launch) { return get_of_kernel(launch.settings, id, *value); });
    });
}

Result cuGraphKernelNodeSetAttribute(NodeObject* node, int id, const LaunchAttributeValue* value) {
    return call(CallId::cuGraphKernelNodeSetAttribute, [&](Driver& d) -> Result {
        if (!value) return result::invalid_value;
        return change_settings(d, node, [&](const KernelLaunch& launch, LaunchSettings& settings) {
            return set_of_kernel(attribute_facts(d, launch.agent.device), id, *value, settings);
        });
    });
}

// Documented: nodes of one context.
Result cuGraphKernelNodeCopyAttributes(NodeObject* to, NodeObject* from) {
    return call(CallId::cuGraphKernelNodeCopyAttributes, [&](Driver& d) -> Result {
        LaunchSettings wanted;
        const Context* context = nullptr;
        {
            const std::lock_guard lock(d.mutex);
            const auto read = [&](const KernelLaunch& launch) -> Result {
                wanted = launch.settings;
                context = launch.agent.context;
                return result::ok;
            };
            if (const Result code = look_at_kernel(d, from, read)) return code;
        }
        return change_settings(d, to, [&](const KernelLaunch& launch, LaunchSettings& settings) -> Result {
            if (launch.agent.context != context) return result::invalid_value;
            settings = wanted;
            return result::ok;
        });
    });
}
}

}  // namespace isthmus::sim
