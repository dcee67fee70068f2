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

// Why the instruction cannot read the texture; nullptr: it can.
const char* what_is_wrong(const TextureBytes& texture, const TextureShape& shape) {
    // As on an H100: a line is a plane of one row, and of a plane the first row is a line.
    const bool has_rows = texture.dimensions <= 2 && shape.dimensions <= 2 && texture.is_array && !texture.layered;
    const bool is_alike = texture.dimensions == shape.dimensions || has_rows;
    if (!is_alike || texture.layered != shape.layered || texture.is_cube != shape.is_cube) {
        return "it has other dimensions than the instruction";
    }
    return nullptr;
}

// What of a fetch is not known here; nullptr: nothing.
const char* not_modelled(const TextureBytes& texture, Fetching fetching, bool by_integers) {
    if (texture.is_cube && texture.linear_filter && texture.is_seamless) return "seamless filters of cubemaps";
    if (texture.smaller.empty()) return nullptr;
    if (fetching == Fetching::gradients) return "the levels that gradients choose";
    if (by_integers && fetching == Fetching::level) return "integer coordinates in other levels";
    return texture.normalised ? nullptr : "levels without normalised coordinates";
}

// Where a lane fetches. The places of a level or of gradients lie behind those of the result.
TexturePoint point_of(const Warp& warp, const Op& op, const TextureShape& shape, std::uint32_t lane) {
    TexturePoint point;
    point.of_integers = op.flag;
    const Place axes[] = {op.b, op.c, op.d};
    for (std::size_t axis = 0; axis < shape.coordinates(); ++axis) {
        const std::uint64_t value = warp.in(axes[axis])[lane];
        point.at[axis] = from_slot<float>(value);
        point.texel[axis] = static_cast<std::int32_t>(value);
    }
    if (shape.layered) point.layer = static_cast<std::uint32_t>(warp.in(static_cast<Place>(op.value))[lane]);
    const auto fetching = static_cast<Fetching>(op.bytes);
    const Place* const more = warp.now.frame->function->extra.data() + op.extra + op.count;
    point.has_level = fetching == Fetching::level;
    if (point.has_level) {
        const std::uint64_t value = warp.in(more[0])[lane];
        point.level = op.flag ? static_cast<float>(static_cast<std::int32_t>(value)) : from_slot<float>(value);
    }
    return point;
}

// Observed (580, H100): 0. Integer coordinates do not reach arrays of one dimension.
bool reaches_nothing(const TextureBytes& texture, const TextureShape& shape, bool by_integers) {
    return by_integers && texture.is_array && shape.dimensions == 1 && !shape.layered;
}

void fetch(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const TextureShape& shape = texture_shapes[op.mode];
    const auto fetching = static_cast<Fetching>(op.bytes);
    const Row& handles = warp.in(op.a);
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        const TextureBytes& texture = texture_of(worker, handles[lane]);
        const auto refuse = [&](const std::string& why, bool is_modelled = true) {
            fail(warp, op, lane, is_modelled ? FaultKind::illegal_address : FaultKind::illegal_instruction,
                 "a fetch of texture " + in_hex(handles[lane]) + ": " + why);
        };
        if (texture.host == nullptr) return refuse(texture.refusal, texture.is_modelled);
        if (const char* const why = what_is_wrong(texture, shape)) return refuse(why);
        if (texture.is_linear_memory && !op.flag) return refuse("linear memory is read by integer coordinates alone");
        if (const char* const what = not_modelled(texture, fetching, op.flag)) {
            return refuse(std::string(what) + " are not modelled", false);
        }
        TextureSample found;
        if (!reaches_nothing(texture, shape, op.flag)) {
            const TexturePoint point = point_of(warp, op, shape, lane);
            if (fetching == Fetching::gather) {
                found = gather(texture, point, static_cast<std::uint32_t>(op.value2));
            } else if (shape.dimensions == 2 && texture.dimensions == 1) {
                TextureBytes plane = texture;
                plane.dimensions = 2;
                found = sample(plane, point);
            } else {
                found = sample(texture, point);
            }
        }
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

// txq and suq, as cuda.h's formats are told to kernels.
std::uint32_t channel_type_code(const TexelFormat& format, bool normalised) {
    // The numbers of OpenCL, which PTX uses: cl_channel_type.
    const std::uint32_t size = format.channel_bytes == 1 ? 0 : format.channel_bytes == 2 ? 1 : 2;
    if (format.kind == TexelFormat::Kind::floating) return size == 1 ? 0x10dd : 0x10de;
    if (normalised && size < 2) return (format.kind == TexelFormat::Kind::signed_ ? 0x10d0 : 0x10d2) + size;
    return (format.kind == TexelFormat::Kind::signed_ ? 0x10d7 : 0x10da) + size;
}
std::uint32_t channel_order_code(const TexelFormat& format) {
    return format.channels == 1 ? 0x10b0 : format.channels == 2 ? 0x10b2 : 0x10b5;  // R, RG, RGBA
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
            case ObjectQuery::levels: d[lane] = texture.smaller.size() + 1; break;
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
