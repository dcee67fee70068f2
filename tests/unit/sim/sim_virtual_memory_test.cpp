// SPDX-License-Identifier: Apache-2.0
// Reservations, physical memory handles and mappings: the answer of each call, and the order of undoing.
#include "sim_virtual_scene.hpp"

#include <cstring>

namespace isthmus::sim::test {
namespace {

TEST(SimVirtualMemory, MemoryComesInGranules) {  // keeps V2's ground
    in_own_process([] {
        open_device();
        const AllocationProperties properties = properties_of(on_device);
        MemoryHandle handle = 0;
        std::size_t bytes = 0;
        REQUIRE_THAT(virtual_memory());
        for (const int option : {0, 1}) {
            REQUIRE_CODE(cuMemGetAllocationGranularity(&bytes, &properties, option), 0);
            REQUIRE_THAT(bytes == granule);
        }
        REQUIRE_CODE(cuMemGetAllocationGranularity(&bytes, &properties, 2), 1);
        REQUIRE_CODE(cuMemGetAllocationGranularity(&bytes, nullptr, 0), 1);
        REQUIRE_CODE(cuMemCreate(&handle, granule - 4096, &properties, 0), 1);
        REQUIRE_CODE(cuMemCreate(&handle, 0, &properties, 0), 1);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &properties, 1), 1);
        REQUIRE_CODE(cuMemCreate(&handle, granule, nullptr, 0), 1);
        REQUIRE_CODE(cuMemCreate(nullptr, granule, &properties, 0), 1);
        REQUIRE_CODE(cuMemCreate(&handle, std::size_t{1} << 50, &properties, 0), 2);
        const AllocationProperties elsewhere = properties_of(on_device, 50);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &elsewhere, 0), 101);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
        REQUIRE_CODE(cuMemRelease(physical(3 * granule)), 0);
    });
}

TEST(SimVirtualMemory, MemoryTakesRoomOnItsDeviceUntilTheLastMappingAndHandleAreGone) {
    in_own_process([] {
        open_device();
        std::size_t before = 0, during = 0, after = 0, total = 0;
        REQUIRE_CODE(cuMemGetInfo_v2(&before, &total), 0);
        const Address address = mapped(granule);
        REQUIRE_CODE(cuMemGetInfo_v2(&during, &total), 0);
        REQUIRE_THAT(before - during == granule);
        REQUIRE_CODE(isthmus_sim_set_memory_bytes(0, granule), 0);
        const AllocationProperties properties = properties_of(on_device);
        MemoryHandle handle = 0;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &properties, 0), 2);
        REQUIRE_CODE(isthmus_sim_set_memory_bytes(0, 0), 0);
        REQUIRE_CODE(cuMemUnmap(address, granule), 0);
        REQUIRE_CODE(cuMemGetInfo_v2(&after, &total), 0);
        REQUIRE_THAT(after == before && isthmus_sim_live("physical") == 0);
    });
}

TEST(SimVirtualMemory, PropertiesReadBackAsGranted) {  // keeps V3, V13
    in_own_process([] {
        open_device();
        AllocationProperties wanted = properties_of(on_device), granted = {};
        wanted.compression = 1;
        const MemoryHandle handle = physical(granule, wanted);
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&granted, handle), 0);
        REQUIRE_THAT(granted.type == 1 && granted.location.type == on_device && granted.location.id == 0);
        REQUIRE_THAT((granted.compression == 1) == (fact(attribute::compression) != 0));
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(nullptr, handle), 1);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&granted, handle), 1);
        REQUIRE_CODE(cuMemRelease(handle), 1);
        MemoryHandle direct = 0;
        wanted.gpu_direct_rdma = 1;
        REQUIRE_CODE(cuMemCreate(&direct, granule, &wanted, 0), fact(attribute::virtual_memory_rdma) != 0 ? 0 : 801);
    });
}

