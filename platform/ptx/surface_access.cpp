// SPDX-License-Identifier: Apache-2.0
// Loads and stores of surfaces, by coordinates: x in bytes, y in rows, z in layers.
#include "operations.hpp"
#include "state.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::ptx {
namespace {

struct Coordinates {
    std::int64_t x, y, z;
};

bool is_inside(const SurfaceBytes& surface, const Coordinates& at, std::uint32_t bytes) {
    const auto below = [](std::int64_t value, std::uint64_t end) {
        return value >= 0 && static_cast<std::uint64_t>(value) < end;
    };
    return below(at.x, surface.row_bytes) && surface.row_bytes - static_cast<std::uint64_t>(at.x) >= bytes &&
           below(at.y, surface.rows) && below(at.z, surface.layers);
}

// The nearest place, "sized appropriately": the last one of a row where the access fits.
Coordinates nearest(const SurfaceBytes& surface, const Coordinates& at, std::uint32_t bytes) {
    const auto within = [](std::int64_t value, std::uint64_t count) {
        return std::clamp<std::int64_t>(value, 0, static_cast<std::int64_t>(count) - 1);
    };
    const std::int64_t last = static_cast<std::int64_t>(surface.row_bytes / bytes * bytes) - bytes;
    return {std::clamp<std::int64_t>(at.x, 0, last), within(at.y, surface.rows), within(at.z, surface.layers)};
}

std::string described(const char* what, const Coordinates& at, std::uint32_t bytes) {
    return std::string(what) + std::to_string(bytes) + " bytes at x = " + std::to_string(at.x) +
           " bytes, y = " + std::to_string(at.y) + ", z = " + std::to_string(at.z) + " of a surface";
}

// The bytes of an access; nullptr: it failed, or (`outside`) reaches nothing.
std::byte* place(Warp& warp, const Op& op, std::uint32_t lane, const SurfaceBytes& surface, Coordinates at,
                 std::uint32_t bytes, const char* what, bool& outside) {
    outside = false;
    if (surface.host == nullptr) {
        fail(warp, op, lane, surface.is_modelled ? FaultKind::illegal_address : FaultKind::illegal_instruction,
             described(what, at, bytes) + ": " + surface.refusal);
        return nullptr;
    }
    if (at.x % bytes != 0) {
        fail(warp, op, lane, FaultKind::misaligned, described(what, at, bytes) + ": x is no multiple of them");
        return nullptr;
    }
    if (!is_inside(surface, at, bytes)) {
        const auto boundary = static_cast<Boundary>(op.mode);
        outside = boundary == Boundary::zero || surface.row_bytes < bytes;
        if (boundary == Boundary::trap) {
            // Observed (580, H200): 700.
            fail(warp, op, lane, FaultKind::illegal_address,
                 described(what, at, bytes) + " of " + std::to_string(surface.row_bytes) + " bytes by " +
                     std::to_string(surface.rows) + " by " + std::to_string(surface.layers) + ": it lies outside");
        }
        if (boundary != Boundary::clamp || outside) return nullptr;
        at = nearest(surface, at, bytes);
    }
    const std::uint64_t row = static_cast<std::uint64_t>(at.z) * surface.rows + static_cast<std::uint64_t>(at.y);
    const std::uint64_t offset = row * surface.row_bytes + static_cast<std::uint64_t>(at.x);
    warp.worker->last_written = surface.written != nullptr ? surface.written + offset : nullptr;
    return surface.host + offset;
}

// Calls access(lane, bytes or nullptr) for each lane that does not fault.
template <class Access>
void for_places(Warp& warp, const Op& op, LaneMask mask, const char* what, Access access) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row &handles = warp.in(op.a), &x = warp.in(op.b), &y = warp.in(op.c), &z = warp.in(op.d);
    const std::uint32_t bytes = std::uint32_t{op.bytes} * op.count;
    const auto number = [](std::uint64_t slot) { return std::int64_t{static_cast<std::int32_t>(slot)}; };
    SurfaceBytes surface;
    std::uint64_t known = 0;
    bool asked = false;
    for_lanes(mask, [&](std::uint32_t lane) {
        if (!asked || handles[lane] != known) surface = worker.state->memory->surface(handles[lane]);
        asked = true;
        known = handles[lane];
        bool outside = false;
        std::byte* const at =
            place(warp, op, lane, surface, {number(x[lane]), number(y[lane]), number(z[lane])}, bytes, what, outside);
        if (at != nullptr || outside) access(lane, at);
    });
}

template <class T>
void load(Warp& warp, const Op& op, LaneMask mask) {
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    for_places(warp, op, mask, "a read of ", [&](std::uint32_t lane, const std::byte* from) {
        if (from != nullptr && warp.worker->finds_uninitialised) {
            note_read(warp, op, lane, reinterpret_cast<std::uintptr_t>(from),
                      static_cast<std::uint32_t>(sizeof(T)) * op.count);
        }
        for (unsigned at = 0; at < op.count; ++at) {
            T value = 0;
            if (from != nullptr) std::memcpy(&value, from + at * sizeof(T), sizeof(T));
            if (places[at] >= 0) warp.out(places[at])[lane] = value;
        }
    });
}

template <class T>
void store(Warp& warp, const Op& op, LaneMask mask) {
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    for_places(warp, op, mask, "a write of ", [&](std::uint32_t lane, std::byte* to) {
        if (to == nullptr) return;
        for (unsigned at = 0; at < op.count; ++at) {
            const T value = static_cast<T>(warp.in(places[at])[lane]);
            std::memcpy(to + at * sizeof(T), &value, sizeof(T));
        }
        if (warp.worker->finds_uninitialised) {
            note_write(warp, static_cast<std::uint32_t>(sizeof(T)) * op.count);
        }
    });
}

}  // namespace

Run surface_run(std::uint32_t bytes, bool is_load) {
    switch (bytes) {
        case 1: return is_load ? load<std::uint8_t> : store<std::uint8_t>;
        case 2: return is_load ? load<std::uint16_t> : store<std::uint16_t>;
        case 4: return is_load ? load<std::uint32_t> : store<std::uint32_t>;
        case 8: return is_load ? load<std::uint64_t> : store<std::uint64_t>;
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
