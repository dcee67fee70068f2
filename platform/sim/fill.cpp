// SPDX-License-Identifier: Apache-2.0
// Fills: rows of one value, of one, two or four bytes.
#include "access.hpp"
#include "call.hpp"
#include "copies.hpp"
#include "memory_nodes.hpp"
#include "written_bytes.hpp"

#include <utility>

namespace isthmus::sim {
namespace {

template <class T>
struct Fill {
    T value;
    std::size_t width;  // in values
    std::size_t height = 1;
    std::size_t pitch = 0;  // in bytes; ignored for one row
};

template <class T>
Fill<T> row(T value, std::size_t count) {
    return {value, count};
}

// The bytes from the first to the last value; false: an impossible shape.
template <class T>
bool measure(const Fill<T>& fill, std::size_t& bytes) {
    std::size_t width_bytes = 0, rows_bytes = 0;
    if (__builtin_mul_overflow(fill.width, sizeof(T), &width_bytes)) return false;
    if (fill.height > 1 && (fill.pitch % sizeof(T) != 0 || fill.pitch < width_bytes)) return false;
    if (__builtin_mul_overflow(fill.pitch, fill.height - 1, &rows_bytes)) return false;
    return !__builtin_add_overflow(rows_bytes, width_bytes, &bytes);
}

template <class T>
void fill_rows(void* destination, const Fill<T>& fill) {
    for (std::size_t y = 0; y < fill.height; ++y) {
        T* const to = reinterpret_cast<T*>(static_cast<std::byte*>(destination) + y * fill.pitch);
        for (std::size_t x = 0; x < fill.width; ++x) to[x] = fill.value;
        written_bytes::written(to, fill.width * sizeof(T));
    }
}

template <class T>
engine::Operation fill_operation(Driver& d, const GpuAgent& agent, const CopySide& side, Address destination,
                                 std::size_t bytes, const Fill<T>& fill) {
    engine::Operation operation;
    operation.kind = engine::Kind::memset;
    operation.label = "fill";
    MemoryNode node = {agent.context, operand_of(side), {}, fill.width * sizeof(T), fill.height, fill.pitch, sizeof(T)};
    node.fill = {destination, fill.pitch, static_cast<unsigned>(fill.value), sizeof(T), fill.width, fill.height};
    operation.details = std::make_shared<const MemoryNode>(node);
    Reached reached = {side.region ? side.region->id : 0, true, true, destination, bytes};
    operation.body = [=, &d, pointer = side.pointer]() -> int {
        if (const Result lost = check_reached(d, agent, "a fill", {reached})) return lost;
        std::uintptr_t fault = 0;
        if (!Protection::run_guarded([&] { fill_rows(pointer, fill); }, fault)) return result::illegal_address;
        count_fill(fill.width * sizeof(T) * fill.height);
        return result::ok;
    };
    return operation;
}

template <class T>
Result fill(Driver& d, Stream* handle, Address destination, const Fill<T>& fill, bool synchronous) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (destination % sizeof(T) != 0) return result::invalid_value;
    if (fill.width == 0 || fill.height == 0) return result::ok;
    std::size_t bytes = 0;
    if (!measure(fill, bytes)) return result::invalid_value;
    if (synchronous) {
        if (const Result code = d.engine().unsafe_call()) return code;
    }
    CopySide side;
    bool host_memory = false;
    engine::Operation operation;
    {
        const std::lock_guard lock(d.mutex);
        side = check_copy_side(d, stream.device, destination, bytes, true);
        if (side.code != 0) return side.code;
        // Observed (580.159.04, H200): fills over two handles of host memory are refused; copies and kernels over them
        // work, and so do fills over two handles of device memory.
        const bool mapped_host = side.region && side.region->kind == Kind::mapping && side.region->device < 0;
        if (mapped_host && destination + bytes > side.region->base + side.region->bytes) return result::invalid_value;
        // Observed (580, H200): as are fills of a host pool's memory without access, which copies reach.
        if (side.region && side.region->pool && side.region->device < 0 &&
            side.region->pool->devices.count(stream.device) == 0) {
            return result::invalid_value;
        }
        host_memory = side.region && (side.region->kind == Kind::pinned || side.region->kind == Kind::registered);
        operation = fill_operation(d, {stream.device, stream.context, stream.id}, side, destination, bytes, fill);
    }
    engine::WorkRef work;
    const Result code = d.engine().submit(stream.id, std::move(operation), &work);
    update_managed_access(d);
    // Documented: asynchronous to the host except for host memory.
    if (code != 0 || !synchronous || !host_memory) return code;
    const Result ended = d.engine().synchronize(work);
    update_managed_access(d);
    return ended;
}

// Of a node: the memory is known now, and is checked again when the node runs.
template <class T>
Result fill_node(Driver& d, const GpuAgent& agent, const FillNodeParameters& p, engine::Operation& out) {
    const Fill<T> fill = {static_cast<T>(p.value), p.width, p.height, p.pitch};
    std::size_t bytes = 0;
    if (p.address % sizeof(T) != 0 || p.width == 0 || p.height == 0 || !measure(fill, bytes)) {
        return result::invalid_value;
    }
    const CopySide side = check_copy_side(d, agent.device, p.address, bytes, true);
    if (side.code != 0) return side.code;
    out = fill_operation(d, agent, side, p.address, bytes, fill);
    out.device = agent.device;
    return result::ok;
}

Result fill_node_of_size(Driver& d, const GpuAgent& agent, const FillNodeParameters& p, engine::Operation& out) {
    switch (p.element_bytes) {
        case 1: return fill_node<unsigned char>(d, agent, p, out);
        case 2: return fill_node<unsigned short>(d, agent, p, out);
        case 4: return fill_node<unsigned>(d, agent, p, out);
        default: return result::invalid_value;
    }
}

}  // namespace