TEST(SimVirtualMemory, TheHostsReadsBackAsThatOfANodeAndTakesNoFillOverTwoHandles) {  // keeps V3, V11
    in_own_process([] {
        open_device();
        if (fact(attribute::host_virtual_memory) == 0) return;
        AllocationProperties granted = {};
        const MemoryHandle handle = physical(granule, properties_of(on_host));
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&granted, handle), 0);
        REQUIRE_THAT(granted.location.type == on_node);
        const Address address = reserved(2 * granule);
        for (const Address at : {address, address + granule}) {
            REQUIRE_CODE(cuMemMap(at, granule, 0, physical(granule, properties_of(on_host)), 0), 0);
        }
        REQUIRE_CODE(give_access(address, 2 * granule), 0);
        REQUIRE_CODE(cuMemsetD32Async(address, 7, granule / 4, nullptr), 0);
        REQUIRE_CODE(cuMemsetD32Async(address + granule - 4, 1, 2, nullptr), 1);
        REQUIRE_CODE(cuMemsetD8Async(address, 1, granule + 1, nullptr), 1);
        REQUIRE_CODE(cuMemsetD2D32Async(address, granule, 1, 1, 2, nullptr), 1);
        const int eight[] = {8, 8};
        REQUIRE_CODE(cuMemcpyHtoD_v2(address + granule - 4, eight, sizeof(eight)), 0);
        REQUIRE_THAT(first_int(address + granule) == 8);
        REQUIRE_THAT(first_int(address) == 7);
    });
}

TEST(SimVirtualMemory, MappingsFitTheirObjectAndLieInFreeReservedAddresses) {  // keeps V7
    in_own_process([] {
        open_device();
        const Address base = reserved(4 * granule);
        REQUIRE_THAT(base % granule == 0);
        const MemoryHandle one = physical(granule), two = physical(2 * granule);
        REQUIRE_CODE(cuMemMap(base, granule, 0, two, 0), 801);
        REQUIRE_CODE(cuMemMap(base, 2 * granule, 0, one, 0), 801);
        REQUIRE_CODE(cuMemMap(base + 4096, granule, 0, one, 0), 1);
        REQUIRE_CODE(cuMemMap(base, granule, granule, one, 0), 1);
        REQUIRE_CODE(cuMemMap(base, granule, 0, one, 1), 1);
        REQUIRE_CODE(cuMemMap(base, granule, 0, one + 64, 0), 1);
        REQUIRE_CODE(cuMemMap(base + 4 * granule, granule, 0, one, 0), 1);
        REQUIRE_CODE(cuMemMap(base + 3 * granule, 2 * granule, 0, two, 0), 1);
        REQUIRE_CODE(cuMemMap(base, 2 * granule, 0, two, 0), 0);
        REQUIRE_CODE(cuMemMap(base + granule, granule, 0, one, 0), 1);
        REQUIRE_CODE(cuMemMap(base + 2 * granule, granule, 0, one, 0), 0);
        REQUIRE_CODE(cuMemAddressFree(base, 4 * granule), 1);
        REQUIRE_CODE(cuMemUnmap(base, granule), 1);                // a part
        REQUIRE_CODE(cuMemUnmap(base + granule, 2 * granule), 1);  // a part, and a whole one
        REQUIRE_CODE(cuMemUnmap(base, 4 * granule), 0);            // both, and a gap
        REQUIRE_CODE(cuMemUnmap(base, 4 * granule), 0);            // nothing mapped: observed
        REQUIRE_CODE(cuMemUnmap(base + 4 * granule, granule), 1);  // outside
        REQUIRE_CODE(cuMemMap(base, granule, 0, one, 0), 0);       // the addresses can be used again
        REQUIRE_CODE(cuMemUnmap(base, granule), 0);
        REQUIRE_CODE(cuMemAddressFree(base, granule), 1);
        REQUIRE_CODE(cuMemAddressFree(base + granule, granule), 1);
        REQUIRE_CODE(cuMemAddressFree(base, 4 * granule), 0);
        REQUIRE_CODE(cuMemAddressFree(base, 4 * granule), 1);
        REQUIRE_CODE(cuMemRelease(one), 0);
        REQUIRE_CODE(cuMemRelease(two), 0);
        for (const char* what : {"reservations", "physical", "mappings", "allocations"}) {
            REQUIRE_THAT(isthmus_sim_live(what) == 0);
        }
    });
}

