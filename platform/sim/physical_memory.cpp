// SPDX-License-Identifier: Apache-2.0
// Physical memory: kinds that the machine supports, creation, handles and release.
#include "allocate.hpp"
#include "call.hpp"
#include "memory_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int pinned_type = 1, managed_type = 2;
constexpr int on_device = 1, on_host = 2, on_node = 3;
constexpr int posix_file = 1, fabric = 8;
constexpr int tile_pool = 1, hardware_decompress = 2;
constexpr std::size_t absurd_bytes = std::size_t{1} << 45;

bool any_device_says(const Driver& d, int attribute) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.fact(device, attribute) != 0) return true;
    }
    return false;
}

bool is_node(const Driver& d, int id) {
    const auto& nodes = d.machine.record().facts.numa_nodes;
    return std::any_of(nodes.begin(), nodes.end(), [id](const NumaNode& node) { return node.id == id; }) ||
           (nodes.empty() && id == 0);  // documented: 0 on a system without NUMA
}

// The node of host memory: the first with CPUs.
int node_of_host(const Driver& d) {
    const auto& nodes = d.machine.record().facts.numa_nodes;
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [](const NumaNode& node) { return node.cpu_count > 0; });
    return found != nodes.end() ? found->id : 0;
}

// Whether granted memory is the host's: pinned, as other pinned memory. A node without CPUs is memory of a GPU.
bool is_of_host(const Driver& d, Location where) {
    const auto& nodes = d.machine.record().facts.numa_nodes;
    return where.type != on_device && std::none_of(nodes.begin(), nodes.end(), [&](const NumaNode& node) {
               return node.id == where.id && node.cpu_count == 0;
           });
}

Result check_place(const Driver& d, Location where) {
    switch (where.type) {
        case on_device:
            if (!d.valid(where.id)) return result::invalid_device;
            return d.fact(where.id, attribute::virtual_memory) != 0 ? result::ok : result::not_supported;
        case on_host: return any_device_says(d, attribute::host_virtual_memory) ? result::ok : result::not_supported;
        case on_node:
            if (!any_device_says(d, attribute::node_virtual_memory)) return result::not_supported;
            return is_node(d, where.id) ? result::ok : result::invalid_value;
        default: return result::invalid_value;  // documented: the calling thread's node
    }
}

// Memory of a host node supports the handle types that any device supports.
Result check_handle_types(const Driver& d, Location where, int types) {
    if (types == 0) return result::ok;
    if (where.type == on_host) return result::invalid_value;  // documented
    const auto says = [&](int attribute) {
        return where.type == on_device ? d.fact(where.id, attribute) != 0 : any_device_says(d, attribute);
    };
    if ((types & ~(posix_file | fabric)) != 0) return result::not_supported;
    if ((types & posix_file) != 0 && !says(attribute::posix_handles)) return result::not_supported;
    if ((types & fabric) == 0) return result::ok;
    if (!says(attribute::fabric_handles)) return result::not_supported;
    // Observed: although the attribute is 1, creation is not permitted without an IMEX channel.
    const int device = where.type == on_device ? where.id : 0;
    return d.machine.device(device).fabric_usable ? result::ok : result::not_permitted;
}

Result create(Driver& d, MemoryHandle* handle, std::size_t bytes, const AllocationProperties* wanted,
              unsigned long long flags) {
    if (!handle || flags != 0) return result::invalid_value;
    AllocationProperties granted = {};
    if (const Result code = check_properties(d, wanted, granted)) return code;
    if (bytes == 0 || bytes % granularity_bytes != 0) return result::invalid_value;
    const int device = granted.location.type == on_device ? granted.location.id : -1;
    MemoryFileHeader header;
    header.bytes = bytes;
    header.properties = granted;
    if (device >= 0)
        std::memcpy(&header.device, d.machine.device(device).facts.uuid.bytes.data(), sizeof(header.device));
    const std::lock_guard lock(d.mutex);
    if (bytes >= absurd_bytes || (device >= 0 && !has_room(d, device, bytes))) return result::out_of_memory;
    const bool of_host = is_of_host(d, granted.location);
    if (of_host && !host_has_room(d, bytes)) return result::out_of_memory;
    const int file = create_memory_file(header);
    if (file < 0) return result::out_of_memory;
    Physical* const made = add_physical(d, granted, bytes, device, file);
    made->counted = device >= 0 || of_host;
    if (device >= 0) d.devices[static_cast<std::size_t>(device)].used_bytes += bytes;
    if (of_host) d.pinned_bytes += bytes;
    *handle = handle_of(made);
    return result::ok;
}

// Body: Result(Driver&, Physical&), called with the driver's mutex held.
template <class Body>
Result call_for_object(CallId id, MemoryHandle handle, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        int device = -1;
        {
            const std::lock_guard lock(d.mutex);
            const Physical* const object = find_physical(d, handle);
            if (!object) return result::invalid_value;  // the documentation calls it undefined
            device = object->device;
        }
        if (const Result lost = lost_code(d, device)) return lost;
        const std::lock_guard lock(d.mutex);
        Physical* const object = find_physical(d, handle);
        return object ? body(d, *object) : result::invalid_value;
    });
}

}  // namespace

