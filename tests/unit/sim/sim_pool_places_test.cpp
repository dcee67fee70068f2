// SPDX-License-Identifier: Apache-2.0
// Pools of the host, of its nodes, of managed memory and of other devices: which machines have them, and which devices
// access them.
#include "sim_test.hpp"

#include <cstring>

namespace isthmus::sim::test {
namespace {

constexpr int pinned = 1, managed = 2;
constexpr int nowhere = 0, on_device = 1, on_host = 2, on_node = 3, on_callers_node = 4;
constexpr int node_pools = 142, host_pools = 144;

Result create(Pool** pool, int type, Location where, int handles = 0) {
    PoolProperties properties = {};
    properties.allocation_type = type;
    properties.location = where;
    properties.handle_types = handles;
    return cuMemPoolCreate(pool, &properties);
}

TEST(SimPoolPlaces, APoolsPropertiesMustNameAPlaceThatTheMachineHas) {  // keeps K7's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Pool* pool = nullptr;
        REQUIRE_CODE(create(&pool, pinned, {on_device, 77}), 101);
        REQUIRE_CODE(create(&pool, pinned, {nowhere, 0}), 1);
        REQUIRE_CODE(create(&pool, pinned, {on_callers_node, 0}), 1);
        REQUIRE_CODE(create(&pool, 0, {on_device, 0}), 1);
        REQUIRE_CODE(create(&pool, pinned, {on_host, 0}), fact(host_pools) != 0 ? 0 : 801);
        REQUIRE_CODE(create(&pool, pinned, {on_host, 0}, 1), fact(host_pools) != 0 ? 1 : 801);
        REQUIRE_CODE(create(&pool, pinned, {on_node, 0}), fact(node_pools) != 0 ? 0 : 801);
        if (fact(node_pools) != 0) REQUIRE_CODE(create(&pool, pinned, {on_node, 63}), 1);
        REQUIRE_CODE(create(&pool, managed, {on_device, 0}), version() >= 13000 ? 0 : 1);
        constexpr int handles = 119;
        REQUIRE_CODE(create(&pool, pinned, {on_device, 0}, 1), (fact(handles) & 1) != 0 ? 0 : 801);
        REQUIRE_CODE(cuMemPoolCreate(nullptr, nullptr), 1);
    });
}

