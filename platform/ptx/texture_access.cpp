// SPDX-License-Identifier: Apache-2.0
// Fetches of textures, and queries of texture and surface objects.
#include "operations.hpp"
#include "state.hpp"
#include "texture_sampling.hpp"

namespace isthmus::ptx {
namespace {

// The answer about an object is kept until the turn of the block ends.
const TextureBytes& texture_of(Worker& worker, std::uint64_t handle) {
    for (const auto& [known, texture] : worker.textures) {
        if (known == handle) return texture;
    }
    return worker.textures.emplace_back(handle, worker.state->memory->texture(handle)).second;
}

// The last operand of an axis that the instruction does not have is 0.
void fetch(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const auto& shape = texture_shapes[op.mode];
    const Row& handles = warp.in(op.a);
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const TextureBytes& texture = texture_of(worker, handles[lane]);
        const auto refuse = [&](const std::string& why) {
            fail(warp, op, lane, texture.is_modelled ? FaultKind::illegal_address : FaultKind::illegal_instruction,
                 "a fetch of texture " + in_hex(handles[lane]) + ": " + why);
        };
        if (texture.host == nullptr) return refuse(texture.refusal);
        // One row is a line, too: cudaMallocArray() with a height of 1 makes such arrays.
        const bool is_line = shape.dimensions == 1 && texture.dimensions == 2 && texture.height == 1;
        if ((texture.dimensions != shape.dimensions && !is_line) || texture.layered != shape.layered) {
            return refuse("it has other dimensions than the instruction");
        }
        TexturePoint point;
        point.of_integers = op.flag;
        if (texture.is_linear_memory && !op.flag) return refuse("linear memory is read by integer coordinates alone");
        const Place axes[] = {op.b, op.c, op.d};
        for (std::size_t axis = 0; axis < shape.dimensions; ++axis) {
            const std::uint64_t value = warp.in(axes[axis])[lane];
            point.at[axis] = from_slot<float>(value);
            point.texel[axis] = static_cast<std::int32_t>(value);
        }
        if (shape.layered) point.layer = static_cast<std::uint32_t>(warp.in(static_cast<Place>(op.value))[lane]);
        const TextureSample found = sample(texture, point);
        if (worker.finds_uninitialised && texture.written != nullptr) {
            for (std::uint32_t at = 0; at < found.texel_count; ++at) {
                worker.last_written = const_cast<std::byte*>(texture.written) + found.texels[at];
                note_read(warp, op, lane, reinterpret_cast<std::uintptr_t>(texture.host + found.texels[at]),
                          texture.format.channel_bytes * texture.format.channels);
            }
        }
        for (std::size_t at = 0; at < op.count; ++at) {
            if (places[at] >= 0) warp.out(places[at])[lane] = found.channels[at];
        }
    }
}

std::uint64_t answer(ObjectQuery what, std::uint64_t width, std::uint64_t height, std::uint64_t depth, bool layered,
                     std::uint32_t dimensions) {
    switch (what) {
        case ObjectQuery::width: return width;
        case ObjectQuery::height: return dimensions > 1 ? height : 0;
        case ObjectQuery::depth: return dimensions > 2 ? depth : 0;
        default: return layered ? depth : 0;
    }
}

// Op: a: the object; d: the answer; mode: ObjectQuery; flag: of a surface.
void query(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row& handles = warp.in(op.a);
    Row& d = warp.out(op.d);
    const auto what = static_cast<ObjectQuery>(op.mode);
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const auto refuse = [&](const std::string& why) {
            fail(warp, op, lane, FaultKind::illegal_address,
                 std::string("a query of ") + (op.flag ? "surface " : "texture ") + in_hex(handles[lane]) + ": " + why);
        };
        if (op.flag) {
            const SurfaceBytes surface = worker.state->memory->surface(handles[lane]);
            if (surface.host == nullptr) return refuse(surface.refusal);
            const std::uint64_t texel = surface.format.channel_bytes * surface.format.channels;
            d[lane] = what == ObjectQuery::channel_type ? channel_type_code(surface.format, false)
                      : what == ObjectQuery::channel_order
                          ? channel_order_code(surface.format)
                          : answer(what, surface.row_bytes / texel, surface.rows, surface.layers, surface.layered,
                                   surface.dimensions);
            continue;
        }
        const TextureBytes& texture = texture_of(worker, handles[lane]);
        if (texture.host == nullptr) return refuse(texture.refusal);
        switch (what) {
            case ObjectQuery::channel_type: d[lane] = channel_type_code(texture.format, !texture.reads_integers); break;
            case ObjectQuery::channel_order: d[lane] = channel_order_code(texture.format); break;
            case ObjectQuery::normalised: d[lane] = texture.normalised ? 1 : 0; break;
            case ObjectQuery::levels: d[lane] = texture.levels; break;
            default:
                d[lane] =
                    answer(what, texture.width, texture.height, texture.depth, texture.layered, texture.dimensions);
        }
    }
}

}  // namespace

Run texture_run() {
    return fetch;
}
Run object_query_run() {
    return query;
}

}  // namespace isthmus::ptx
