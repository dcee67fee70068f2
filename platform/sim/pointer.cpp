// SPDX-License-Identifier: Apache-2.0
// Facts about an address (cuPointerGetAttribute).
#include "access.hpp"
#include "call.hpp"

#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int gpu_direct_rdma = 116;

template <class T>
Result write(void* out, T value) {
    std::memcpy(out, &value, sizeof(value));
    return result::ok;
}

bool on_device(const Region& region) {
    return region.device >= 0 && (region.kind == Kind::device || region.kind == Kind::pool ||
                                  region.kind == Kind::graph || region.kind == Kind::mapping);
}

bool of_host(const Region& region) {
    const bool managed = region.kind == Kind::managed;
    return region.kind == Kind::pinned || region.kind == Kind::registered || (region.device < 0 && !managed);
}

// The access of the current context's device to the memory; without a context, that of the owner (assumed).
unsigned access_flags(const Region& region, const Context* current) {
    const GpuAgent agent = {current ? current->device : region.device, current, engine::StreamId::none};
    if (check_reach(region, agent, true).empty()) {
        return region.kind == Kind::registered && (region.flags & register_read_only) != 0 ? 1 : 3;
    }
    return check_reach(region, agent, false).empty() ? 1 : 0;
}

std::uint64_t handle_types(const Region& region) {
    return region.physical ? static_cast<std::uint64_t>(region.physical->properties.handle_types) : 0;
}

bool direct_rdma(const Driver& d, const Region& region) {
    if (region.physical) return region.physical->properties.gpu_direct_rdma != 0;
    return region.kind == Kind::device && d.fact(region.device, gpu_direct_rdma) != 0;
}

// Numbers of CUpointer_attribute.
Result answer(Driver& d, const Found& found, int id, Address address, const Context* current, void* out) {
    const Region& region = *found.region;
    constexpr unsigned type_host = 1, type_device = 2;
    const bool plain = region.kind == Kind::device && !region.foreign;
    switch (id) {
        case 1: return write<Context*>(out, region.context);
        case 2: return write<unsigned>(out, of_host(region) ? type_host : type_device);
        case 3: return write<Address>(out, region.base + found.offset_bytes);
        case 4: return on_device(region) ? result::invalid_value : write<void*>(out, found.pointer());
        case 6: return write<unsigned char>(out, region.sync_memops);
        case 7:
        case 20: return write<unsigned long long>(out, region.id);
        case 8: return write<unsigned char>(out, region.kind == Kind::managed);
        case 9: return write<int>(out, region.device);  // -1 for host pools, as CU_DEVICE_CPU (assumed)
        case 10: return write<unsigned char>(out, plain && d.machine.device(region.device).legacy_ipc_usable);
        case 11:
        case 19: return write<Address>(out, found.by_host_name ? address - found.offset_bytes : region.base);
        case 12:
        case 18: return write<std::size_t>(out, region.bytes);
        case 13: return write<unsigned char>(out, 1);
        case 14: return write<std::uint64_t>(out, handle_types(region));
        case 15: return write<unsigned char>(out, direct_rdma(d, region));
        case 16: return write<unsigned>(out, access_flags(region, current));
        // Memory of a graph belongs to no pool.
        case 17: return write<Pool*>(out, region.of_graph ? nullptr : region.pool);
        case 21: return write<unsigned char>(out, 0);
        default: return result::not_supported;  // tokens for third-party kernel drivers
    }
}

Result set_attribute(Region& region, const void* value, int id) {
    constexpr int sync_memops = 6;
    unsigned wanted = 0;
    if (!value || id != sync_memops) return result::invalid_value;
    std::memcpy(&wanted, value, sizeof(wanted));
    if (wanted > 1 || of_host(region)) return result::invalid_value;  // for host memory: assumed
    region.sync_memops = wanted != 0;
    return result::ok;
}

// Documented: for reserved addresses without a mapping, this attribute alone is answered.
Result answer_reserved(const Driver& d, int id, Address address, void* out) {
    const auto& all = d.virtual_memory.reservations;
    const auto after = all.upper_bound(address);
    if (after == all.begin()) return result::invalid_value;
    const auto& [base, bytes] = *std::prev(after);
    if (address - base >= bytes) return result::invalid_value;
    switch (id) {
        case 11: return write<Address>(out, base);
        case 12: return write<std::size_t>(out, bytes);
        case 13: return write<unsigned char>(out, 0);
        default: return result::invalid_value;
    }
}

std::size_t size_of(int id) {
    switch (id) {
        case 6:
        case 8:
        case 10:
        case 13:
        case 15:
        case 21: return 1;
        case 2:
        case 9:
        case 16: return 4;
        default: return 8;
    }
}

}  // namespace

extern "C" {

Result cuPointerGetAttribute(void* data, int id, Address address) {
    return call(CallId::cuPointerGetAttribute, [&](Driver& d) -> Result {
        if (!data || id < 1 || id > 21) return result::invalid_value;
        const Context* const current = current_context(d);
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found) return answer_reserved(d, id, address, data);
        if (found.region->freed) return result::invalid_value;
        return answer(d, found, id, address, current, data);
    });
}

// Unlike the singular call, it returns zeros and no error for an unknown address.
Result cuPointerGetAttributes(unsigned count, int* ids, void** data, Address address) {
    return call(CallId::cuPointerGetAttributes, [&](Driver& d) -> Result {
        if (!ids || !data || count == 0) return result::invalid_value;
        const Context* const current = current_context(d);
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        const bool known = found && !found.region->freed;
        for (unsigned i = 0; i < count; ++i) {
            if (ids[i] < 1 || ids[i] > 21) return result::invalid_value;
            std::memset(data[i], 0, size_of(ids[i]));
            if (!known && ids[i] == 9) write<int>(data[i], -2);  // documented for memory without a device
            if (known) static_cast<void>(answer(d, found, ids[i], address, current, data[i]));
        }
        return result::ok;
    });
}

Result cuPointerSetAttribute(const void* value, int id, Address address) {
    return call(CallId::cuPointerSetAttribute, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.region->freed) return result::invalid_value;
        return set_attribute(*found.region, value, id);
    });
}
}

}  // namespace isthmus::sim