TEST(SimVirtualMemory, ReservationsAreAlignedAndTakeAHint) {
    in_own_process([] {
        open_device();
        Address address = 0, again = 0;
        REQUIRE_CODE(cuMemAddressReserve(&address, granule, std::size_t{1} << 30, 0, 0), 0);
        REQUIRE_THAT(address % (std::size_t{1} << 30) == 0);
        REQUIRE_CODE(cuMemAddressFree(address, granule), 0);
        REQUIRE_CODE(cuMemAddressReserve(&again, granule, 0, address, 0), 0);
        REQUIRE_THAT(again == address);
        REQUIRE_CODE(cuMemAddressReserve(&again, granule, 0, address, 0), 0);  // taken: another address
        REQUIRE_THAT(again != address);
        REQUIRE_CODE(cuMemAddressReserve(&again, 1, 0, 0, 0), 1);
        REQUIRE_CODE(cuMemAddressReserve(&again, granule, 3, 0, 0), 1);
        REQUIRE_CODE(cuMemAddressReserve(&again, granule, 0, 0, 1), 1);
        REQUIRE_CODE(cuMemAddressReserve(nullptr, granule, 0, 0, 0), 1);
        REQUIRE_CODE(cuMemAddressReserve(&again, 0, 0, 0, 0), 1);
        REQUIRE_CODE(cuMemAddressReserve(&again, std::size_t{1} << 60, 0, 0, 0), 2);
    });
}

TEST(SimVirtualMemory, TheHandleOfAnAddressIsTheOneThatWasMapped) {
    in_own_process([] {
        open_device();
        const Address base = reserved(granule);
        const MemoryHandle handle = physical(granule);
        MemoryHandle again = 0;
        void* const inside = reinterpret_cast<void*>(base + 5000);
        REQUIRE_CODE(cuMemRetainAllocationHandle(&again, inside), 1);
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemRetainAllocationHandle(&again, inside), 0);
        REQUIRE_THAT(again == handle);
        REQUIRE_CODE(cuMemUnmap(base, granule), 0);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuMemRelease(handle), 1);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
    });
}

TEST(SimVirtualMemory, AUsageNeedsItsAttributeAndATilePoolIsNotMapped) {  // keeps V1's ground
    in_own_process([] {
        open_device();
        constexpr unsigned short tile_pool = 1, hardware_decompress = 2;
        AllocationProperties properties = properties_of(on_device);
        MemoryHandle handle = 0;
        properties.usage = 4;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &properties, 0), 1);
        properties.usage = hardware_decompress;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &properties, 0), fact(attribute::decompression) != 0 ? 0 : 801);
        properties.usage = tile_pool;
        const bool pools = fact(attribute::sparse_arrays) != 0;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &properties, 0), pools ? 0 : 801);
        if (!pools) return;
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&properties, handle), 0);
        REQUIRE_THAT(properties.usage == tile_pool);
        REQUIRE_CODE(cuMemMap(reserved(granule), granule, 0, handle, 0), 1);
    });
}

TEST(SimVirtualMemory, OneReservationHoldsMemoryOfDevicesAndOfTheHost) {  // keeps V6
    in_own_process([] {
        open_device();
        int devices = 0;
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        const Address base = reserved(4 * granule);
        REQUIRE_CODE(cuMemMap(base, granule, 0, physical(granule), 0), 0);
        if (devices > 1) {
            REQUIRE_CODE(cuMemMap(base + granule, granule, 0, physical(granule, properties_of(on_device, 1)), 0), 0);
        }
        MemoryHandle handle = 0;
        AllocationProperties host = properties_of(on_host), node = properties_of(on_node), current = properties_of(4);
        const bool hosts = fact(attribute::host_virtual_memory) != 0, nodes = fact(attribute::node_virtual_memory) != 0;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &host, 0), hosts ? 0 : 801);
        if (hosts) REQUIRE_CODE(cuMemMap(base + 2 * granule, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &node, 0), nodes ? 0 : 801);
        if (nodes) REQUIRE_CODE(cuMemMap(base + 3 * granule, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &current, 0), 1);
        if (!nodes) return;
        node.location.id = 4711;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &node, 0), 1);
        host.handle_types = posix_file;
        REQUIRE_CODE(cuMemCreate(&handle, granule, &host, 0), 1);
        node = properties_of(on_node, 0, posix_file);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &node, 0), fact(attribute::posix_handles) != 0 ? 0 : 801);
    });
}

