// SPDX-License-Identifier: Apache-2.0
// Access to mapped memory: none before cuMemSetAccess, then each device and the CPU as granted.
#include "sim_virtual_scene.hpp"

#include <cstring>

namespace isthmus::sim::test {
namespace {

unsigned long long access_of(Address address, Location where) {
    unsigned long long flags = 99;
    REQUIRE_CODE(cuMemGetAccess(&flags, &where, address), 0);
    return flags;
}

TEST(SimVirtualAccess, AKernelFaultsOnMemoryMappedWithoutAccess) {  // keeps V8's ground
    in_own_process(
        [] {
            open_device();
            const Address base = mapped(granule);
            REQUIRE_CODE(launch_multiply(nullptr, base, 16, 3), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 700);
        },
        "mapped without access for this device");
}

TEST(SimVirtualAccess, APointerThatNobodyCheckedFaultsToo) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(base)), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
}

TEST(SimVirtualAccess, APointerThatNobodyCheckedReachesWhatIsOpen) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(base)), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(first_int(base) == 1);
    });
}

TEST(SimVirtualAccess, TheCpuFaultsOnMemoryWithoutAccess) {
    in_own_process_faults(
        [] {
            open_device();
            *as_pointer(mapped(granule)) = 1;
        },
        "mapped without access for anybody");
}

TEST(SimVirtualAccess, TheCpuFaultsOnDeviceMemoryThatOnlyDevicesReach) {  // keeps A6
    in_own_process_faults(
        [] {
            open_device();
            const Address base = mapped(granule);
            REQUIRE_CODE(give_access(base, granule), 0);
            REQUIRE_CODE(launch_multiply(nullptr, base, 16, 3), 0);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
            *as_pointer(base) = 1;
        },
        "memory of device 0");
}

