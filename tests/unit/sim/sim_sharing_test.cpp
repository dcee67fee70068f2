// SPDX-License-Identifier: Apache-2.0
// Memory that one process creates and another maps: file descriptors, and fabric handles with and without a channel.
#include "sim_two_processes.hpp"
#include "sim_virtual_scene.hpp"

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace isthmus::sim::test {
namespace {

bool files() {
    return fact(attribute::posix_handles) != 0;
}

int exported_file(MemoryHandle handle) {
    int file = -1;
    REQUIRE_CODE(cuMemExportToShareableHandle(&file, handle, posix_file, 0), 0);
    return file;
}

Result import_file(MemoryHandle& handle, int file) {
    return cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
                                          posix_file);
}

Address mapped_and_open(MemoryHandle handle, std::size_t bytes) {
    const Address address = reserved(bytes);
    REQUIRE_CODE(cuMemMap(address, bytes, 0, handle, 0), 0);
    REQUIRE_CODE(give_access(address, bytes), 0);
    return address;
}

TEST(SimSharing, ADescriptorCarriesTheMemoryBothWays) {  // keeps I1's ground
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!files()) return;
                const MemoryHandle handle = physical(granule, properties_of(on_device, 0, posix_file));
                const Address address = mapped_and_open(handle, granule);
                fill(address, 5);
                const int file = exported_file(handle);
                REQUIRE_THAT((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);  // observed
                line.send_file(file);
                line.listen();
                REQUIRE_THAT(first_int(address) == 12);
            },
            [](const Line& line) {
                open_device();
                if (!files()) return;
                const int file = line.receive_file();
                MemoryHandle handle = 0, again = 0;
                REQUIRE_CODE(import_file(handle, file), 0);
                REQUIRE_CODE(import_file(again, file), 0);
                ::close(file);
                const Address address = mapped_and_open(handle, granule);
                AllocationProperties properties = {};
                REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&properties, handle), 0);
                REQUIRE_THAT(properties.handle_types == 0 && properties.location.id == 0);
                REQUIRE_THAT(first_int(address) == 5);
                REQUIRE_CODE(launch_multiply(nullptr, address, 16, 2), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 0);
                fill(address, 12);
                line.tell();
                REQUIRE_CODE(cuMemUnmap(address, granule), 0);
                REQUIRE_CODE(cuMemRelease(handle), 0);
                REQUIRE_CODE(cuMemRelease(again), 0);  // each import has its own handle
                REQUIRE_THAT(isthmus_sim_live("physical") == 0);
            });
    });
}

TEST(SimSharing, ADescriptorOutlivesItsExporterAndAsksForNoUser) {  // keeps I3's ground
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!files()) return;
                const MemoryHandle handle = physical(granule, properties_of(on_device, 0, posix_file));
                const Address address = mapped_and_open(handle, granule);
                fill(address, 5);
                line.send_file(exported_file(handle));
                REQUIRE_CODE(cuMemUnmap(address, granule), 0);
                REQUIRE_CODE(cuMemRelease(handle), 0);
            },
            [](const Line& line) {
                constexpr uid_t nobody = 65534;
                if (::geteuid() == 0) REQUIRE_THAT(::setuid(nobody) == 0);
                open_device();
                if (!files()) return;
                const int file = line.receive_file();
                line.wait_for_end();
                MemoryHandle handle = 0;
                REQUIRE_CODE(import_file(handle, file), 0);
                REQUIRE_THAT(first_int(mapped_and_open(handle, granule)) == 5);
            });
    });
}

TEST(SimSharing, ADescriptorOfAnythingElseIsUnknown) {
    in_own_process([] {
        open_device();
        MemoryHandle handle = 0;
        const int plain = ::memfd_create("plain", MFD_CLOEXEC);
        REQUIRE_THAT(plain >= 0 && ::ftruncate(plain, 4096) == 0);
        for (const int file : {::eventfd(0, EFD_CLOEXEC), ::open("/dev/null", O_RDWR | O_CLOEXEC), plain, -1, 999}) {
            REQUIRE_CODE(import_file(handle, file), files() ? 999 : 801);
        }
        REQUIRE_CODE(cuMemImportFromShareableHandle(&handle, nullptr, 2), 1);
        REQUIRE_CODE(cuMemImportFromShareableHandle(nullptr, nullptr, posix_file), 1);
        REQUIRE_THAT(isthmus_sim_live("physical") == 0);
    });
}

TEST(SimSharing, WhatMayBeExportedIsFixedWhenItIsMade) {  // keeps V4
    in_own_process([] {
        open_device();
        const AllocationProperties shared = properties_of(on_device, 0, posix_file),
                                   foreign = properties_of(on_device, 0, 2);
        MemoryHandle handle = 0;
        int file = -1;
        REQUIRE_CODE(cuMemExportToShareableHandle(&file, physical(granule), posix_file, 0), 1);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &foreign, 0), 801);
        REQUIRE_CODE(cuMemCreate(&handle, granule, &shared, 0), files() ? 0 : 801);
        if (!files()) return;
        ShareableBytes bytes = {};
        REQUIRE_CODE(cuMemExportToShareableHandle(&bytes, handle, fabric, 0), 1);
        REQUIRE_CODE(cuMemExportToShareableHandle(&file, handle, posix_file, 1), 1);
        REQUIRE_CODE(cuMemExportToShareableHandle(nullptr, handle, posix_file, 0), 1);
        const Address address = mapped_and_open(handle, granule);
        unsigned long long types = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&types, 14, address), 0);
        REQUIRE_THAT(types == posix_file);
    });
}

