// SPDX-License-Identifier: Apache-2.0
// Copies between memory and arrays of one dimension, by offsets in bytes.
#include "arrays.hpp"
#include "call.hpp"

namespace isthmus::sim {
namespace {

// One end of such a copy: an array, or an address.
struct LineEnd {
    Array* array = nullptr;
    std::size_t offset_bytes = 0;
    Address address = 0;
    bool device_address = false;
    bool in_array = false;
};

LineEnd in_array(Array* array, std::size_t offset_bytes) {
    return {array, offset_bytes, 0, false, true};
}
LineEnd on_device(Address address) {
    return {nullptr, 0, address, true, false};
}
LineEnd on_host(const void* pointer) {
    return {nullptr, 0, reinterpret_cast<Address>(pointer), false, false};
}

// Requires the driver's mutex.
Result lay_out(const Driver& d, const Context* context, const LineEnd& end, const Box& box, Side& side,
               Layout& layout) {
    if (!end.in_array) {
        side.address = end.address;
        side.device_address = end.device_address;
        layout = {box.width_bytes, box.width_bytes};
        return end.address != 0 || box.empty() ? result::ok : result::invalid_value;
    }
    // Observed (580, H200): of arrays with rows and layers the first row is copied.
    return place_in_array(d, context, {end.array, end.offset_bytes, 0, 0}, box, side, layout);
}

Result copy_line(CallId id, Stream* handle, const LineEnd& to, const LineEnd& from, std::size_t bytes, bool wait) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget stream;
        if (const Result code = resolve_for_work(d, handle, stream)) return code;
        CopyRequest request;
        request.box = {bytes, 1, 1};
        request.wait = wait;
        {
            const std::lock_guard lock(d.mutex);
            const Context* const context = stream.context;
            if (const Result code = lay_out(d, context, to, request.box, request.destination, request.to)) return code;
            if (const Result code = lay_out(d, context, from, request.box, request.source, request.from)) return code;
        }
        return copy(d, handle, request);
    });
}

}  // namespace

extern "C" {

Result cuMemcpyAtoH_v2(void* to, Array* from, std::size_t offset_bytes, std::size_t bytes) {
    return copy_line(CallId::cuMemcpyAtoH_v2, nullptr, on_host(to), in_array(from, offset_bytes), bytes, true);
}

Result cuMemcpyHtoA_v2(Array* to, std::size_t offset_bytes, const void* from, std::size_t bytes) {
    return copy_line(CallId::cuMemcpyHtoA_v2, nullptr, in_array(to, offset_bytes), on_host(from), bytes, true);
}

Result cuMemcpyAtoD_v2(Address to, Array* from, std::size_t offset_bytes, std::size_t bytes) {
    return copy_line(CallId::cuMemcpyAtoD_v2, nullptr, on_device(to), in_array(from, offset_bytes), bytes, true);
}

Result cuMemcpyDtoA_v2(Array* to, std::size_t offset_bytes, Address from, std::size_t bytes) {
    return copy_line(CallId::cuMemcpyDtoA_v2, nullptr, in_array(to, offset_bytes), on_device(from), bytes, true);
}

Result cuMemcpyAtoA_v2(Array* to, std::size_t to_offset_bytes, Array* from, std::size_t from_offset_bytes,
                       std::size_t bytes) {
    return copy_line(CallId::cuMemcpyAtoA_v2, nullptr, in_array(to, to_offset_bytes), in_array(from, from_offset_bytes),
                     bytes, true);
}

Result cuMemcpyAtoHAsync_v2(void* to, Array* from, std::size_t offset_bytes, std::size_t bytes, Stream* stream) {
    return copy_line(CallId::cuMemcpyAtoHAsync_v2, stream, on_host(to), in_array(from, offset_bytes), bytes, false);
}

Result cuMemcpyHtoAAsync_v2(Array* to, std::size_t offset_bytes, const void* from, std::size_t bytes, Stream* stream) {
    return copy_line(CallId::cuMemcpyHtoAAsync_v2, stream, in_array(to, offset_bytes), on_host(from), bytes, false);
}
}

}  // namespace isthmus::sim