MemoryHandle handle_of(const Physical* physical) noexcept {
    return reinterpret_cast<MemoryHandle>(physical);
}

Physical* find_physical(Driver& d, MemoryHandle handle) {
    auto* const object = reinterpret_cast<Physical*>(handle);
    return d.virtual_memory.objects.alive(object) && object->references > 0 ? object : nullptr;
}

Physical* add_physical(Driver& d, const AllocationProperties& properties, std::size_t bytes, int device, int file) {
    Physical* const made = d.virtual_memory.objects.create();
    made->properties = properties;
    made->bytes = bytes;
    made->device = device;
    made->file = file;
    made->references = 1;
    return made;
}

void forget_if_unused(Driver& d, Physical* physical) {
    if (physical->references > 0 || physical->uses > 0) return;
    if (physical->counted) {
        const bool of_host = physical->device < 0;
        std::uint64_t& used =
            of_host ? d.pinned_bytes : d.devices[static_cast<std::size_t>(physical->device)].used_bytes;
        used -= physical->bytes;
    }
    if (physical->file >= 0) ::close(physical->file);
    const std::shared_ptr<Team> team = physical->team;
    d.virtual_memory.objects.destroy(physical);
    if (!team) return;
    for (const Team::Bound& bound : team->bound) {
        team->leave(bound);
        --bound.memory->uses;
        forget_if_unused(d, bound.memory);
    }
}

Result lost_code(Driver& d, int device) {
    if (device < 0) {
        const Context* const current = current_context(d);
        if (!current) return result::ok;
        device = current->device;
    }
    return d.engine().device_code(device);
}

Result check_properties(Driver& d, const AllocationProperties* wanted, AllocationProperties& granted) {
    if (!wanted) return result::invalid_value;
    if (wanted->type == managed_type) {
        say("cuMemCreate: managed memory behind handles is not modelled");
        return result::not_supported;
    }
    if (wanted->type != pinned_type) return result::invalid_value;
    if (const Result code = check_place(d, wanted->location)) return code;
    if (const Result code = check_handle_types(d, wanted->location, wanted->handle_types)) return code;
    if (wanted->compression > 1) return result::invalid_value;
    const bool of_device = wanted->location.type == on_device;
    const int device = of_device ? wanted->location.id : 0;
    // Refused without the attribute (assumed; the documentation only requires a query first).
    if (wanted->gpu_direct_rdma != 0 && d.fact(device, attribute::virtual_memory_rdma) == 0) {
        return result::not_supported;
    }
    // The same holds for the usages (assumed, too).
    if ((wanted->usage & ~(tile_pool | hardware_decompress)) != 0) return result::invalid_value;
    const bool pools = of_device && d.fact(device, attribute::sparse_arrays) != 0;
    const bool decompresses = of_device && d.fact(device, attribute::decompression) != 0;
    if ((wanted->usage & tile_pool) != 0 && !pools) return result::not_supported;
    if ((wanted->usage & hardware_decompress) != 0 && !decompresses) return result::not_supported;
    granted = *wanted;
    granted.win32_metadata = nullptr;
    // Documented: compression is a request; the handle's properties have the result.
    if (!of_device || d.fact(device, attribute::compression) == 0) granted.compression = 0;
    return result::ok;
}

extern "C" {

Result cuMemCreate(MemoryHandle* handle, std::size_t bytes, const AllocationProperties* properties,
                   unsigned long long flags) {
    return call(CallId::cuMemCreate, [&](Driver& d) { return create(d, handle, bytes, properties, flags); });
}

Result cuMemRelease(MemoryHandle handle) {
    return call_for_object(CallId::cuMemRelease, handle, [](Driver& d, Physical& object) -> Result {
        --object.references;
        forget_if_unused(d, &object);
        return result::ok;
    });
}

Result cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties* properties, int option) {
    return call(CallId::cuMemGetAllocationGranularity, [&](Driver& d) -> Result {
        constexpr int minimum = 0, recommended = 1;
        if (!bytes || !properties || (option != minimum && option != recommended)) return result::invalid_value;
        if (properties->type != pinned_type) return result::invalid_value;
        if (const Result code = check_place(d, properties->location)) return code;
        *bytes = granularity_bytes;
        return result::ok;
    });
}

Result cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties, MemoryHandle handle) {
    return call_for_object(CallId::cuMemGetAllocationPropertiesFromHandle, handle,
                           [&](Driver& d, const Physical& object) -> Result {
                               if (!properties || object.team) return result::invalid_value;
                               *properties = object.properties;
                               // Observed (580.159.04, H200): host memory reports the location of a node.
                               Location& where = properties->location;
                               if (where.type == on_host) where = {on_node, node_of_host(d)};
                               return result::ok;
                           });
}

Result cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
    return call(CallId::cuMemRetainAllocationHandle, [&](Driver& d) -> Result {
        if (!handle) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(reinterpret_cast<Address>(address));
        if (!found || !found.region->physical) return result::invalid_value;
        ++found.region->physical->references;
        *handle = handle_of(found.region->physical);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