TEST(SimVirtualMemory, TwoMappingsOfOneObjectShowTheSameBytes) {  // keeps V12's ground
    in_own_process([] {
        open_device();
        const Address base = reserved(2 * granule);
        const MemoryHandle handle = physical(granule);
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemMap(base + granule, granule, 0, handle, 0), 0);
        REQUIRE_CODE(give_access(base, 2 * granule), 0);
        REQUIRE_CODE(cuMemsetD32_v2(base + granule - 16, 7, 8), 0);  // across the border
        REQUIRE_THAT(first_int(base) == 7 && first_int(base + granule) == 7);
        REQUIRE_THAT(first_int(base + 2 * granule - 4) == 7 && first_int(base + 16) == 0);
        REQUIRE_CODE(launch_multiply(nullptr, base + granule - 16, 8, 3), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(first_int(base) == 21 && first_int(base + 2 * granule - 4) == 21);
    });
}

TEST(SimVirtualMemory, MemorySurvivesItsContext) {
    in_own_process([] {
        open_device();
        Context* context = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&context, 0, 0), 0);
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(cuMemsetD32_v2(base, 9, 1), 0);
        REQUIRE_CODE(cuCtxDestroy_v2(context), 0);
        open_device();
        REQUIRE_THAT(first_int(base) == 9);
        REQUIRE_CODE(cuMemUnmap(base, granule), 0);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
    });
}

TEST(SimVirtualMemory, OtherFreesRefuseMappedMemory) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(cuMemFree_v2(base), 1);
        REQUIRE_CODE(cuMemFreeHost(reinterpret_cast<void*>(base)), 1);
        REQUIRE_CODE(cuMemHostRegister_v2(reinterpret_cast<void*>(base), 4096, 0), 1);
        REQUIRE_CODE(cuMemPrefetchAsync(base, granule, 0, nullptr), 1);
        REQUIRE_THAT(first_int(base) == 0);
    });
}

TEST(SimVirtualMemory, EveryCallCanBePlannedToFail) {
    in_own_process([] {
        open_device();
        const Address base = reserved(granule);
        const MemoryHandle handle = physical(granule);
        REQUIRE_CODE(isthmus_sim_fault_plan("call=cuMemMap:n=2:code=2;call=cuMemSetAccess:code=999"), 0);
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 2);
        REQUIRE_CODE(give_access(base, granule), 999);
        REQUIRE_THAT(isthmus_sim_call_count("cuMemMap") == 2);
    });
}

TEST(SimVirtualMemory, ADeviceThatIsLostAnswersItsCodeToAll) {  // keeps R2's ground
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        const MemoryHandle handle = physical(granule);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(8)), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
        Address address = 0;
        MemoryHandle another = 0;
        const AllocationProperties properties = properties_of(on_device);
        // Observed (580, H100): what touches no memory works.
        REQUIRE_CODE(cuMemAddressReserve(&address, granule, 0, 0, 0), 0);
        REQUIRE_CODE(cuMemAddressFree(address, granule), 0);
        REQUIRE_CODE(cuMemCreate(&another, granule, &properties, 0), 0);
        REQUIRE_CODE(give_access(base, granule), 700);
        REQUIRE_CODE(cuMemUnmap(base, granule), 700);
        REQUIRE_CODE(cuMemRelease(handle), 700);
    });
}

TEST(SimVirtualMemory, ACaptureForbidsOnlyWhatMayWait) {  // keeps S19's ground
    in_own_process([] {
        open_device();
        const Address base = reserved(2 * granule);
        Stream* const stream = new_stream();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        const MemoryHandle handle = physical(granule);  // observed
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        REQUIRE_CODE(give_access(base, granule), 900);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 901);
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 2), 0);
        int relaxed = 2;
        REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&relaxed), 0);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(cuMemUnmap(base, granule), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
