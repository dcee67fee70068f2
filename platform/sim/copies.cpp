// SPDX-License-Identifier: Apache-2.0
// Copies as operations: checked at the call, and again when they run.
#include "copies.hpp"

#include "allocate.hpp"
#include "call.hpp"
#include "statistics.hpp"
#include "written_bytes.hpp"

#include <cstring>
#include <utility>

namespace isthmus::sim {
namespace {

struct Rows {
    void* destination;
    const void* source;
    Box box;
    Layout to, from;
};

void copy_rows(const Rows& rows) {
    for (std::size_t z = 0; z < rows.box.depth; ++z) {
        auto* to = static_cast<std::byte*>(rows.destination) + z * rows.to.slice;
        const auto* from = static_cast<const std::byte*>(rows.source) + z * rows.from.slice;
        for (std::size_t y = 0; y < rows.box.height; ++y) {
            std::memmove(to + y * rows.to.pitch, from + y * rows.from.pitch, rows.box.width_bytes);
            written_bytes::copied(to + y * rows.to.pitch, from + y * rows.from.pitch, rows.box.width_bytes);
        }
    }
}

std::uint64_t id_of(const CopySide& side) {
    return side.region ? side.region->id : 0;
}

// Pool memory of another device is not staged, unlike device memory: only a peer copy stages it (assumed).
bool needs_access(const CopySide& side, const CopyRequest& request) {
    if (request.between_devices || !side.region) return false;
    return side.region->kind == Kind::mapping || (side.region->pool && side.region->device >= 0);
}

// Whether the range continues in the next mapping.
bool over_several_handles(const CopySide& side, Address address, std::size_t bytes) {
    return side.region && side.region->kind == Kind::mapping &&
           address - side.region->base + bytes > side.region->bytes;
}

// The facts about a side that a copy needs after the driver's mutex was released.
struct Checked {
    CopySide to, from;
    Reached reached_to, reached_from;
};

// Requires the driver's mutex.
CopySide check_side(const Driver& d, int device, const Side& side, std::size_t bytes) {
    if (!side.array) return check_copy_side(d, device, side.address, bytes, side.device_address);
    CopySide checked;
    checked.region = d.regions.find_id(side.region);  // nullptr: destroyed meanwhile
    if (!checked.region) checked.code = result::invalid_handle;
    checked.pointer = reinterpret_cast<void*>(side.address);
    return checked;
}

// Requires the driver's mutex.
Result check_sides(Driver& d, int device, const CopyRequest& request, bool without_context, Checked& out) {
    std::size_t to_bytes = 0, from_bytes = 0;
    if (!measure(request.box, request.to, to_bytes) || !measure(request.box, request.from, from_bytes)) {
        return result::invalid_value;
    }
    out.to = check_side(d, device, request.destination, to_bytes);
    out.from = check_side(d, device, request.source, from_bytes);
    out.reached_to = {id_of(out.to), true, needs_access(out.to, request), request.destination.address, to_bytes};
    out.reached_from = {id_of(out.from), false, needs_access(out.from, request), request.source.address, from_bytes};
    if (out.to.code != 0) return out.to.code;
    if (out.from.code != 0) return out.from.code;
    // Observed (580.159.04, H200) for cuMemcpyAsync and for copies to the host; assumed for the others.
    const bool several = over_several_handles(out.to, request.destination.address, to_bytes) ||
                         over_several_handles(out.from, request.source.address, from_bytes);
    return without_context && several ? result::invalid_value : result::ok;
}

Place place_of(const CopySide& side) {
    if (side.region && side.region->kind == Kind::managed) return Place::managed;
    return operand_of(side).host ? Place::host : Place::device;
}

// The parameters of the node that a captured copy becomes. Assumed: with the addresses where the box begins.
Copy3DEnd end_of(const Side& side, const CopySide& checked, const Layout& layout) {
    constexpr int on_host = 1, on_device = 2, in_array = 3;
    Copy3DEnd end = {};
    if (side.array) {
        end.type = in_array;
        end.array = side.array;
        end.x_bytes = side.x_bytes;
        end.y = side.y;
        end.z = side.z;
        return end;
    }
    const bool host = operand_of(checked).host && !side.device_address;
    end.type = host ? on_host : on_device;
    end.host = host ? reinterpret_cast<const void*>(side.address) : nullptr;
    end.device = host ? 0 : side.address;
    end.pitch = layout.pitch;
    end.height = layout.pitch != 0 ? layout.slice / layout.pitch : 0;
    return end;
}

Copy3D parameters_of(const CopyRequest& request, const Checked& checked) {
    return {end_of(request.source, checked.from, request.from), end_of(request.destination, checked.to, request.to),
            request.box.width_bytes, request.box.height, request.box.depth};
}

engine::Operation copy_operation(Driver& d, const GpuAgent& agent, const Checked& checked, const Rows& rows,
                                 const Copy3D& parameters, std::shared_ptr<std::vector<std::byte>> staged) {
    engine::Operation operation;
    operation.kind = engine::Kind::copy;
    operation.label = "copy";
    MemoryNode node = {agent.context, operand_of(checked.to), operand_of(checked.from)};
    node.copy = parameters;
    operation.details = std::make_shared<const MemoryNode>(node);
    const std::pair places(place_of(checked.from), place_of(checked.to));
    operation.body = [=, &d, to = checked.reached_to, from = checked.reached_from,
                      staged = std::move(staged)]() -> int {
        if (const Result lost = check_reached(d, agent, "a copy", {to, from})) return lost;
        std::uintptr_t fault = 0;
        if (Protection::run_guarded([&] { copy_rows(rows); }, fault)) {
            count_copy(places.first, places.second, rows.box.width_bytes * rows.box.height * rows.box.depth);
            return result::ok;
        }
        say("a copy of %zu bytes touched %#zx, which is not there",
            rows.box.width_bytes * rows.box.height * rows.box.depth, static_cast<std::size_t>(fault));
        return result::illegal_address;
    };
    return operation;
}

// Reads the source now; the rows then lie without gaps. nullptr: it cannot be read.
std::shared_ptr<std::vector<std::byte>> stage(Rows& rows) {
    const Box& box = rows.box;
    const Layout packed = {box.width_bytes, box.width_bytes * box.height};
    if (packed.slice >= absurd_bytes || packed.slice * box.depth >= absurd_bytes) return nullptr;
    auto staged = std::make_shared<std::vector<std::byte>>(packed.slice * box.depth);
    const Rows into = {staged->data(), rows.source, box, packed, rows.from};
    std::uintptr_t fault = 0;
    if (!Protection::run_guarded([&] { copy_rows(into); }, fault)) return nullptr;
    rows.source = staged->data();
    rows.from = packed;
    return staged;
}

}  // namespace

MemoryNode::Operand operand_of(const CopySide& side) {
    if (!side.region) return {true, -1, nullptr};
    const bool host = side.region->kind == Kind::pinned || side.region->kind == Kind::registered ||
                      (side.region->kind == Kind::mapping && side.region->device < 0);
    return {host, side.region->device, side.region->context};
}

bool MemoryNode::may_become(const MemoryNode& other) const {
    if (context != other.context || !(to == other.to) || !(from == other.from) || height != other.height) return false;
    // Documented: the types of memory of a copy do not change. Those of a fill are 0.
    const Copy3DEnd &source = other.copy.source, &destination = other.copy.destination;
    if (copy.source.type != source.type || copy.destination.type != destination.type) return false;
    if (height == 1) return true;
    return width_bytes == other.width_bytes && pitch == other.pitch && element_bytes == other.element_bytes;
}

bool measure(const Box& box, const Layout& layout, std::size_t& bytes) {
    bytes = 0;
    if (box.empty()) return true;
    std::size_t rows = 0, planes = 0, all = 0;
    return !__builtin_mul_overflow(layout.pitch, box.height - 1, &rows) &&
           !__builtin_mul_overflow(layout.slice, box.depth - 1, &planes) &&
           !__builtin_add_overflow(rows, planes, &all) && !__builtin_add_overflow(all, box.width_bytes, &bytes);
}

Result check_peers(Driver& d, const Context* to, const Context* from) {
    const std::lock_guard lock(d.mutex);
    const Result code = context_code(d, to);
    return code != 0 ? code : context_code(d, from);
}

Result check_reached(Driver& d, const GpuAgent& agent, const char* what, std::initializer_list<Reached> all) {
    const std::lock_guard lock(d.mutex);
    for (const Reached& one : all) {
        if (one.region == 0) continue;
        const Region* const region = d.regions.find_id(one.region);
        const bool mapped = region && region->kind == Kind::mapping;
        const std::string reason = !region          ? "it was freed"
                                   : region->absent ? "its graph has not allocated it yet, or it was freed"
                                   : mapped         ? check_mappings(d, one.directly ? agent.device : -1, one.address,
                                                                     one.bytes, one.directly && one.writes)
                                   : one.directly   ? check_reach(*region, agent, one.writes)
                                                    : std::string();
        if (reason.empty()) continue;
        say("%s of device %d cannot reach its memory: %s; this becomes CUDA_ERROR_ILLEGAL_ADDRESS (700)", what,
            agent.device, reason.c_str());
        return result::illegal_address;
    }
    return result::ok;
}

Result copy(Driver& d, Stream* handle, const CopyRequest& request) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    const Box& box = request.box;
    if (box.empty()) return result::ok;
    if (request.wait) {
        if (const Result code = d.engine().unsafe_call()) return code;
    }
    Checked checked;
    const bool without_context = current_context(d) == nullptr;
    {
        const std::lock_guard lock(d.mutex);
        if (const Result code = check_sides(d, stream.device, request, without_context, checked)) return code;
    }
    const CopySide &to = checked.to, &from = checked.from;
    const bool capturing = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
    // Pageable memory passes through the driver's staging buffers: when the call returns, the source has been read, or
    // the destination has been written. In a capture host memory is read when the graph runs.
    std::shared_ptr<std::vector<std::byte>> staged;
    Rows rows = {to.pointer, from.pointer, box, request.to, request.from};
    const bool one_row = box.height == 1 && box.depth == 1;
    if (from.pageable && !request.source.device_address && !capturing && !request.wait && one_row) {
        if (box.width_bytes >= absurd_bytes) return result::out_of_memory;
        const auto* bytes = static_cast<const std::byte*>(rows.source);
        staged = std::make_shared<std::vector<std::byte>>(bytes, bytes + box.width_bytes);
        rows.source = staged->data();
    }
    const GpuAgent agent = {stream.device, stream.context, stream.id};
    engine::WorkRef work;
    const Copy3D parameters = parameters_of(request, checked);
    const Result code =
        d.engine().submit(stream.id, copy_operation(d, agent, checked, rows, parameters, staged), &work);
    update_managed_access(d);
    if (code != 0 || capturing) return code;
    const bool blocks = request.wait || (to.pageable && !request.destination.device_address) ||
                        (from.pageable && !staged && !request.source.device_address);
    if (!blocks) return code;
    const Result ended = d.engine().synchronize(work);
    update_managed_access(d);
    return ended;
}

