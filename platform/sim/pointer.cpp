// What the driver says about an address (cuPointerGetAttribute).
#include "call.hpp"

#include <cstring>

namespace isthmus::sim {
namespace {

template <class T>
Result write(void* out, T value) {
    std::memcpy(out, &value, sizeof(value));
    return result::ok;
}

bool on_device(Kind kind) {
    return kind == Kind::device || kind == Kind::pool || kind == Kind::graph;
}

// Numbers of CUpointer_attribute.
Result answer(const Found& found, int id, Address address, void* out) {
    const Region& region = *found.region;
    constexpr int type_host = 1, type_device = 2;
    // Memory of the host's pools has no device (assumed: CU_DEVICE_CPU).
    const bool host_memory = region.kind == Kind::pinned || region.kind == Kind::registered || region.device < 0;
    switch (id) {
        case 1: return write<Context*>(out, region.context);
        case 2: return write<unsigned>(out, host_memory ? type_host : type_device);
        case 3: return write<Address>(out, region.base + found.offset_bytes);
        case 4:
            if (on_device(region.kind) && region.device >= 0) return result::invalid_value;
            return write<void*>(out, found.pointer());
        case 6: return write<unsigned char>(out, 0);
        case 7: return write<unsigned long long>(out, region.id);
        case 8: return write<unsigned char>(out, region.kind == Kind::managed);
        case 9: return write<int>(out, region.device);
        case 10: return write<unsigned char>(out, region.kind == Kind::device);
        case 11: return write<Address>(out, found.by_host_name ? address - found.offset_bytes : region.base);
        case 12: return write<std::size_t>(out, region.bytes);
        case 13: return write<unsigned char>(out, 1);
        case 14: return write<std::uint64_t>(out, 0);
        case 15: return write<unsigned char>(out, region.kind == Kind::device);
        case 16: return write<unsigned>(out, (region.flags & 8) != 0 && region.kind == Kind::registered ? 1u : 3u);
        case 17: return write<Pool*>(out, region.of_graph ? nullptr : region.pool);  // the graph's, not the pool's
        default: return result::not_supported;
    }
}

std::size_t size_of(int id) {
    switch (id) {
        case 6:
        case 8:
        case 10:
        case 13:
        case 15: return 1;
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
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.region->freed) return result::invalid_value;
        return answer(found, id, address, data);
    });
}

// Unlike the single question, an address that the driver does not know gets zeros and no error.
Result cuPointerGetAttributes(unsigned count, int* ids, void** data, Address address) {
    return call(CallId::cuPointerGetAttributes, [&](Driver& d) -> Result {
        if (!ids || !data || count == 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        const bool known = found && !found.region->freed;
        for (unsigned i = 0; i < count; ++i) {
            if (ids[i] < 1 || ids[i] > 21) return result::invalid_value;
            std::memset(data[i], 0, size_of(ids[i]));
            if (!known && ids[i] == 9) write<int>(data[i], -2);  // documented for memory without a device
            if (known) static_cast<void>(answer(found, ids[i], address, data[i]));
        }
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
