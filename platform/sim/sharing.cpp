// SPDX-License-Identifier: Apache-2.0
// Memory behind handles for other processes: file descriptors and fabric handles.
#include "call.hpp"
#include "memory_file.hpp"
#include "named_file.hpp"

#include <unistd.h>

#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int posix_file = 1, fabric = 8;
constexpr int on_device = 1;
constexpr char fabric_magic[8] = "simfabr";

bool any_device_says(const Driver& d, int attribute) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.fact(device, attribute) != 0) return true;
    }
    return false;
}

bool has_channel(const Driver& d) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.machine.device(device).fabric_usable) return true;
    }
    return false;
}

Result export_memory(Driver& d, void* shareable, MemoryHandle handle, int type, unsigned long long flags) {
    if (!shareable || flags != 0) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    const Physical* const object = find_physical(d, handle);
    if (!object) return result::invalid_value;
    if (object->device >= 0) {
        if (const Result lost = d.engine().device_code(object->device)) return lost;
    }
    // Documented: fixed at creation; the code is assumed.
    if ((type != posix_file && type != fabric) || (object->properties.handle_types & type) == 0) {
        return result::invalid_value;
    }
    if (type == posix_file) {
        const int file = duplicate_file(object->file);
        if (file < 0) return result::operating_system;
        std::memcpy(shareable, &file, sizeof(file));
        return result::ok;
    }
    MemoryFileHeader header;
    if (!read_memory_file(object->file, header)) return result::unknown;
    const ShareableBytes bytes = name_file(fabric_magic, object->file, header.nonce);
    std::memcpy(shareable, &bytes, sizeof(bytes));
    return result::ok;
}

// The device of this machine that the header names; -1: host memory.
bool find_owner(const Driver& d, const MemoryFileHeader& header, int& device) {
    device = -1;
    if (header.properties.location.type != on_device) return true;
    for (int candidate = 0; d.valid(candidate); ++candidate) {
        const auto& uuid = d.machine.device(candidate).facts.uuid.bytes;
        if (std::memcmp(uuid.data(), &header.device, sizeof(header.device)) == 0) device = candidate;
    }
    return device >= 0;
}

// Takes ownership of the file.
Result adopt(Driver& d, MemoryHandle* handle, int file, const MemoryFileHeader& header) {
    int device = -1;
    const bool here = find_owner(d, header, device);
    const Result lost = here ? lost_code(d, device) : result::not_supported;  // documented
    if (lost != result::ok) {
        ::close(file);
        return lost;
    }
    AllocationProperties properties = header.properties;
    if (device >= 0) properties.location.id = device;
    properties.handle_types = 0;  // observed: imported memory cannot be exported again
    const std::shared_ptr<Team> team = header.team_size != 0 ? make_team(header.team_size, file) : nullptr;
    if (header.team_size != 0 && !team) {
        ::close(file);
        return result::out_of_memory;
    }
    const std::lock_guard lock(d.mutex);
    Physical* const made = add_physical(d, properties, header.bytes, device, file);
    made->team = team;
    *handle = handle_of(made);
    return result::ok;
}

Result import_file(Driver& d, MemoryHandle* handle, void* shareable) {
    if (!any_device_says(d, attribute::posix_handles)) return result::not_supported;
    MemoryFileHeader header;
    const int theirs = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    const bool exported = read_memory_file(theirs, header) && (header.properties.handle_types & posix_file) != 0;
    if (!exported) return result::unknown;  // observed for other kinds of descriptors
    const int file = duplicate_file(theirs);
    return file < 0 ? result::operating_system : adopt(d, handle, file, header);
}

Result import_fabric(Driver& d, MemoryHandle* handle, const void* shareable) {
    if (!shareable) return result::invalid_value;
    if (!any_device_says(d, attribute::fabric_handles)) return result::not_supported;
    if (!has_channel(d)) return result::not_supported;  // observed for a handle of zeros
    ShareableBytes bytes;
    std::memcpy(&bytes, shareable, sizeof(bytes));
    FileName name;
    if (!read_name(bytes, fabric_magic, name)) return result::unknown;  // the same as for descriptors (assumed)
    const int file = open_named_file(name);
    MemoryFileHeader header;
    const bool same = read_memory_file(file, header) && header.nonce == name.nonce;
    if (!same) {
        if (file >= 0) ::close(file);
        return result::unknown;  // the exporter has released it
    }
    return adopt(d, handle, file, header);
}

}  // namespace

extern "C" {

Result cuMemExportToShareableHandle(void* shareable, MemoryHandle handle, int type, unsigned long long flags) {
    return call(CallId::cuMemExportToShareableHandle,
                [&](Driver& d) { return export_memory(d, shareable, handle, type, flags); });
}

Result cuMemImportFromShareableHandle(MemoryHandle* handle, void* shareable, int type) {
    return call(CallId::cuMemImportFromShareableHandle, [&](Driver& d) -> Result {
        if (!handle || (type != posix_file && type != fabric)) return result::invalid_value;
        return type == posix_file ? import_file(d, handle, shareable) : import_fabric(d, handle, shareable);
    });
}
}

}  // namespace isthmus::sim