Result make_copy_node(Driver& d, const GpuAgent& agent, const CopyRequest& request, const Copy3D& parameters,
                      engine::Operation& out) {
    Checked checked;
    if (const Result code = check_sides(d, agent.device, request, false, checked)) return code;
    const Rows rows = {checked.to.pointer, checked.from.pointer, request.box, request.to, request.from};
    out = copy_operation(d, agent, checked, rows, parameters, nullptr);
    out.device = agent.device;
    return result::ok;
}

Result copy_batch(Driver& d, Stream* handle, const std::vector<BatchedRequest>& batch, std::size_t* failed) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    const GpuAgent agent = {stream.device, stream.context, stream.id};
    const bool without_context = current_context(d) == nullptr;
    std::vector<engine::Operation> parts;
    bool wait = false;
    for (const BatchedRequest& one : batch) {
        Checked checked;
        {
            const std::lock_guard lock(d.mutex);
            const Result code = check_sides(d, stream.device, one.copy, without_context, checked);
            if (code != result::ok && failed) *failed = one.index;
            if (code != result::ok) return code;
        }
        Rows rows = {checked.to.pointer, checked.from.pointer, one.copy.box, one.copy.to, one.copy.from};
        std::shared_ptr<std::vector<std::byte>> staged;
        if (one.source_during_call && operand_of(checked.from).host) {
            staged = stage(rows);
            if (!staged && failed) *failed = one.index;
            if (!staged) return result::illegal_address;
            checked.reached_from.region = 0;  // read: it may be freed from here on
        } else if (one.source_during_call) {
            wait = true;  // device memory is read in stream order, which the driver may do as well
        }
        parts.push_back(copy_operation(d, agent, checked, rows, parameters_of(one.copy, checked), staged));
    }
    check_independence(batch);
    engine::Operation whole;
    whole.kind = engine::Kind::copy;
    whole.label = "a batch of copies";
    whole.body = [parts = std::move(parts)]() -> int {
        for (const engine::Operation& part : parts) {
            if (const Result code = part.body()) return code;
        }
        return result::ok;
    };
    engine::WorkRef work;
    const Result code = d.engine().submit(stream.id, std::move(whole), &work);
    update_managed_access(d);
    if (code != result::ok || !wait) return code;
    const Result ended = d.engine().synchronize(work);
    update_managed_access(d);
    return ended;
}

}  // namespace isthmus::sim