TEST(SimVirtualAccess, AccessIsGivenToWholeMappingsOnly) {  // keeps V9
    in_own_process([] {
        open_device();
        const Address base = reserved(3 * granule);
        const MemoryHandle handle = physical(granule);
        AccessDescription one = {{on_device, 0}, write_access};
        REQUIRE_CODE(cuMemSetAccess(base, granule, &one, 1), 1);  // nothing is mapped there
        REQUIRE_CODE(cuMemMap(base, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemMap(base + granule, granule, 0, handle, 0), 0);
        REQUIRE_CODE(cuMemSetAccess(base, 3 * granule, &one, 1), 1);  // a gap at the end
        REQUIRE_CODE(cuMemSetAccess(base, granule / 2, &one, 1), 1);
        REQUIRE_CODE(cuMemSetAccess(base, granule, nullptr, 1), 1);
        REQUIRE_CODE(cuMemSetAccess(base, granule, &one, 0), 1);
        one.flags = 2;
        REQUIRE_CODE(cuMemSetAccess(base, granule, &one, 1), 1);
        one = {{on_device, 50}, write_access};
        REQUIRE_CODE(cuMemSetAccess(base, granule, &one, 1), 101);
        one = {{on_host, 0}, write_access};
        REQUIRE_CODE(cuMemSetAccess(base, granule, &one, 1), 1);  // refused for a device's memory
        REQUIRE_CODE(give_access(base + granule, granule, 0, read_access), 0);
        REQUIRE_THAT(access_of(base, {on_device, 0}) == 0 && access_of(base + granule, {on_device, 0}) == 1);
        unsigned long long flags = 0;
        const Location nowhere = {0, 0}, here = {on_device, 0};
        REQUIRE_CODE(cuMemGetAccess(&flags, &here, base + 2 * granule), 1);
        REQUIRE_CODE(cuMemGetAccess(&flags, &nowhere, base), 1);
        REQUIRE_CODE(cuMemGetAccess(nullptr, &here, base), 1);
    });
}

TEST(SimVirtualAccess, ReadAccessLetsFillsAndKernelsWriteNothing) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule, 0, read_access), 0);
        REQUIRE_THAT(first_int(base) == 0);
        REQUIRE_CODE(cuMemsetD32Async(base, 1, 1, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
}

TEST(SimVirtualAccess, AnArgumentMayLieAcrossMappingsAndEachHasToBeOpen) {
    in_own_process([] {
        open_device();
        const Address base = reserved(2 * granule);
        REQUIRE_CODE(cuMemMap(base, granule, 0, physical(granule), 0), 0);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(cuMemsetD32_v2(base + granule - 8, 1, 4), 1);  // continues into unmapped addresses
        REQUIRE_CODE(cuMemMap(base + granule, granule, 0, physical(granule), 0), 0);
        REQUIRE_CODE(give_access(base + granule, granule), 0);
        REQUIRE_CODE(launch_multiply(nullptr, base + granule - 8, 4, 3), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(give_access(base + granule, granule, 0, no_access), 0);
        REQUIRE_CODE(launch_multiply(nullptr, base + granule - 8, 4, 3), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
}

TEST(SimVirtualAccess, AccessMayBeAnotherDevicesAlone) {  // keeps A15, A16, V9
    in_own_process([] {
        int devices = 0, can = 0;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        REQUIRE_CODE(cuDeviceCanAccessPeer(&can, 1, 0), 0);
        open_device(1);
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule, 1), can != 0 ? 0 : 101);
        if (can == 0) return;
        REQUIRE_THAT(access_of(base, {on_device, 0}) == 0 && access_of(base, {on_device, 1}) == 3);
        REQUIRE_CODE(launch_multiply(nullptr, base, 16, 3), 0);  // without cuCtxEnablePeerAccess
        REQUIRE_CODE(launch_wild_store(nullptr, reinterpret_cast<void*>(base)), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(first_int(base) == 1);
        open_device(0);
        REQUIRE_CODE(cuMemsetD32Async(base, 1, 1, nullptr), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 700);
    });
}

TEST(SimVirtualAccess, MemoryOfTheHostIsOpenToWhomItWasGiven) {
    in_own_process([] {
        open_device();
        if (fact(attribute::node_virtual_memory) == 0) return;
        const Address base = mapped(granule, properties_of(on_node));
        const AccessDescription both[] = {{{on_device, 0}, write_access}, {{on_node, 0}, write_access}};
        REQUIRE_CODE(cuMemSetAccess(base, granule, both, 2), 0);
        *as_pointer(base) = 5;
        REQUIRE_CODE(launch_multiply(nullptr, base, 1, 3), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(*as_pointer(base) == 15);
        REQUIRE_THAT(access_of(base, {on_node, 0}) == 3);
        if (fact(attribute::host_virtual_memory) == 0) return;
        const Address plain = mapped(granule, properties_of(on_host));
        REQUIRE_CODE(cuMemSetAccess(plain, granule, both, 2), 1);  // access by node requires memory on a node
    });
}

TEST(SimVirtualAccess, UnmappingWaitsAndStillProtectsNothing) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule);
        REQUIRE_CODE(give_access(base, granule), 0);
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(launch_multiply(stream, base, 16, 3), 0);
        wait_until(gate.begun);
        gate.released.store(1);
        const Result code = cuMemUnmap(base, granule);
        REQUIRE_THAT(code == 0 || code == 700);  // depends on whether the kernel had ended
        REQUIRE_THAT(isthmus_sim_live("gpu_work") == 0 && isthmus_sim_live("mappings") == 0);
    });
}

TEST(SimVirtualAccess, PointersTellOfTheirMapping) {
    in_own_process([] {
        open_device();
        const Address base = mapped(granule), inside = base + 64;
        unsigned flags = 9, type = 0;
        int device = 9;
        unsigned char yes = 9;
        Address start = 0;
        std::size_t bytes = 0;
        Context* context = nullptr;
        REQUIRE_CODE(cuPointerGetAttribute(&flags, 16, inside), 0);
        REQUIRE_THAT(flags == 0);
        REQUIRE_CODE(give_access(base, granule, 0, read_access), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&flags, 16, inside), 0);
        REQUIRE_THAT(flags == 1);
        REQUIRE_CODE(give_access(base, granule), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&flags, 16, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&device, 9, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&yes, 13, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&start, 19, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&bytes, 18, inside), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&context, 1, inside), 0);
        REQUIRE_THAT(flags == 3 && type == 2 && device == 0 && yes == 1 && start == base && bytes == granule);
        REQUIRE_THAT(context == nullptr);
        REQUIRE_CODE(cuPointerGetAttribute(&yes, 10, inside), 0);
        REQUIRE_THAT(yes == 0);
        REQUIRE_CODE(cuMemUnmap(base, granule), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&flags, 16, inside), 1);
        REQUIRE_CODE(cuPointerGetAttribute(&yes, 13, inside), 0);  // reserved, not mapped
        REQUIRE_CODE(cuPointerGetAttribute(&start, 11, inside), 0);
        REQUIRE_THAT(yes == 0 && start == base);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