TEST(SimPoolPlaces, TheHostsPoolsAreTheHostsUntilADeviceIsGivenAccess) {
    in_own_process([] {
        open_device();
        if (fact(host_pools) == 0) return;
        Stream* stream = new_stream();
        Pool* pool = nullptr;
        REQUIRE_CODE(create(&pool, pinned, {on_host, 0}), 0);
        const Address memory = pool_memory(4096, stream, pool);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        int* const numbers = reinterpret_cast<int*>(memory);
        numbers[1023] = 7;  // the CPU has access
        unsigned type = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, memory), 0);
        REQUIRE_THAT(type == 1);
        Location device = {on_device, 0};
        int flags = 9;
        REQUIRE_CODE(cuMemPoolGetAccess(&flags, pool, &device), 0);
        REQUIRE_THAT(flags == 0);
        AccessDescription give = {device, 3};
        REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(numbers[1023] == 21);
        give.flags = 0;
        REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

TEST(SimPoolPlaces, ManagedPoolsGiveManagedMemoryThatIsFreedInStreamOrder) {  // keeps K13's ground
    in_own_process([] {
        open_device();
        Pool* pool = nullptr;
        if (!pools() || version() < 13000) return;
        REQUIRE_CODE(create(&pool, managed, {on_device, 0}), 0);
        Stream* stream = new_stream();
        const Address memory = pool_memory(4096, stream, pool);
        unsigned char is_managed = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&is_managed, 8, memory), 0);
        REQUIRE_THAT(is_managed == 1 && isthmus_sim_live("managed_pool") == 1);
        REQUIRE_CODE(cuMemsetD32Async(memory, 5, 1024, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(*reinterpret_cast<int*>(memory) == 15);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(isthmus_sim_live("managed") == 0);
    });
}

TEST(SimPoolPlaces, AManagedPoolMadeBeforeACaptureAllocatesInsideIt) {  // keeps K13's ground
    in_own_process([] {
        open_device();
        Pool* pool = nullptr;
        if (!pools() || version() < 13000) return;
        REQUIRE_CODE(create(&pool, managed, {nowhere, 0}), 0);
        Stream* stream = new_stream();
        const Address result = device_memory(4096);
        REQUIRE_CODE(launch_multiply(stream, result, 1, 1), 0);  // loads the kernel
        GraphObject* graph = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        const Address memory = pool_memory(4096, stream, pool);
        REQUIRE_CODE(cuMemsetD32Async(memory, 5, 1024, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuMemcpyDtoDAsync_v2(result, memory, 4096, stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        int back = 0;
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&back, result, 4, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back == 15);
    });
}

TEST(SimPoolPlaces, EveryPlaceHasADefaultAndACurrentPool) {
    in_own_process([] {
        open_device();
        if (!pools() || version() < 13000) return;
        Pool *of_device = nullptr, *standard = nullptr, *current = nullptr;
        Location device = {on_device, 0};
        REQUIRE_CODE(cuDeviceGetDefaultMemPool(&of_device, 0), 0);
        REQUIRE_CODE(cuMemGetDefaultMemPool(&standard, &device, pinned), 0);
        REQUIRE_THAT(standard == of_device);
        REQUIRE_CODE(cuMemGetDefaultMemPool(&standard, &device, managed), 0);
        REQUIRE_THAT(standard != of_device);
        Pool* mine = nullptr;
        REQUIRE_CODE(create(&mine, managed, device), 0);
        REQUIRE_CODE(cuMemSetMemPool(&device, pinned, mine), 1);
        REQUIRE_CODE(cuMemSetMemPool(&device, managed, mine), 0);
        REQUIRE_CODE(cuMemGetMemPool(&current, &device, managed), 0);
        REQUIRE_THAT(current == mine);
        REQUIRE_CODE(cuMemPoolDestroy(mine), 0);
        REQUIRE_CODE(cuMemGetMemPool(&current, &device, managed), 0);
        REQUIRE_THAT(current == standard);
        REQUIRE_CODE(cuMemPoolDestroy(standard), 1);
        Location none = {nowhere, 0};
        REQUIRE_CODE(cuMemGetDefaultMemPool(&current, &none, pinned), 1);
        REQUIRE_CODE(cuMemGetDefaultMemPool(&current, &none, managed), 0);
    });
}

TEST(SimPoolPlaces, PoolMemoryOfAnotherDeviceNeedsThePoolsAccessAndPeerAccessDoesNotDo) {  // keeps A5
    in_own_process([] {
        int can = 0;
        REQUIRE_CODE(cuInit(0), 0);
        if (cuDeviceCanAccessPeer(&can, 0, 1) != 0 || !can) return;
        Context* second = open_device(1);
        Pool* pool = nullptr;
        REQUIRE_CODE(create(&pool, pinned, {on_device, 1}), 0);
        Stream* theirs = new_stream();
        const Address memory = pool_memory(4096, theirs, pool);
        REQUIRE_CODE(cuStreamSynchronize(theirs), 0);
        open_device(0);
        Stream* stream = new_stream();
        REQUIRE_CODE(cuCtxEnablePeerAccess(second, 0), 0);
        AccessDescription give = {{on_device, 0}, 3};
        REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        AccessDescription owner = {{on_device, 1}, 0};
        REQUIRE_CODE(cuMemPoolSetAccess(pool, &owner, 1), 101);  // the owner's own access cannot be revoked
        give.flags = 0;
        REQUIRE_CODE(cuMemPoolSetAccess(pool, &give, 1), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 700);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
