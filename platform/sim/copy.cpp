// Copies and fills: every form of them becomes rows of bytes, done by a GPU worker.
#include "access.hpp"
#include "call.hpp"

#include <cstring>

namespace isthmus::sim {
namespace {

struct Side {
    Address address = 0;
    bool device_address = false;  // the call names it so: the driver must know it
};

struct Rows {
    std::size_t width_bytes = 0;
    std::size_t height = 1;
    std::size_t source_pitch = 0, destination_pitch = 0;

    static std::size_t span(std::size_t pitch, std::size_t width, std::size_t height) {
        return height == 0 ? 0 : pitch * (height - 1) + width;
    }
};

engine::Operation copy_operation(void* destination, const void* source, const Rows& rows,
                                 std::shared_ptr<std::vector<std::byte>> staged) {
    engine::Operation operation;
    operation.kind = engine::Kind::copy;
    operation.label = "copy";
    operation.body = [=, staged = std::move(staged)]() -> int {
        std::uintptr_t fault = 0;
        const auto work = [&] {
            const auto* from = static_cast<const std::byte*>(source);
            auto* to = static_cast<std::byte*>(destination);
            for (std::size_t row = 0; row < rows.height; ++row) {
                std::memmove(to + row * rows.destination_pitch, from + row * rows.source_pitch, rows.width_bytes);
            }
        };
        if (Protection::run_guarded(work, fault)) return result::ok;
        say("a copy of %zu bytes touched %#zx, which is not there", rows.width_bytes * rows.height,
            static_cast<std::size_t>(fault));
        return result::illegal_address;
    };
    return operation;
}

// Host-synchronous calls on the legacy stream while a capture is open.
Result check_synchronous(Driver& d) {
    return d.engine().unsafe_call();
}

struct CopyRequest {
    Side destination, source;
    Rows rows;
    bool wait = false;  // the call is synchronous
};

Result check_sides(Driver& d, int device, const CopyRequest& request, CopySide& to, CopySide& from) {
    const Rows& rows = request.rows;
    const std::lock_guard lock(d.mutex);
    to = check_copy_side(d, device, request.destination.address,
                         Rows::span(rows.destination_pitch, rows.width_bytes, rows.height),
                         request.destination.device_address);
    from = check_copy_side(d, device, request.source.address,
                           Rows::span(rows.source_pitch, rows.width_bytes, rows.height), request.source.device_address);
    return to.code != 0 ? to.code : from.code;
}

Result copy(Driver& d, Stream* handle, const CopyRequest& request) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    const Rows& rows = request.rows;
    if (rows.width_bytes == 0 || rows.height == 0) return result::ok;
    if (rows.height > 1 && (rows.source_pitch < rows.width_bytes || rows.destination_pitch < rows.width_bytes)) {
        return result::invalid_value;
    }
    if (request.wait) {
        if (const Result code = check_synchronous(d)) return code;
    }
    CopySide to, from;
    if (const Result code = check_sides(d, stream.device, request, to, from)) return code;
    const bool capturing = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
    // Pageable memory passes through the driver's staging buffers: the source has been read when the call returns,
    // the destination has been written.
    std::shared_ptr<std::vector<std::byte>> staged;
    const void* source = from.pointer;
    if (from.pageable && !request.source.device_address && !capturing && !request.wait && rows.height == 1) {
        const auto* bytes = static_cast<const std::byte*>(source);
        staged = std::make_shared<std::vector<std::byte>>(bytes, bytes + rows.width_bytes);
        source = staged->data();
    }
    engine::WorkRef work;
    const Result code = d.engine().submit(stream.id, copy_operation(to.pointer, source, rows, staged), &work);
    update_managed_access(d);
    if (code != 0 || capturing) return code;
    const bool blocks = request.wait || (to.pageable && !request.destination.device_address) ||
                        (from.pageable && !staged && !request.source.device_address);
    if (!blocks) return code;
    const Result ended = d.engine().synchronize(work);
    update_managed_access(d);
    return ended;
}

Side device_side(Address address) {
    return {address, true};
}
Side any_side(Address address) {
    return {address, false};
}
Side host_side(const void* pointer) {
    return {reinterpret_cast<Address>(pointer), false};
}

Result copy_line(Driver& d, Stream* stream, Side destination, Side source, std::size_t bytes, bool wait) {
    return copy(d, stream, {destination, source, {bytes, 1, bytes, bytes}, wait});
}

// Memory types of a 2D copy: 1 host, 2 device, 3 array, 4 unified.
bool side_2d(int type, const void* host, Address device, std::size_t offset, Side& side) {
    if (type == 1) side = host_side(static_cast<const std::byte*>(host) + offset);
    if (type == 2) side = device_side(device + offset);
    if (type == 4) side = any_side(device + offset);
    return type == 1 || type == 2 || type == 4;
}

Result copy_2d(Driver& d, Stream* stream, const Copy2D* c, bool wait) {
    if (!c) return result::invalid_value;
    if (c->source_type == 3 || c->destination_type == 3) {
        say("cuMemcpy2D: arrays are not modelled");
        return result::not_supported;
    }
    CopyRequest request;
    request.wait = wait;
    // A pitch of 0 means rows without gaps.
    request.rows = {c->width_bytes, c->height, c->source_pitch ? c->source_pitch : c->width_bytes,
                    c->destination_pitch ? c->destination_pitch : c->width_bytes};
    const std::size_t source_offset = c->source_y * request.rows.source_pitch + c->source_x_bytes;
    const std::size_t destination_offset = c->destination_y * request.rows.destination_pitch + c->destination_x_bytes;
    if (!side_2d(c->source_type, c->source_host, c->source_device, source_offset, request.source) ||
        !side_2d(c->destination_type, c->destination_host, c->destination_device, destination_offset,
                 request.destination)) {
        return result::invalid_value;
    }
    return copy(d, stream, request);
}

template <class T>
engine::Operation fill_operation(void* destination, T value, std::size_t count) {
    engine::Operation operation;
    operation.kind = engine::Kind::memset;
    operation.label = "fill";
    operation.body = [=]() -> int {
        std::uintptr_t fault = 0;
        const auto work = [&] {
            T* const to = static_cast<T*>(destination);
            for (std::size_t i = 0; i < count; ++i) to[i] = value;
        };
        return Protection::run_guarded(work, fault) ? result::ok : result::illegal_address;
    };
    return operation;
}

template <class T>
Result fill(Driver& d, Stream* handle, Address destination, T value, std::size_t count, bool synchronous) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (destination % sizeof(T) != 0) return result::invalid_value;
    if (count == 0) return result::ok;
    if (synchronous) {
        if (const Result code = check_synchronous(d)) return code;
    }
    CopySide side;
    {
        const std::lock_guard lock(d.mutex);
        side = check_copy_side(d, stream.device, destination, count * sizeof(T), true);
    }
    if (side.code != 0) return side.code;
    engine::WorkRef work;
    const Result code = d.engine().submit(stream.id, fill_operation(side.pointer, value, count), &work);
    update_managed_access(d);
    // Documented: asynchronous to the host unless the memory is the host's.
    const bool host_memory =
        side.region && (side.region->kind == Kind::pinned || side.region->kind == Kind::registered);
    if (code != 0 || !synchronous || !host_memory) return code;
    const Result ended = d.engine().synchronize(work);
    update_managed_access(d);
    return ended;
}

}  // namespace

