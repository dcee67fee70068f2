// SPDX-License-Identifier: Apache-2.0
// Reserved addresses, their mappings, and access to them.
#include "virtual_memory.hpp"

#include "access.hpp"
#include "blocks.hpp"
#include "call.hpp"
#include "memory_file.hpp"
#include "pools.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

namespace isthmus::sim {
namespace {

constexpr int on_device = 1, on_host = 2, on_node = 3;
constexpr int no_access = 0, read_access = 1, write_access = 3;

bool within_reservation(const Driver& d, Address address, std::size_t bytes) {
    const auto& all = d.virtual_memory.reservations;
    const auto after = all.upper_bound(address);
    if (after == all.begin()) return false;
    const auto& [base, reserved] = *std::prev(after);
    const Address offset = address - base;
    return offset < reserved && bytes <= reserved - offset;
}

Result reserve(Driver& d, Address* address, std::size_t bytes, std::size_t alignment, Address hint,
               unsigned long long flags) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const bool power_of_two = (alignment & (alignment - 1)) == 0;
    if (!address || flags != 0 || bytes == 0 || bytes % page != 0 || hint % page != 0 || !power_of_two) {
        return result::invalid_value;
    }
    const std::size_t aligned = std::max(alignment, granularity_bytes);
    void* const wish = hint % aligned == 0 ? reinterpret_cast<void*>(hint) : nullptr;
    const std::lock_guard lock(d.mutex);
    void* const range = d.protection.reserve_aligned(bytes, aligned, wish);
    if (!range) return result::out_of_memory;
    *address = reinterpret_cast<Address>(range);
    d.virtual_memory.reservations[*address] = bytes;
    return result::ok;
}

Result free_reservation(Driver& d, Address address, std::size_t bytes) {
    const std::lock_guard lock(d.mutex);
    const auto found = d.virtual_memory.reservations.find(address);
    if (found == d.virtual_memory.reservations.end() || found->second != bytes) return result::invalid_value;
    bool gapless = false;
    if (!mappings_of(d, address, bytes, gapless).empty()) return result::invalid_value;  // observed
    d.virtual_memory.reservations.erase(found);
    d.virtual_memory.blocks.erase(address);
    d.protection.unmap(reinterpret_cast<void*>(address), bytes);
    return result::ok;
}

Result map(Driver& d, Address address, std::size_t bytes, std::size_t offset, MemoryHandle handle,
           unsigned long long flags) {
    if (flags != 0 || bytes == 0 || (address | offset) % granularity_bytes != 0) return result::invalid_value;
    std::unique_lock lock(d.mutex);
    Physical* const object = find_physical(d, handle);
    if (!object) return result::invalid_value;
    if (const Result lost = object->device >= 0 ? d.engine().device_code(object->device) : result::ok) return lost;
    if (bytes != object->bytes) return result::not_supported;  // observed, for sizes that are no whole granules too
    if (offset != 0) return result::invalid_value;             // documented
    constexpr int tile_pool = 1;
    // Documented: only as backing of sparse arrays; the code is assumed.
    if ((object->properties.usage & tile_pool) != 0) return result::invalid_value;
    if (!within_reservation(d, address, bytes) || d.regions.overlaps(address, bytes)) return result::invalid_value;
    if (object->team) {
        if (const Result code = wait_for_team(d, lock, handle, "cuMemMap")) return code;
        if (!within_reservation(d, address, bytes) || d.regions.overlaps(address, bytes)) return result::invalid_value;
    }
    void* const at = reinterpret_cast<void*>(address);
    if (!object->team) {
        if (!d.protection.map_file(at, bytes, object->file, memory_file_offset_bytes)) return result::out_of_memory;
        d.protection.open_file(at, bytes, std::max(object->device, 0), {});
    }
    Region region;
    region.kind = Kind::mapping;
    region.base = address;
    region.host = at;
    region.bytes = bytes;
    region.device = object->device;
    region.physical = object;
    ++object->uses;
    d.virtual_memory.mappings.push_back(d.regions.add(region));
    return result::ok;
}

bool whole_mappings(const std::vector<Region*>& mappings, Address address, std::size_t bytes) {
    return mappings.empty() ||
           (mappings.front()->base >= address && mappings.back()->base + mappings.back()->bytes <= address + bytes);
}

void add_users(const Region& mapping, std::set<int>& devices) {
    for (const auto& [device, flags] : mapping.device_access) devices.insert(device);
}

// Unmapping and changing access may wait for the devices that had access (observed), but they do not protect running
// work. The simulator changes first and waits then, so that it exposes both programs that rely on the wait and programs
// that cannot afford it.
Result wait_for_users(Driver& d, const std::set<int>& devices) {
    Result code = result::ok;
    for (const int device : devices) {
        const Result lost = d.engine().synchronize_device(device);
        if (code == result::ok) code = lost;
    }
    if (!devices.empty()) {
        update_managed_access(d);
        release_idle_reserves(d);
    }
    return code;
}

Result unmap(Driver& d, Address address, std::size_t bytes) {
    if (bytes == 0 || (address | bytes) % granularity_bytes != 0) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;  // it may wait (assumed)
    std::set<int> users;
    {
        const std::lock_guard lock(d.mutex);
        if (!within_reservation(d, address, bytes)) return result::invalid_value;
        bool gapless = false;
        const std::vector<Region*> mappings = mappings_of(d, address, bytes, gapless);
        if (!whole_mappings(mappings, address, bytes)) return result::invalid_value;  // observed
        for (const Region* mapping : mappings) {
            if (mapping->device < 0) continue;
            if (const Result lost = d.engine().device_code(mapping->device)) return lost;
        }
        for (Region* mapping : mappings) {
            add_users(*mapping, users);
            d.protection.unmap_file(mapping->host, mapping->bytes);
            Physical* const object = mapping->physical;
            auto& all = d.virtual_memory.mappings;
            all.erase(std::find(all.begin(), all.end(), mapping));
            d.regions.remove(mapping);
            --object->uses;
            forget_if_unused(d, object);
        }
    }
    return wait_for_users(d, users);  // unmapping a range that is not mapped: 0 (observed)
}

Result check_description(const Driver& d, const Region& mapping, const AccessDescription& one) {
    if (one.flags != no_access && one.flags != read_access && one.flags != write_access) return result::invalid_value;
    const Location where = one.location;
    if (where.type == on_device) {
        if (!d.valid(where.id)) return result::invalid_device;
        if (mapping.physical->team) {
            return mapping.physical->team->has(where.id) ? result::ok : result::invalid_device;
        }
        if (mapping.device < 0 || mapping.device == where.id || one.flags == no_access) return result::ok;
        const auto* way = d.machine.peer(where.id, mapping.device);
        return way && way->access ? result::ok : result::invalid_device;  // as for pools (assumed)
    }
    if (mapping.physical->team) return result::invalid_value;
    // Documented for nodes; assumed for the host as a whole.
    const int made_on = mapping.physical->properties.location.type;
    if (where.type == on_node) return made_on == on_node ? result::ok : result::invalid_value;
    return where.type == on_host && made_on != on_device ? result::ok : result::invalid_value;
}

// A page has one key: that of its own device if that has access, otherwise that of the first device with access.
int key_device(const Region& mapping) {
    if (mapping.device_access.empty()) return -1;
    return mapping.device_access.count(mapping.device) != 0 ? mapping.device : mapping.device_access.begin()->first;
}

void apply_access(Driver& d, const Region& mapping) {
    if (mapping.physical->team) return;  // a multicast object stays closed
    bool writable = mapping.host_access == write_access;
    for (const auto& [device, flags] : mapping.device_access) writable = writable || flags == write_access;
    const bool reads_device_memory = mapping.device >= 0 && !mapping.device_access.empty() &&
                                     d.machine.device(mapping.device).host_reads_device_memory;
    const bool host = mapping.host_access != no_access || reads_device_memory;
    d.protection.open_file(mapping.host, mapping.bytes, std::max(mapping.device, 0),
                           {host, key_device(mapping), writable});
}

Result set_access(Driver& d, Address address, std::size_t bytes, const AccessDescription* descriptions,
                  std::size_t count) {
    if (!descriptions || count == 0 || bytes == 0) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;  // it may wait (assumed)
    std::set<int> users;
    {
        const std::lock_guard lock(d.mutex);
        bool gapless = false;
        const std::vector<Region*> mappings = mappings_of(d, address, bytes, gapless);
        if (!gapless || !whole_mappings(mappings, address, bytes)) return result::invalid_value;
        for (const Region* mapping : mappings) {
            if (mapping->device >= 0) {
                if (const Result lost = d.engine().device_code(mapping->device)) return lost;
            }
            for (std::size_t i = 0; i < count; ++i) {
                if (const Result code = check_description(d, *mapping, descriptions[i])) return code;
            }
        }
        for (Region* mapping : mappings) {
            add_users(*mapping, users);
            for (std::size_t i = 0; i < count; ++i) {
                const auto& [where, flags] = descriptions[i];
                if (where.type != on_device) {
                    mapping->host_access = flags;
                } else if (flags == no_access) {
                    mapping->device_access.erase(where.id);
                } else {
                    mapping->device_access[where.id] = flags;
                }
            }
            apply_access(d, *mapping);
        }
    }
    return wait_for_users(d, users);
}

}  // namespace

