// SPDX-License-Identifier: Apache-2.0
// Multicast objects in their order: created, joined by all devices, bound, mapped.
#include "sim_two_processes.hpp"
#include "sim_virtual_scene.hpp"

#include <thread>

namespace isthmus::sim::test {
namespace {

// False where the machine has no two devices with multicast.
bool open_two() {
    int devices = 0;
    open_device();
    REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
    return devices > 1 && fact(attribute::multicast, 0) != 0 && fact(attribute::multicast, 1) != 0;
}

MemoryHandle team(unsigned devices, std::size_t bytes = 2 * granule, unsigned long long handle_types = 0) {
    const MulticastProperties properties = {devices, bytes, handle_types, 0};
    MemoryHandle handle = 0;
    REQUIRE_CODE(cuMulticastCreate(&handle, &properties), 0);
    return handle;
}

TEST(SimMulticast, ObjectsAreMadeWhereADeviceTakesPart) {  // keeps V14
    in_own_process([] {
        open_device();
        MulticastProperties properties = {2, 2 * granule, 0, 0};
        MemoryHandle handle = 0;
        std::size_t bytes = 0;
        const bool supported = fact(attribute::multicast) != 0;
        REQUIRE_CODE(cuMulticastGetGranularity(&bytes, &properties, 0), supported ? 0 : 801);
        REQUIRE_CODE(cuMulticastCreate(&handle, &properties), supported ? 0 : 801);
        if (!supported) return;
        REQUIRE_THAT(bytes == granule);
        REQUIRE_CODE(cuMulticastGetGranularity(&bytes, &properties, 2), 1);
        AllocationProperties read = {};
        REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&read, handle), 1);
        REQUIRE_CODE(cuMemRelease(handle), 0);
        REQUIRE_CODE(cuMulticastAddDevice(handle, 0), 1);
        properties.bytes = granule + 1;
        REQUIRE_CODE(cuMulticastCreate(&handle, &properties), 1);
        properties = {0, granule, 0, 0};
        REQUIRE_CODE(cuMulticastCreate(&handle, &properties), 1);
        properties = {2, granule, 2, 0};
        REQUIRE_CODE(cuMulticastCreate(&handle, &properties), 801);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
    });
}

TEST(SimMulticast, DevicesJoinOnceAndNoMoreThanTheTeamHas) {
    in_own_process([] {
        if (!open_two()) return;
        const MemoryHandle object = team(2);
        REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
        REQUIRE_CODE(cuMulticastAddDevice(object, 0), 1);
        REQUIRE_CODE(cuMulticastAddDevice(object, 50), 101);
        REQUIRE_CODE(cuMulticastAddDevice(physical(granule), 1), 1);
        REQUIRE_CODE(cuMulticastAddDevice(object, 1), 0);
        REQUIRE_CODE(cuMulticastAddDevice(object, 1), 1);
    });
}

TEST(SimMulticast, BindingWaitsUntilAllDevicesWereAdded) {
    in_own_process([] {
        if (!open_two()) return;
        const MemoryHandle object = team(2), memory = physical(granule);
        REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
        std::atomic<bool> added{false};
        std::thread other([&] {
            added.store(true);
            REQUIRE_CODE(cuMulticastAddDevice(object, 1), 0);
        });
        REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 0);
        REQUIRE_THAT(added.load());
        other.join();
    });
}

TEST(SimMulticast, WhereNobodyElseWouldAddThemItIsRefused) {
    in_own_process(
        [] {
            ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
            if (!open_two()) {
                std::fputs("1 of 2 devices were added\n", stderr);  // nothing to test on this machine
                return;
            }
            const MemoryHandle object = team(2), memory = physical(granule);
            REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
            REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 801);
            REQUIRE_CODE(cuMemMap(reserved(2 * granule), 2 * granule, 0, object, 0), 801);
            REQUIRE_CODE(cuMulticastAddDevice(object, 1), 0);
            REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 0);
        },
        "1 of 2 devices were added");
}

