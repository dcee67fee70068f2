// SPDX-License-Identifier: Apache-2.0
// Copies of rectangles and boxes: reads and checks the driver's descriptions of them.
#include "arrays.hpp"
#include "call.hpp"
#include "memory_nodes.hpp"

#include <utility>

namespace isthmus::sim {
namespace {

constexpr int type_host = 1, type_device = 2, type_array = 3, type_unified = 4;

// One side of a description, from any of the driver's structures.
struct End {
    std::size_t x_bytes, y, z, lod;
    int type;
    const void* host;
    Address device;
    std::size_t pitch, height;
    void* array;
    const Context* context;  // of the array, in peer copies; null: that of the stream or node
};

// Requires the driver's mutex.
Result lay_out_in_array(const Driver& d, const Context* context, const End& end, const Box& box, Layout& layout,
                        Side& side) {
    if (end.lod != 0) return result::invalid_value;
    const ArrayPlace place = {static_cast<Array*>(end.array), end.x_bytes, end.y, end.z};
    return place_in_array(d, end.context ? end.context : context, place, box, side, layout);
}

// Refuses a shape that exceeds its row or plane; a pitch or height of 0 means rows or planes without gaps. Requires the
// driver's mutex.
Result lay_out(const Driver& d, const GpuAgent& agent, const End& end, const Box& box, Layout& layout, Side& side) {
    if (end.type == type_array) return lay_out_in_array(d, agent.context, end, box, layout, side);
    const int device = agent.device;
    constexpr int max_pitch = 11;
    const std::size_t most = static_cast<std::size_t>(d.fact(device, max_pitch));
    std::size_t row = 0, rows = 0, slice = 0, before = 0, offset = 0;
    if (end.lod != 0 || __builtin_add_overflow(end.x_bytes, box.width_bytes, &row) ||
        __builtin_add_overflow(end.y, box.height, &rows)) {
        return result::invalid_value;
    }
    layout.pitch = end.pitch != 0 ? end.pitch : row;
    const std::size_t height = end.height != 0 ? end.height : rows;
    if (layout.pitch < row || height < rows || (most != 0 && end.pitch > most)) return result::invalid_value;
    if (end.height == 0 && box.depth > 1) return result::invalid_value;  // documented: 0 for one plane only
    if (__builtin_mul_overflow(layout.pitch, height, &slice) || __builtin_mul_overflow(slice, end.z, &before) ||
        __builtin_mul_overflow(layout.pitch, end.y, &offset) || __builtin_add_overflow(offset, before, &offset) ||
        __builtin_add_overflow(offset, end.x_bytes, &offset)) {
        return result::invalid_value;
    }
    layout.slice = slice;
    const bool nowhere = end.type == type_host ? end.host == nullptr : end.device == 0;
    if (nowhere && !box.empty()) return result::invalid_value;
    switch (end.type) {
        case type_host: side = {reinterpret_cast<Address>(end.host) + offset, false}; return result::ok;
        case type_device: side = {end.device + offset, true}; return result::ok;
        case type_unified:
            side = {end.device + offset, false};
            return d.fact(device, attribute::unified_addressing) != 0 ? result::ok : result::invalid_value;
        default: return result::invalid_value;
    }
}

// Observed (580, H200): the elements of two arrays may differ in size.
Result lay_out(const Driver& d, const GpuAgent& agent, const End& to, const End& from, CopyRequest& request) {
    const Box& box = request.box;
    if (const Result code = lay_out(d, agent, to, box, request.to, request.destination)) return code;
    return lay_out(d, agent, from, box, request.from, request.source);
}

Result copy_box(Driver& d, Stream* handle, const End& to, const End& from, const Box& box, bool wait,
                bool between_devices) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    CopyRequest request;
    request.box = box;
    request.wait = wait;
    request.between_devices = between_devices;
    {
        const std::lock_guard lock(d.mutex);
        const GpuAgent agent = {stream.device, stream.context, stream.id};
        if (const Result code = lay_out(d, agent, to, from, request)) return code;
    }
    return copy(d, handle, request);
}

Result copy_2d(Driver& d, Stream* stream, const Copy2D* c, bool wait) {
    if (!c) return result::invalid_value;
    const End from = {
        c->source_x_bytes, c->source_y, 0, 0, c->source_type, c->source_host, c->source_device, c->source_pitch, 0,
        c->source_array,   nullptr};
    const End to = {c->destination_x_bytes,
                    c->destination_y,
                    0,
                    0,
                    c->destination_type,
                    c->destination_host,
                    c->destination_device,
                    c->destination_pitch,
                    0,
                    c->destination_array,
                    nullptr};
    return copy_box(d, stream, to, from, {c->width_bytes, c->height, 1}, wait, false);
}

End end_of(const Copy3DEnd& e) {
    return {e.x_bytes, e.y, e.z, e.lod, e.type, e.host, e.device, e.pitch, e.height, e.array, nullptr};
}

End end_of_peer(const Copy3DEnd& e) {
    End end = end_of(e);
    end.context = e.context;
    return end;
}

Result copy_3d(Driver& d, Stream* stream, const Copy3D* c, bool wait) {
    if (!c) return result::invalid_value;
    const Box box = {c->width_bytes, c->height, c->depth};
    return copy_box(d, stream, end_of(c->destination), end_of(c->source), box, wait, false);
}

// The same structure, with a context where the other has a reserved word.
Result copy_3d_peer(Driver& d, Stream* stream, const Copy3D* c, bool wait) {
    if (!c) return result::invalid_value;
    if (const Result code = check_peers(d, c->destination.context, c->source.context)) return code;
    const Box box = {c->width_bytes, c->height, c->depth};
    return copy_box(d, stream, end_of_peer(c->destination), end_of_peer(c->source), box, wait, true);
}

// Whether an operand may be described so. Documented for systems with a device whose CONCURRENT_MANAGED_ACCESS is 0:
// managed memory has the type host or device.
bool is_fit_for_node(const Driver& d, const Copy3DEnd& end) {
    if (end.type != type_unified || !d.phase_guarded) return true;
    const Found found = d.regions.find(end.device);
    return !found || found.region->kind != Kind::managed;
}

// Requires the driver's mutex. A node without a byte to copy is refused (documented for instances, assumed for graphs).
Result copy_of_node(Driver& d, const GpuAgent& agent, const Copy3D& c, engine::Operation& out) {
    CopyRequest request;
    request.box = {c.width_bytes, c.height, c.depth};
    if (request.box.empty() || !is_fit_for_node(d, c.source) || !is_fit_for_node(d, c.destination)) {
        return result::invalid_value;
    }
    if (const Result code = lay_out(d, agent, end_of(c.destination), end_of(c.source), request)) return code;
    return make_copy_node(d, agent, request, c, out);
}

bool is_line(const Copy3D& copy) {
    return copy.height == 1 && copy.depth == 1;
}

}  // namespace