std::vector<Region*> mappings_of(const Driver& d, Address address, std::size_t bytes, bool& gapless) {
    std::vector<Region*> touched;
    for (Region* mapping : d.virtual_memory.mappings) {
        if (mapping->base < address + bytes && address < mapping->base + mapping->bytes) touched.push_back(mapping);
    }
    std::sort(touched.begin(), touched.end(), [](const Region* a, const Region* b) { return a->base < b->base; });
    Address covered = address;
    for (const Region* mapping : touched) {
        if (mapping->base <= covered) covered = mapping->base + mapping->bytes;
    }
    gapless = covered >= address + bytes;
    return touched;
}

std::string check_mappings(const Driver& d, int device, Address address, std::size_t bytes, bool writes) {
    bool gapless = false;
    const std::vector<Region*> mappings = mappings_of(d, address, bytes, gapless);
    if (!gapless) return "part of it is not mapped";
    for (const Region* mapping : mappings) {
        if (mapping->physical->team) {
            return "it is a multicast object, whose addresses are for multimem instructions: ordinary loads and stores "
                   "are undefined there";
        }
        if (device < 0 && !mapping->device_access.empty()) continue;
        const auto found = mapping->device_access.find(device);
        const int access = found == mapping->device_access.end() ? no_access : found->second;
        if (access == no_access) return "it is mapped without access for this device (cuMemSetAccess)";
        if (writes && access != write_access) return "this device may only read it (cuMemSetAccess)";
    }
    return {};
}

