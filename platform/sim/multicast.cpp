// SPDX-License-Identifier: Apache-2.0
// Multicast objects: a team of devices is created, devices join, then memory of each is bound. Addresses where the
// object is mapped stay closed: kernels reach the memory of every device by multimem instructions, which ask where it
// lies.
#include "call.hpp"
#include "memory_file.hpp"
#include "named_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace isthmus::sim {
namespace {

constexpr int posix_file = 1, fabric = 8;

bool any_device_takes_part(const Driver& d) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.fact(device, attribute::multicast) != 0) return true;
    }
    return false;
}

Result check_properties(const Driver& d, const MulticastProperties* wanted) {
    if (!any_device_takes_part(d)) return result::not_supported;
    if (!wanted || wanted->devices == 0 || wanted->flags != 0) return result::invalid_value;
    if ((wanted->handle_types & ~static_cast<unsigned long long>(posix_file | fabric)) != 0) {
        return result::not_supported;
    }
    if ((wanted->handle_types & fabric) != 0 && !d.machine.device(0).fabric_usable) return result::not_permitted;
    return result::ok;
}

Physical* find_team(Driver& d, MemoryHandle handle) {
    Physical* const object = find_physical(d, handle);
    return object && object->team ? object : nullptr;
}

Result create(Driver& d, MemoryHandle* handle, const MulticastProperties* wanted) {
    if (!handle) return result::invalid_value;
    if (const Result code = check_properties(d, wanted)) return code;
    if (wanted->bytes == 0 || wanted->bytes % granularity_bytes != 0) return result::invalid_value;
    if (const Result lost = lost_code(d, -1)) return lost;
    MemoryFileHeader header;
    header.bytes = wanted->bytes;
    header.properties.handle_types = static_cast<int>(wanted->handle_types);
    header.team_size = wanted->devices;
    const bool exportable = wanted->handle_types != 0;
    const int file = exportable ? create_memory_file(header) : -1;
    if (exportable && file < 0) return result::out_of_memory;
    const std::shared_ptr<Team> team = make_team(wanted->devices, file);
    if (!team) {
        if (file >= 0) ::close(file);
        return result::out_of_memory;
    }
    const std::lock_guard lock(d.mutex);
    Physical* const made = add_physical(d, header.properties, wanted->bytes, -1, file);
    made->team = team;
    *handle = handle_of(made);
    return result::ok;
}

Result add_device(Driver& d, MemoryHandle handle, DeviceOrdinal device) {
    if (!d.valid(device)) return result::invalid_device;
    if (d.fact(device, attribute::multicast) == 0) return result::not_supported;
    if (const Result lost = d.engine().device_code(device)) return lost;
    const std::lock_guard lock(d.mutex);
    Physical* const object = find_team(d, handle);
    if (!object || !object->team->add(device)) return result::invalid_value;  // a device that was added before: assumed
    d.virtual_memory.teams_changed.notify_all();
    return result::ok;
}

struct Bind {
    std::size_t offset_bytes;
    std::size_t memory_offset_bytes;
    std::size_t bytes;
};

bool fits(const Bind& bind, const Physical& team, const Physical& memory) {
    return bind.bytes <= team.bytes && bind.offset_bytes <= team.bytes - bind.bytes && bind.bytes <= memory.bytes &&
           bind.memory_offset_bytes <= memory.bytes - bind.bytes;
}

// Releases the driver's mutex while the team grows. The caller's use keeps `memory` alive.
Result bind_memory(Driver& d, std::unique_lock<std::mutex>& lock, MemoryHandle handle, Physical& memory,
                   const Bind& bind, const char* call) {
    Physical* object = find_team(d, handle);
    if (!object || memory.team || memory.device < 0) return result::invalid_value;
    const std::size_t offsets = bind.offset_bytes | bind.memory_offset_bytes | bind.bytes;
    if (bind.bytes == 0 || offsets % granularity_bytes != 0 || !fits(bind, *object, memory)) {
        return result::invalid_value;
    }
    // Documented: exportable objects bind exportable memory only.
    if (object->properties.handle_types != 0 && memory.properties.handle_types == 0) return result::invalid_value;
    if (const Result code = wait_for_team(d, lock, handle, call)) return code;
    object = find_team(d, handle);
    if (!object->team->has(memory.device)) return result::invalid_device;
    auto& bound = object->team->bound;
    const bool taken = std::any_of(bound.begin(), bound.end(), [&](const Team::Bound& other) {
        return other.memory->device == memory.device && other.offset_bytes < bind.offset_bytes + bind.bytes &&
               bind.offset_bytes < other.offset_bytes + other.bytes;
    });
    if (taken) return result::invalid_value;  // assumed
    TeamBoard::Entry* const entry =
        object->team->enter(memory, bind.offset_bytes, bind.memory_offset_bytes, bind.bytes);
    if (!entry) return result::out_of_memory;  // documented: the resources of a bind are limited
    bound.push_back({bind.offset_bytes, bind.bytes, &memory, entry});
    ++memory.uses;
    return result::ok;
}