Result add_fill_node(Driver& d, const NodePlace& place, const FillNodeParameters* parameters, Context* context) {
    if (!parameters) return result::invalid_value;
    return add_memory_node(d, place, context, [&](const GpuAgent& agent, engine::Operation& made) {
        return fill_node_of_size(d, agent, *parameters, made);
    });
}

Result set_fill_node(Driver& d, const NodeChange& change, const FillNodeParameters* parameters, Context* context) {
    if (!parameters) return result::invalid_value;
    const auto make = [&](const GpuAgent& agent, engine::Operation& made) {
        return fill_node_of_size(d, agent, *parameters, made);
    };
    return set_memory_node(d, change, engine::Kind::memset, context, make, [](const MemoryNode&) { return true; });
}

extern "C" {

Result cuGraphAddMemsetNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                            const FillNodeParameters* parameters, Context* context) {
    return call(CallId::cuGraphAddMemsetNode, [&](Driver& d) {
        return add_fill_node(d, {node, graph, dependencies, count}, parameters, context);
    });
}

Result cuGraphMemsetNodeGetParams(NodeObject* node, FillNodeParameters* parameters) {
    return call(CallId::cuGraphMemsetNodeGetParams, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            const MemoryNode* const known = memory_node_of(found, engine::Kind::memset);
            if (!parameters || !known) return result::invalid_value;
            *parameters = known->fill;
            return result::ok;
        });
    });
}

Result cuGraphMemsetNodeSetParams(NodeObject* node, const FillNodeParameters* parameters) {
    return call(CallId::cuGraphMemsetNodeSetParams, [&](Driver& d) {
        return set_fill_node(d, {node, nullptr}, parameters, nullptr);
    });
}

Result cuGraphExecMemsetNodeSetParams(GraphExec* instance, NodeObject* node, const FillNodeParameters* parameters,
                                      Context* context) {
    return call(CallId::cuGraphExecMemsetNodeSetParams, [&](Driver& d) -> Result {
        return set_fill_node(d, {node, &instance}, parameters, context);
    });
}

Result cuMemsetD8_v2(Address destination, unsigned char value, std::size_t count) {
    return call(CallId::cuMemsetD8_v2,
                [&](Driver& d) { return fill(d, nullptr, destination, row(value, count), true); });
}

Result cuMemsetD16_v2(Address destination, unsigned short value, std::size_t count) {
    return call(CallId::cuMemsetD16_v2,
                [&](Driver& d) { return fill(d, nullptr, destination, row(value, count), true); });
}

Result cuMemsetD32_v2(Address destination, unsigned value, std::size_t count) {
    return call(CallId::cuMemsetD32_v2,
                [&](Driver& d) { return fill(d, nullptr, destination, row(value, count), true); });
}

Result cuMemsetD8Async(Address destination, unsigned char value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD8Async,
                [&](Driver& d) { return fill(d, stream, destination, row(value, count), false); });
}

Result cuMemsetD16Async(Address destination, unsigned short value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD16Async,
                [&](Driver& d) { return fill(d, stream, destination, row(value, count), false); });
}

Result cuMemsetD32Async(Address destination, unsigned value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD32Async,
                [&](Driver& d) { return fill(d, stream, destination, row(value, count), false); });
}

Result cuMemsetD2D8_v2(Address destination, std::size_t pitch, unsigned char value, std::size_t width,
                       std::size_t height) {
    return call(CallId::cuMemsetD2D8_v2, [&](Driver& d) {
        return fill(d, nullptr, destination, Fill<unsigned char>{value, width, height, pitch}, true);
    });
}

Result cuMemsetD2D8Async(Address destination, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height, Stream* stream) {
    return call(CallId::cuMemsetD2D8Async, [&](Driver& d) {
        return fill(d, stream, destination, Fill<unsigned char>{value, width, height, pitch}, false);
    });
}

Result cuMemsetD2D16_v2(Address destination, std::size_t pitch, unsigned short value, std::size_t width,
                        std::size_t height) {
    return call(CallId::cuMemsetD2D16_v2, [&](Driver& d) {
        return fill(d, nullptr, destination, Fill<unsigned short>{value, width, height, pitch}, true);
    });
}

Result cuMemsetD2D16Async(Address destination, std::size_t pitch, unsigned short value, std::size_t width,
                          std::size_t height, Stream* stream) {
    return call(CallId::cuMemsetD2D16Async, [&](Driver& d) {
        return fill(d, stream, destination, Fill<unsigned short>{value, width, height, pitch}, false);
    });
}

Result cuMemsetD2D32_v2(Address destination, std::size_t pitch, unsigned value, std::size_t width, std::size_t height) {
    return call(CallId::cuMemsetD2D32_v2, [&](Driver& d) {
        return fill(d, nullptr, destination, Fill<unsigned>{value, width, height, pitch}, true);
    });
}

Result cuMemsetD2D32Async(Address destination, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                          Stream* stream) {
    return call(CallId::cuMemsetD2D32Async, [&](Driver& d) {
        return fill(d, stream, destination, Fill<unsigned>{value, width, height, pitch}, false);
    });
}
}

}  // namespace isthmus::sim