Result add_copy_node(Driver& d, const NodePlace& place, const Copy3D* copy, Context* context) {
    if (!copy) return result::invalid_value;
    return add_memory_node(d, place, context, [&](const GpuAgent& agent, engine::Operation& made) {
        return copy_of_node(d, agent, *copy, made);
    });
}

Result set_copy_node(Driver& d, const NodeChange& change, const Copy3D* copy, Context* context) {
    if (!copy) return result::invalid_value;
    const auto make = [&](const GpuAgent& agent, engine::Operation& made) {
        return copy_of_node(d, agent, *copy, made);
    };
    // Documented: an instance's copies have one dimension, before and after.
    const auto fits = [&](const MemoryNode& old) { return is_line(old.copy) && is_line(*copy); };
    return set_memory_node(d, change, engine::Kind::copy, context, make, fits);
}

extern "C" {

Result cuGraphAddMemcpyNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                            const Copy3D* copy, Context* context) {
    return call(CallId::cuGraphAddMemcpyNode, [&](Driver& d) {
        return add_copy_node(d, {node, graph, dependencies, count}, copy, context);
    });
}

Result cuGraphMemcpyNodeGetParams(NodeObject* node, Copy3D* copy) {
    return call(CallId::cuGraphMemcpyNodeGetParams, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            const MemoryNode* const known = memory_node_of(found, engine::Kind::copy);
            if (!copy || !known) return result::invalid_value;
            *copy = known->copy;
            return result::ok;
        });
    });
}

Result cuGraphMemcpyNodeSetParams(NodeObject* node, const Copy3D* copy) {
    return call(CallId::cuGraphMemcpyNodeSetParams, [&](Driver& d) {
        return set_copy_node(d, {node, nullptr}, copy, nullptr);
    });
}

Result cuGraphExecMemcpyNodeSetParams(GraphExec* instance, NodeObject* node, const Copy3D* copy, Context* context) {
    // Observed (580, H200): without a context, too. Assumed: it is the node's own then.
    return call(CallId::cuGraphExecMemcpyNodeSetParams, [&](Driver& d) {
        return set_copy_node(d, {node, &instance}, copy, context);
    });
}

Result cuMemcpy2D_v2(const Copy2D* rows) {
    return call(CallId::cuMemcpy2D_v2, [&](Driver& d) { return copy_2d(d, nullptr, rows, true); });
}

Result cuMemcpy2DUnaligned_v2(const Copy2D* rows) {
    return call(CallId::cuMemcpy2DUnaligned_v2, [&](Driver& d) { return copy_2d(d, nullptr, rows, true); });
}

Result cuMemcpy2DAsync_v2(const Copy2D* rows, Stream* stream) {
    return call(CallId::cuMemcpy2DAsync_v2, [&](Driver& d) { return copy_2d(d, stream, rows, false); });
}

Result cuMemcpy3D_v2(const Copy3D* box) {
    return call(CallId::cuMemcpy3D_v2, [&](Driver& d) { return copy_3d(d, nullptr, box, true); });
}

Result cuMemcpy3DAsync_v2(const Copy3D* box, Stream* stream) {
    return call(CallId::cuMemcpy3DAsync_v2, [&](Driver& d) { return copy_3d(d, stream, box, false); });
}

Result cuMemcpy3DPeer(const Copy3D* box) {
    return call(CallId::cuMemcpy3DPeer, [&](Driver& d) { return copy_3d_peer(d, nullptr, box, true); });
}

Result cuMemcpy3DPeerAsync(const Copy3D* box, Stream* stream) {
    return call(CallId::cuMemcpy3DPeerAsync, [&](Driver& d) { return copy_3d_peer(d, stream, box, false); });
}
}

}  // namespace isthmus::sim