extern "C" {

Result cuMemcpy(Address destination, Address source, std::size_t bytes) {
    return call(CallId::cuMemcpy,
                [&](Driver& d) { return copy_line(d, nullptr, any_side(destination), any_side(source), bytes, true); });
}

Result cuMemcpyAsync(Address destination, Address source, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemcpyAsync,
                [&](Driver& d) { return copy_line(d, stream, any_side(destination), any_side(source), bytes, false); });
}

Result cuMemcpyHtoD_v2(Address destination, const void* source, std::size_t bytes) {
    return call(CallId::cuMemcpyHtoD_v2, [&](Driver& d) {
        return copy_line(d, nullptr, device_side(destination), host_side(source), bytes, true);
    });
}

Result cuMemcpyHtoDAsync_v2(Address destination, const void* source, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemcpyHtoDAsync_v2, [&](Driver& d) {
        return copy_line(d, stream, device_side(destination), host_side(source), bytes, false);
    });
}

Result cuMemcpyDtoH_v2(void* destination, Address source, std::size_t bytes) {
    return call(CallId::cuMemcpyDtoH_v2, [&](Driver& d) {
        return copy_line(d, nullptr, host_side(destination), device_side(source), bytes, true);
    });
}

Result cuMemcpyDtoHAsync_v2(void* destination, Address source, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemcpyDtoHAsync_v2, [&](Driver& d) {
        return copy_line(d, stream, host_side(destination), device_side(source), bytes, false);
    });
}

Result cuMemcpyDtoD_v2(Address destination, Address source, std::size_t bytes) {
    return call(CallId::cuMemcpyDtoD_v2, [&](Driver& d) {
        return copy_line(d, nullptr, device_side(destination), device_side(source), bytes, true);
    });
}

Result cuMemcpyDtoDAsync_v2(Address destination, Address source, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemcpyDtoDAsync_v2, [&](Driver& d) {
        return copy_line(d, stream, device_side(destination), device_side(source), bytes, false);
    });
}

Result cuMemcpyPeer(Address destination, Context*, Address source, Context*, std::size_t bytes) {
    return call(CallId::cuMemcpyPeer, [&](Driver& d) {
        return copy_line(d, nullptr, device_side(destination), device_side(source), bytes, true);
    });
}

Result cuMemcpyPeerAsync(Address destination, Context*, Address source, Context*, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemcpyPeerAsync, [&](Driver& d) {
        return copy_line(d, stream, device_side(destination), device_side(source), bytes, false);
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

Result cuMemsetD8_v2(Address destination, unsigned char value, std::size_t count) {
    return call(CallId::cuMemsetD8_v2, [&](Driver& d) { return fill(d, nullptr, destination, value, count, true); });
}

Result cuMemsetD16_v2(Address destination, unsigned short value, std::size_t count) {
    return call(CallId::cuMemsetD16_v2, [&](Driver& d) { return fill(d, nullptr, destination, value, count, true); });
}

Result cuMemsetD32_v2(Address destination, unsigned value, std::size_t count) {
    return call(CallId::cuMemsetD32_v2, [&](Driver& d) { return fill(d, nullptr, destination, value, count, true); });
}

Result cuMemsetD8Async(Address destination, unsigned char value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD8Async, [&](Driver& d) { return fill(d, stream, destination, value, count, false); });
}

Result cuMemsetD16Async(Address destination, unsigned short value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD16Async, [&](Driver& d) { return fill(d, stream, destination, value, count, false); });
}

Result cuMemsetD32Async(Address destination, unsigned value, std::size_t count, Stream* stream) {
    return call(CallId::cuMemsetD32Async, [&](Driver& d) { return fill(d, stream, destination, value, count, false); });
}
}

}  // namespace isthmus::sim
