// SPDX-License-Identifier: Apache-2.0
// Copies of contiguous bytes, under every name that the driver has for them.
#include "call.hpp"
#include "copies.hpp"

namespace isthmus::sim {
namespace {

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
    return copy(d, stream, {destination, source, {bytes, 1, 1}, {bytes, bytes}, {bytes, bytes}, wait});
}

// Copies between devices, with or without peer access: the driver stages where it cannot copy directly.
Result copy_between(Driver& d, Stream* stream, Address destination, const Context* to, Address source,
                    const Context* from, std::size_t bytes, bool wait) {
    if (const Result code = check_peers(d, to, from)) return code;
    CopyRequest request = {{destination, true}, {source, true}, {bytes, 1, 1}, {bytes, bytes}, {bytes, bytes}, wait};
    request.between_devices = true;
    return copy(d, stream, request);
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

Result cuMemcpyPeer(Address destination, Context* to, Address source, Context* from, std::size_t bytes) {
    return call(CallId::cuMemcpyPeer,
                [&](Driver& d) { return copy_between(d, nullptr, destination, to, source, from, bytes, true); });
}

Result cuMemcpyPeerAsync(Address destination, Context* to, Address source, Context* from, std::size_t bytes,
                         Stream* stream) {
    return call(CallId::cuMemcpyPeerAsync,
                [&](Driver& d) { return copy_between(d, stream, destination, to, source, from, bytes, false); });
}
}

}  // namespace isthmus::sim