TEST(SimMulticast, EachDevicesMemoryIsBoundWhereItFitsAndIsFree) {
    in_own_process([] {
        if (!open_two()) return;
        const MemoryHandle object = team(1), memory = physical(2 * granule);
        const MemoryHandle theirs = physical(granule, properties_of(on_device, 1));
        REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
        REQUIRE_CODE(cuMulticastBindMem(object, 4096, memory, 0, granule, 0), 1);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, granule, 2 * granule, 0), 1);
        REQUIRE_CODE(cuMulticastBindMem(object, granule, memory, 0, 2 * granule, 0), 1);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 1), 1);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, object, 0, granule, 0), 1);
        REQUIRE_CODE(cuMulticastBindMem(memory, 0, memory, 0, granule, 0), 1);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, theirs, 0, granule, 0), 101);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 0);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, granule, granule, 0), 1);
        const Address address = reserved(2 * granule);
        REQUIRE_CODE(cuMemMap(address, 2 * granule, 0, memory, 0), 0);
        REQUIRE_CODE(cuMulticastBindAddr(object, granule, address + granule, granule, 0), 0);
        REQUIRE_CODE(cuMulticastBindAddr(object, granule, device_memory(granule), granule, 0), 1);
        REQUIRE_CODE(cuMulticastUnbind(object, 0, granule, 2 * granule), 1);
        REQUIRE_CODE(cuMulticastUnbind(object, 0, granule, granule), 0);
        REQUIRE_CODE(cuMulticastUnbind(object, 0, granule, granule), 1);
        REQUIRE_CODE(cuMemUnmap(address, 2 * granule), 0);
        REQUIRE_CODE(cuMemRelease(memory), 0);
        REQUIRE_CODE(cuMemRelease(theirs), 0);
        REQUIRE_THAT(isthmus_sim_live("physical") == 2);  // bound memory stays
        REQUIRE_CODE(cuMemRelease(object), 0);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
    });
}

TEST(SimMulticast, WhatIsSharedIsBoundToWhatCanBeShared) {
    in_own_process([] {
        if (!open_two()) return;
        const MemoryHandle object = team(1, granule, posix_file);
        REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
        REQUIRE_CODE(cuMulticastBindMem(object, 0, physical(granule), 0, granule, 0), 1);
        const MemoryHandle shared = physical(granule, properties_of(on_device, 0, posix_file));
        REQUIRE_CODE(cuMulticastBindMem(object, 0, shared, 0, granule, 0), 0);
        int file = -1;
        REQUIRE_CODE(cuMemExportToShareableHandle(&file, object, posix_file, 0), 0);
        MemoryHandle again = 0;
        REQUIRE_CODE(cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(std::intptr_t{file}), posix_file),
                     0);
        REQUIRE_CODE(cuMulticastAddDevice(again, 0), 1);  // the same object, which has this device already
        REQUIRE_CODE(cuMulticastBindMem(again, 0, shared, 0, granule, 0), 0);
        // Created without an exportable handle type.
        REQUIRE_CODE(cuMemExportToShareableHandle(&file, team(1, granule), posix_file, 0), 1);
        REQUIRE_CODE(cuMemRelease(object), 0);
        REQUIRE_CODE(cuMulticastUnbind(again, 0, 0, granule), 0);
    });
}

TEST(SimMulticast, TwoProcessesJoinOneObjectAndEachBindsItsOwnDevicesMemory) {  // keeps V14's ground
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                const bool possible = open_two();
                line.send(possible);
                if (!possible) return;
                const std::intptr_t file = line.receive_file();
                MemoryHandle object = 0;
                REQUIRE_CODE(cuMemImportFromShareableHandle(&object, reinterpret_cast<void*>(file), posix_file), 0);
                ::close(static_cast<int>(file));
                REQUIRE_CODE(cuMulticastAddDevice(object, 0), 1);  // the other process did
                REQUIRE_CODE(cuMulticastAddDevice(object, 1), 0);
                const MemoryHandle memory = physical(granule, properties_of(on_device, 1, posix_file));
                REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 0);
                line.tell();
                line.wait_for_end();
            },
            [](const Line& line) {
                const bool possible = open_two();
                REQUIRE_THAT(line.receive<bool>() == possible);
                if (!possible) return;
                const MemoryHandle object = team(2, 2 * granule, posix_file);
                REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
                int file = -1;
                REQUIRE_CODE(cuMemExportToShareableHandle(&file, object, posix_file, 0), 0);
                line.send_file(file);
                ::close(file);
                // Waits, as the driver does, until the other process has added its device.
                const MemoryHandle memory = physical(granule, properties_of(on_device, 0, posix_file));
                REQUIRE_CODE(cuMulticastBindMem(object, 0, memory, 0, granule, 0), 0);
                line.listen();
                const Address address = reserved(2 * granule);
                REQUIRE_CODE(cuMemMap(address, 2 * granule, 0, object, 0), 0);
                REQUIRE_CODE(give_access(address, 2 * granule, 1), 0);  // a device that the other process added
            });
    });
}

TEST(SimMulticast, AnOrdinaryKernelCannotUseItsAddresses) {
    in_own_process(
        [] {
            if (!open_two()) {
                std::fputs("multimem instructions\n", stderr);
                return;
            }
            const MemoryHandle object = team(1, granule);
            REQUIRE_CODE(cuMulticastAddDevice(object, 0), 0);
            const Address address = reserved(granule);
            REQUIRE_CODE(cuMemMap(address, granule, 0, object, 0), 0);
            REQUIRE_CODE(give_access(address, granule, 1), 101);  // not a device of the object
            REQUIRE_CODE(give_access(address, granule), 0);
            REQUIRE_CODE(launch_multiply(nullptr, address, 16, 2), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
        },
        "multimem instructions");
}

}  // namespace
}  // namespace isthmus::sim::test