// Keeps the memory alive while the call may wait.
Result bind_held(Driver& d, std::unique_lock<std::mutex>& lock, MemoryHandle handle, Physical& memory, const Bind& bind,
                 const char* call) {
    ++memory.uses;
    const Result code = bind_memory(d, lock, handle, memory, bind, call);
    --memory.uses;
    forget_if_unused(d, &memory);
    return code;
}

Result unbind(Driver& d, MemoryHandle handle, DeviceOrdinal device, std::size_t offset, std::size_t bytes) {
    if (!d.valid(device)) return result::invalid_device;
    const std::lock_guard lock(d.mutex);
    Physical* const object = find_team(d, handle);
    if (!object) return result::invalid_value;
    auto& bound = object->team->bound;
    const auto found = std::find_if(bound.begin(), bound.end(), [&](const Team::Bound& one) {
        return one.memory->device == device && one.offset_bytes == offset && one.bytes == bytes;
    });
    if (found == bound.end()) return result::invalid_value;  // the documentation calls it undefined
    Physical* const memory = found->memory;
    object->team->leave(*found);
    bound.erase(found);
    --memory->uses;
    forget_if_unused(d, memory);
    return result::ok;
}

}  // namespace

std::shared_ptr<Team> make_team(unsigned size, int file) {
    auto team = std::make_shared<Team>();
    team->size = size;
    if (file < 0) {
        team->board = std::make_shared<TeamBoard>();
        return team;
    }
    // So that processes may share them; a new file is zeroed.
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
    void* const at = ::mmap(nullptr, sizeof(TeamBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            static_cast<off_t>(memory_file_offset_bytes));
    if (at == MAP_FAILED) return nullptr;
    team->board = {static_cast<TeamBoard*>(at), [](TeamBoard* board) { ::munmap(board, sizeof(TeamBoard)); }};
    return team;
}

Team::~Team() {
    for (const auto& [nonce, mapped] : seen) ::munmap(mapped.first, mapped.second);
}

bool Team::add(int device) {
    if (device < 0 || device >= max_devices) return false;
    const std::uint64_t bit = std::uint64_t{1} << device;
    std::uint64_t before = board->joined.load();
    for (;;) {
        if ((before & bit) != 0 || static_cast<unsigned>(__builtin_popcountll(before)) >= size) return false;
        if (board->joined.compare_exchange_weak(before, before | bit)) return true;
    }
}

TeamBoard::Entry* Team::enter(const Physical& memory, std::size_t offset, std::size_t memory_offset,
                              std::size_t bytes) {
    MemoryFileHeader header;
    if (!read_memory_file(memory.file, header)) return nullptr;
    for (TeamBoard::Entry& entry : board->entries) {
        std::uint32_t state = TeamBoard::Entry::unused;
        if (!entry.state.compare_exchange_strong(state, TeamBoard::Entry::taken)) continue;
        entry.device = memory.device;
        entry.offset_bytes = offset;
        entry.bytes = bytes;
        entry.memory_offset_bytes = memory_offset;
        entry.process = ::getpid();
        entry.file = memory.file;
        entry.nonce = header.nonce;
        entry.state.store(TeamBoard::Entry::bound);  // pairs with the load in replica()
        return &entry;
    }
    return nullptr;
}

void Team::leave(const Bound& range) {
    if (const auto known = seen.find(range.entry->nonce); known != seen.end()) {
        ::munmap(known->second.first, known->second.second);
        seen.erase(known);
    }
    range.entry->state.store(TeamBoard::Entry::unused);
}

void* Team::replica(int device, std::size_t offset, std::size_t bytes) {
    for (const TeamBoard::Entry& entry : board->entries) {
        if (entry.state.load() != TeamBoard::Entry::bound || entry.device != device) continue;
        if (offset < entry.offset_bytes || offset + bytes > entry.offset_bytes + entry.bytes) continue;
        auto known = seen.find(entry.nonce);
        if (known == seen.end()) {
            FileName name;
            name.process = entry.process;
            name.file = entry.file;
            const int file = open_named_file(name);
            MemoryFileHeader header;
            const bool same = read_memory_file(file, header) && header.nonce == entry.nonce;
            void* const at = same ? ::mmap(nullptr, header.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                                           static_cast<off_t>(memory_file_offset_bytes))
                                  : MAP_FAILED;
            if (file >= 0) ::close(file);
            if (at == MAP_FAILED) return nullptr;  // its process has ended
            known = seen.emplace(entry.nonce, std::pair{at, static_cast<std::size_t>(header.bytes)}).first;
        }
        return static_cast<std::byte*>(known->second.first) + entry.memory_offset_bytes + (offset - entry.offset_bytes);
    }
    return nullptr;
}

const char* find_replicas(Driver& d, const MultimemAccess& access, void** addresses, std::size_t most,
                          std::int32_t& count) {
    const Found found = d.regions.find(access.address);
    if (!found || !found.region->physical || !found.region->physical->team) {
        return "no multicast object is mapped there, and multimem instructions have no other addresses";
    }
    constexpr int read_write = 3;
    const auto let_in = found.region->device_access.find(access.device);
    if (let_in == found.region->device_access.end() || let_in->second == 0 ||
        (access.writes && let_in->second != read_write)) {
        return "the device was not let in (cuMemSetAccess)";
    }
    if (access.address % access.bytes != 0) return "the address is no multiple of the word's size";
    Team& team = *found.region->physical->team;
    count = 0;
    for (int device = 0; device < Team::max_devices; ++device) {
        if (!team.has(device)) continue;
        void* const replica = team.replica(device, found.offset_bytes, access.bytes);
        if (!replica || static_cast<std::size_t>(count) == most) {
            return "not every device of the object has memory bound there";
        }
        addresses[count++] = replica;
    }
    return nullptr;
}

Result wait_for_team(Driver& d, std::unique_lock<std::mutex>& lock, MemoryHandle handle, const char* call) {
    constexpr auto look_again = std::chrono::milliseconds(10);
    for (;;) {
        const Physical* const object = find_team(d, handle);
        if (!object) return result::invalid_value;  // released during the wait
        if (object->team->complete()) return result::ok;
        for (int device = 0; d.valid(device); ++device) {
            if (!object->team->has(device)) continue;
            if (const Result lost = d.engine().device_code(device)) return lost;
        }
        if (d.seeded) {
            say("%s: %u of %u devices were added to the multicast object; the driver waits here for the others, and "
                "in the seeded mode nobody would add them",
                call, object->team->count(), object->team->size);
            return result::not_supported;
        }
        d.virtual_memory.teams_changed.wait_for(lock, look_again);
    }
}

extern "C" {

Result cuMulticastGetGranularity(std::size_t* bytes, const MulticastProperties* properties, int option) {
    return call(CallId::cuMulticastGetGranularity, [&](Driver& d) -> Result {
        constexpr int minimum = 0, recommended = 1;
        if (!bytes || (option != minimum && option != recommended)) return result::invalid_value;
        if (const Result code = check_properties(d, properties)) return code;
        *bytes = granularity_bytes;  // assumed: the same as for other memory
        return result::ok;
    });
}

Result cuMulticastCreate(MemoryHandle* handle, const MulticastProperties* properties) {
    return call(CallId::cuMulticastCreate, [&](Driver& d) { return create(d, handle, properties); });
}

Result cuMulticastAddDevice(MemoryHandle handle, DeviceOrdinal device) {
    return call(CallId::cuMulticastAddDevice, [&](Driver& d) { return add_device(d, handle, device); });
}

Result cuMulticastBindMem(MemoryHandle handle, std::size_t offset, MemoryHandle memory, std::size_t memory_offset,
                          std::size_t bytes, unsigned long long flags) {
    return call(CallId::cuMulticastBindMem, [&](Driver& d) -> Result {
        if (flags != 0) return result::invalid_value;
        std::unique_lock lock(d.mutex);
        Physical* const object = find_physical(d, memory);
        if (!object) return result::invalid_value;
        return bind_held(d, lock, handle, *object, {offset, memory_offset, bytes}, "cuMulticastBindMem");
    });
}

Result cuMulticastBindAddr(MemoryHandle handle, std::size_t offset, Address address, std::size_t bytes,
                           unsigned long long flags) {
    return call(CallId::cuMulticastBindAddr, [&](Driver& d) -> Result {
        if (flags != 0) return result::invalid_value;
        std::unique_lock lock(d.mutex);
        const Found found = d.regions.find(address);
        if (found && found.region->pool) {
            say("cuMulticastBindAddr: binding memory of pools is not modelled");
            return result::not_supported;
        }
        if (!found || !found.region->physical) return result::invalid_value;
        return bind_held(d, lock, handle, *found.region->physical, {offset, found.offset_bytes, bytes},
                         "cuMulticastBindAddr");
    });
}

Result cuMulticastUnbind(MemoryHandle handle, DeviceOrdinal device, std::size_t offset, std::size_t bytes) {
    return call(CallId::cuMulticastUnbind, [&](Driver& d) { return unbind(d, handle, device, offset, bytes); });
}
}

}  // namespace isthmus::sim