TEST(SimSharing, ADescriptorTellsNoSizeAndItsObjectDoes) {
    in_own_process([] {
        open_device();
        if (!files()) return;
        const AllocationProperties shared = properties_of(on_device, 0, posix_file);
        struct stat one = {}, three = {};
        const int file = exported_file(physical(granule, shared));
        REQUIRE_THAT(::fstat(file, &one) == 0);
        REQUIRE_THAT(::fstat(exported_file(physical(3 * granule, shared)), &three) == 0);
        REQUIRE_THAT(one.st_size == three.st_size);
        REQUIRE_THAT(::ftruncate(file, 4096) != 0);  // nor can a peer shrink the file
        MemoryHandle handle = 0;
        REQUIRE_CODE(import_file(handle, file), 0);
        REQUIRE_CODE(cuMemMap(reserved(2 * granule), 2 * granule, 0, handle, 0), 801);
    });
}

TEST(SimSharing, MemoryOfADeviceThatThisMachineLacksIsNotSupported) {
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                const std::string own = std::getenv("ISTHMUS_SIM");
                ::setenv("ISTHMUS_SIM", own == "thor" ? "h200" : "thor", 1);
                open_device();
                line.send_file(exported_file(physical(granule, properties_of(on_device, 0, posix_file))));
            },
            [](const Line& line) {
                open_device();
                MemoryHandle handle = 0;
                REQUIRE_CODE(import_file(handle, line.receive_file()), 801);
            });
    });
}

TEST(SimSharing, FabricNeedsTheAttributeAndAChannel) {  // keeps V5
    in_own_process([] {
        open_device();
        const AllocationProperties shared = properties_of(on_device, 0, fabric);
        MemoryHandle handle = 0, imported = 0;
        ShareableBytes bytes = {};
        const Result code = cuMemCreate(&handle, granule, &shared, 0);
        const bool attribute = fact(attribute::fabric_handles) != 0;
        REQUIRE_THAT(code == 0 || code == (attribute ? 800 : 801));
        // What the exporter may not do, the importer may not either; with a channel these bytes are no valid handle.
        REQUIRE_CODE(cuMemImportFromShareableHandle(&imported, &bytes, fabric), code == 0 ? 999 : 801);
        REQUIRE_CODE(cuMemImportFromShareableHandle(&imported, nullptr, fabric), 1);
        const char* const machine = std::getenv("ISTHMUS_SIM");
        REQUIRE_THAT((code == 0) == (std::strcmp(machine, "gb200") == 0));
    });
}

TEST(SimSharing, AFabricHandleCarriesTheMemoryWhileItsExporterHoldsIt) {
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                ::setenv("ISTHMUS_SIM", "gb200", 1);
                open_device();
                const MemoryHandle handle = physical(granule, properties_of(on_device, 1, fabric));
                const Address address = reserved(granule);
                REQUIRE_CODE(cuMemMap(address, granule, 0, handle, 0), 0);
                REQUIRE_CODE(give_access(address, granule, 0), 0);
                fill(address, 5);
                ShareableBytes bytes = {};
                REQUIRE_CODE(cuMemExportToShareableHandle(&bytes, handle, fabric, 0), 0);
                line.send(bytes);
                line.listen();
                REQUIRE_THAT(first_int(address) == 6);
                REQUIRE_CODE(cuMemUnmap(address, granule), 0);
                REQUIRE_CODE(cuMemRelease(handle), 0);
                line.tell();
                line.listen();
            },
            [](const Line& line) {
                ::setenv("ISTHMUS_SIM", "gb200", 1);
                open_device();
                ShareableBytes bytes = line.receive<ShareableBytes>();
                MemoryHandle handle = 0, late = 0;
                REQUIRE_CODE(cuMemImportFromShareableHandle(&handle, &bytes, fabric), 0);
                AllocationProperties properties = {};
                REQUIRE_CODE(cuMemGetAllocationPropertiesFromHandle(&properties, handle), 0);
                REQUIRE_THAT(properties.location.id == 1);
                const Address address = mapped_and_open(handle, granule);
                REQUIRE_THAT(first_int(address) == 5);
                fill(address, 6);
                line.tell();
                line.listen();
                REQUIRE_THAT(first_int(address) == 6);  // imported memory stays
                REQUIRE_CODE(cuMemImportFromShareableHandle(&late, &bytes, fabric), 999);
                line.tell();
            });
    });
}

}  // namespace
}  // namespace isthmus::sim::test
