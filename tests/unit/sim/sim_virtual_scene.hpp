// SPDX-License-Identifier: Apache-2.0
// Reservations, physical memory handles and mappings, as the tests of virtual memory make them.
#pragma once

#include "sim_test.hpp"

#include <cstddef>

namespace isthmus::sim::test {

inline constexpr std::size_t granule = std::size_t{2} << 20;
inline constexpr int on_device = 1, on_host = 2, on_node = 3;
inline constexpr int posix_file = 1, fabric = 8;
inline constexpr int no_access = 0, read_access = 1, write_access = 3;

inline AllocationProperties properties_of(int location_type, int id = 0, int handle_types = 0) {
    AllocationProperties properties = {};
    properties.type = 1;
    properties.handle_types = handle_types;
    properties.location = {location_type, id};
    return properties;
}

inline bool virtual_memory() {
    return fact(attribute::virtual_memory) != 0;
}

inline Address reserved(std::size_t bytes) {
    Address address = 0;
    REQUIRE_CODE(cuMemAddressReserve(&address, bytes, 0, 0, 0), 0);
    return address;
}

inline MemoryHandle physical(std::size_t bytes, const AllocationProperties& properties = properties_of(on_device)) {
    MemoryHandle handle = 0;
    REQUIRE_CODE(cuMemCreate(&handle, bytes, &properties, 0), 0);
    return handle;
}

inline Result give_access(Address address, std::size_t bytes, int device = 0, int flags = write_access) {
    const AccessDescription one = {{on_device, device}, flags};
    return cuMemSetAccess(address, bytes, &one, 1);
}

inline Address mapped(std::size_t bytes, const AllocationProperties& properties = properties_of(on_device)) {
    const Address address = reserved(bytes);
    const MemoryHandle handle = physical(bytes, properties);
    REQUIRE_CODE(cuMemMap(address, bytes, 0, handle, 0), 0);
    REQUIRE_CODE(cuMemRelease(handle), 0);  // the mapping keeps it alive
    return address;
}

inline int first_int(Address address) {
    int value = -1;
    REQUIRE_CODE(cuMemcpyDtoH_v2(&value, address, sizeof(value)), 0);
    return value;
}

}  // namespace isthmus::sim::test
