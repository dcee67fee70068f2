// SPDX-License-Identifier: Apache-2.0
// Queries about devices, answered from the record.
#include "call.hpp"

#include <cstdio>
#include <cstring>

namespace isthmus::sim {
namespace {

// Body: Result(Driver&); the device is valid.
template <class Body>
Result call_for_device(CallId id, DeviceOrdinal device, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        if (!d.valid(device)) return result::invalid_device;
        return body(d);
    });
}

Result copy_text(char* out, int size, const std::string& text) {
    if (!out || size <= 0) return result::invalid_value;
    std::snprintf(out, static_cast<std::size_t>(size), "%s", text.c_str());
    return result::ok;
}

std::string bus_id(const Driver& d, DeviceOrdinal device) {
    char text[32];
    std::snprintf(text, sizeof(text), "%04x:%02x:%02x.0", d.fact(device, attribute::pci_domain),
                  d.fact(device, attribute::pci_bus), d.fact(device, attribute::pci_device));
    return text;
}

Result write_uuid(Uuid* uuid, const DeviceFacts& facts) {
    if (!uuid) return result::invalid_value;
    std::memcpy(uuid->bytes, facts.uuid.bytes.data(), sizeof(uuid->bytes));
    return result::ok;
}

Result peer_attribute(const Driver& d, int* value, int id, DeviceOrdinal source, DeviceOrdinal destination) {
    if (!value) return result::invalid_value;
    if (!d.valid(source) || !d.valid(destination) || source == destination) return result::invalid_device;
    const auto* peer = d.machine.peer(source, destination);
    const bool access = peer && peer->access;
    switch (id) {
        case 1: *value = peer ? peer->performance_rank : 0; return result::ok;
        case 2: *value = access; return result::ok;
        case 3: *value = peer && peer->native_atomics; return result::ok;
        case 4: *value = access; return result::ok;
        case 5: *value = 0; return result::ok;
        default: return result::invalid_value;
    }
}

}  // namespace

extern "C" {

Result cuDeviceGetCount(int* count) {
    return call(CallId::cuDeviceGetCount, [&](Driver& d) -> Result {
        if (!count) return result::invalid_value;
        *count = static_cast<int>(d.devices.size());
        return result::ok;
    });
}

Result cuDeviceGet(DeviceOrdinal* device, int ordinal) {
    return call_for_device(CallId::cuDeviceGet, ordinal, [&](Driver&) -> Result {
        if (!device) return result::invalid_value;
        *device = ordinal;
        return result::ok;
    });
}

Result cuDeviceGetName(char* name, int size, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetName, device,
                           [&](Driver& d) { return copy_text(name, size, d.machine.device(device).facts.name); });
}

Result cuDeviceGetUuid(Uuid* uuid, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetUuid, device,
                           [&](Driver& d) { return write_uuid(uuid, d.machine.device(device).facts); });
}

Result cuDeviceGetUuid_v2(Uuid* uuid, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetUuid_v2, device,
                           [&](Driver& d) { return write_uuid(uuid, d.machine.device(device).facts); });
}

Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceTotalMem_v2, device, [&](Driver& d) -> Result {
        if (!bytes) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *bytes = d.devices[static_cast<std::size_t>(device)].total_bytes;
        return result::ok;
    });
}

Result cuDeviceGetAttribute(int* value, int id, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetAttribute, device, [&](Driver& d) -> Result {
        if (!value) return result::invalid_value;
        for (const AttributeFact& fact : d.machine.device(device).facts.attributes) {
            if (fact.id != id) continue;
            if (fact.refused_code != 0) return fact.refused_code;
            *value = fact.value;
            return result::ok;
        }
        return result::invalid_value;  // this driver does not know the attribute
    });
}

Result cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const int* operations, unsigned count,
                                         DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetHostAtomicCapabilities, device, [&](Driver& d) -> Result {
        const auto& atomics = d.machine.device(device).facts.host_atomics;
        if (!atomics) return result::not_supported;
        if (!capabilities || !operations || count == 0) return result::invalid_value;
        for (unsigned i = 0; i < count; ++i) {
            if (operations[i] < 0 || operations[i] >= atomic_operation_count) return result::invalid_value;
            capabilities[i] = (*atomics)[static_cast<std::size_t>(operations[i])];
        }
        return result::ok;
    });
}

Result cuDeviceGetP2PAttribute(int* value, int id, DeviceOrdinal source, DeviceOrdinal destination) {
    return call(CallId::cuDeviceGetP2PAttribute,
                [&](Driver& d) { return peer_attribute(d, value, id, source, destination); });
}

Result cuDeviceCanAccessPeer(int* can, DeviceOrdinal device, DeviceOrdinal peer) {
    return call_for_device(CallId::cuDeviceCanAccessPeer, device, [&](Driver& d) -> Result {
        if (!can) return result::invalid_value;
        if (!d.valid(peer)) return result::invalid_device;
        const auto* way = d.machine.peer(device, peer);
        *can = way && way->access;
        return result::ok;
    });
}

Result cuDeviceGetPCIBusId(char* text, int size, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceGetPCIBusId, device,
                           [&](Driver& d) { return copy_text(text, size, bus_id(d, device)); });
}

Result cuDeviceGetByPCIBusId(DeviceOrdinal* device, const char* text) {
    return call(CallId::cuDeviceGetByPCIBusId, [&](Driver& d) -> Result {
        if (!device || !text) return result::invalid_value;
        for (int candidate = 0; d.valid(candidate); ++candidate) {
            if (bus_id(d, candidate) != text) continue;
            *device = candidate;
            return result::ok;
        }
        return result::invalid_device;
    });
}

Result cuDeviceComputeCapability(int* major, int* minor, DeviceOrdinal device) {
    return call_for_device(CallId::cuDeviceComputeCapability, device, [&](Driver& d) -> Result {
        if (!major || !minor) return result::invalid_value;
        *major = d.fact(device, attribute::cc_major);
        *minor = d.fact(device, attribute::cc_minor);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