void lend_block(Driver& d, Address address, std::size_t bytes) {
    const auto& all = d.virtual_memory.reservations;
    const auto after = all.upper_bound(address);
    if (after == all.begin()) return;
    std::map<Address, std::size_t>& blocks = d.virtual_memory.blocks[std::prev(after)->first];
    blocks.erase(blocks.lower_bound(address), blocks.lower_bound(address + std::max<std::size_t>(bytes, 1)));
    blocks[address] = bytes;
}

namespace {

// The blocks of the reservation that contains this address; nullptr: it has none.
const std::map<Address, std::size_t>* blocks_around(const Driver& d, Address address) {
    if (!within_reservation(d, address, 1)) return nullptr;
    const Address base = std::prev(d.virtual_memory.reservations.upper_bound(address))->first;
    const auto found = d.virtual_memory.blocks.find(base);
    return found == d.virtual_memory.blocks.end() ? nullptr : &found->second;
}

}  // namespace

std::optional<BlockInUse> block_in_use(const Driver& d, Address address) {
    const auto* const blocks = blocks_around(d, address);
    if (blocks == nullptr) return std::nullopt;
    const auto next = blocks->upper_bound(address);
    if (next == blocks->begin()) return std::nullopt;
    const auto& [first, in_use] = *std::prev(next);
    if (address - first >= in_use) return std::nullopt;
    return BlockInUse{first, in_use};
}

const char* check_blocks(const Driver& d, Address address, std::size_t bytes) {
    const auto* const blocks = blocks_around(d, address);
    if (blocks == nullptr) return nullptr;
    if (const std::optional<BlockInUse> block = block_in_use(d, address)) {
        return bytes <= block->first + block->bytes - address ? nullptr : "it leaves its allocation";
    }
    const auto next = blocks->upper_bound(address);
    const bool released = next != blocks->begin() && std::prev(next)->second == 0;
    return released ? "it was released, and its program keeps it for a later allocation" : "it leaves its allocation";
}

void add_mapped_devices(const Driver& d, int device, std::set<int>& devices) {
    for (const Region* mapping : d.virtual_memory.mappings) {
        if (mapping->device_access.count(device) != 0) devices.insert(key_device(*mapping));
    }
}

extern "C" {

Result cuMemAddressReserve(Address* address, std::size_t bytes, std::size_t alignment, Address hint,
                           unsigned long long flags) {
    return call(CallId::cuMemAddressReserve,
                [&](Driver& d) { return reserve(d, address, bytes, alignment, hint, flags); });
}

Result cuMemAddressFree(Address address, std::size_t bytes) {
    return call(CallId::cuMemAddressFree, [&](Driver& d) { return free_reservation(d, address, bytes); });
}

Result cuMemMap(Address address, std::size_t bytes, std::size_t offset, MemoryHandle handle, unsigned long long flags) {
    return call(CallId::cuMemMap, [&](Driver& d) { return map(d, address, bytes, offset, handle, flags); });
}

Result cuMemUnmap(Address address, std::size_t bytes) {
    return call(CallId::cuMemUnmap, [&](Driver& d) { return unmap(d, address, bytes); });
}

Result cuMemSetAccess(Address address, std::size_t bytes, const AccessDescription* descriptions, std::size_t count) {
    return call(CallId::cuMemSetAccess, [&](Driver& d) { return set_access(d, address, bytes, descriptions, count); });
}

Result cuMemGetAccess(unsigned long long* flags, const Location* location, Address address) {
    return call(CallId::cuMemGetAccess, [&](Driver& d) -> Result {
        if (!flags || !location) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.region->kind != Kind::mapping) return result::invalid_value;
        if (location->type == on_host || location->type == on_node) {
            *flags = static_cast<unsigned long long>(found.region->host_access);
            return result::ok;
        }
        if (location->type != on_device) return result::invalid_value;
        if (!d.valid(location->id)) return result::invalid_device;
        const auto access = found.region->device_access.find(location->id);
        *flags = access == found.region->device_access.end() ? 0 : static_cast<unsigned long long>(access->second);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
