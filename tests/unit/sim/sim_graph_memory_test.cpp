// SPDX-License-Identifier: Apache-2.0
// Memory that graphs own: fixed addresses, one live instance, frees inside and outside of the graph.
#include "sim_test.hpp"

namespace isthmus::sim::test {
namespace {

constexpr unsigned long long auto_free = 1;

struct OwningGraph {
    Stream* stream;
    Address memory;
    GraphObject* graph;
};

// A graph that allocates and fills 4 KiB, and optionally frees it.
OwningGraph capture(bool with_free) {
    OwningGraph scene = {new_stream(), 0, nullptr};
    REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, 0), 0);
    scene.memory = pool_memory(4096, scene.stream);
    REQUIRE_CODE(cuMemsetD32Async(scene.memory, 5, 1024, scene.stream), 0);
    if (with_free) REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
    REQUIRE_CODE(cuStreamEndCapture(scene.stream, &scene.graph), 0);
    return scene;
}

GraphExec* instantiate(GraphObject* graph, unsigned long long flags = 0) {
    GraphExec* instance = nullptr;
    REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, flags), 0);
    return instance;
}

std::uint64_t figure(int id) {
    std::uint64_t bytes = 0;
    REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, id, &bytes), 0);
    return bytes;
}

std::size_t free_bytes() {
    std::size_t left = 0, total = 0;
    REQUIRE_CODE(cuMemGetInfo_v2(&left, &total), 0);
    return left;
}

TEST(SimGraphMemory, WhatALaunchLeavesAllocatedIsFreedOnceOutsideOfTheGraph) {  // keeps K13's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(false);
        GraphExec* instance = instantiate(scene.graph);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 1);  // not allocated yet
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 1);  // documented: the earlier launch's memory is not freed
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 1024, 3), 0);
        int back = 0;
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&back, scene.memory, 4, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_THAT(back == 15);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 1);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);  // the same address once more
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 1024, 3), 0);
        REQUIRE_CODE(cuMemFree_v2(scene.memory), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 700);
    });
}

TEST(SimGraphMemory, MemoryFreedInItsGraphIsNotFreedOutsideOfIt) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(true);
        GraphExec* instance = instantiate(scene.graph);
        for (int i = 0; i < 3; ++i) REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 1);
        REQUIRE_CODE(cuMemFree_v2(scene.memory), 1);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    });
}

TEST(SimGraphMemory, AutoFreeLetsALaunchFollowAnother) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(false);
        GraphExec* instance = instantiate(scene.graph, auto_free);
        for (int i = 0; i < 3; ++i) REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_THAT(isthmus_sim_live("graph") == 1);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
    });
}

TEST(SimGraphMemory, ThereIsOneLiveInstanceAndNoClone) {  // keeps K13's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(true);
        GraphExec *instance = instantiate(scene.graph), *second = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&second, scene.graph, 0), 801);
        GraphObject* clone = nullptr;
        REQUIRE_CODE(cuGraphClone(&clone, scene.graph), 801);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&second, scene.graph, 0), 0);
    });
}

TEST(SimGraphMemory, AGraphWithoutMemoryIsClonedAndInstantiatedTwice) {
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = device_memory(4096);
        REQUIRE_CODE(cuMemsetD32Async(memory, 1, 1024, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1, 1), 0);
        GraphObject *graph = nullptr, *clone = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 1024, 3), 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
        REQUIRE_CODE(cuGraphClone(&clone, graph), 0);
        REQUIRE_CODE(cuGraphLaunch(instantiate(graph), stream), 0);
        REQUIRE_CODE(cuGraphLaunch(instantiate(graph), stream), 0);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_CODE(cuGraphLaunch(instantiate(clone), stream), 0);
        int back = 0;
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&back, memory, 4, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(back == 27);
    });
}

TEST(SimGraphMemory, LiveMemoryOutlivesItsGraphUntilItIsFreed) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(false);
        GraphExec* instance = instantiate(scene.graph);
        Gate gate;
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(launch_hold(scene.stream, gate), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 1024, 3), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(scene.graph), 0);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(isthmus_sim_live("graph") == 0 && isthmus_sim_live("pool") == 0);
    });
}

TEST(SimGraphMemory, AnotherGraphMayFreeItAndACaptureFreesItOnce) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(false);
        GraphObject* freeing = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, 0), 0);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 1);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &freeing), 0);
        GraphExec* allocates = instantiate(scene.graph);
        GraphExec* frees = instantiate(freeing);
        REQUIRE_CODE(cuGraphLaunch(frees, scene.stream), 1);
        REQUIRE_CODE(cuGraphLaunch(allocates, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(frees, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(allocates, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(frees, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    });
}

TEST(SimGraphMemory, ItIsTheDevicesFigureAndNotThePools) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Pool* pool = nullptr;
        REQUIRE_CODE(cuDeviceGetDefaultMemPool(&pool, 0), 0);
        const OwningGraph scene = capture(true);
        constexpr std::uint64_t step = std::uint64_t{32} << 20;
        REQUIRE_THAT(figure(0) == 0);  // no launch yet
        const std::size_t free_before = free_bytes();
        GraphExec* const instance = instantiate(scene.graph);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_THAT(figure(0) == step && figure(2) == step && pool_figure(pool, 7) == 0);
        REQUIRE_THAT(free_before - free_bytes() == step);
        std::uint64_t bytes = 0;
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 4, &bytes), 1);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_THAT(figure(0) == step);  // a second launch uses it again
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(scene.graph), 0);
        REQUIRE_THAT(figure(0) == step);  // until a trim
        REQUIRE_CODE(cuDeviceGraphMemTrim(0), 0);
        REQUIRE_THAT(figure(0) == 0 && figure(2) == 0 && figure(1) == step && figure(3) == step);
        REQUIRE_THAT(free_bytes() == free_before);
        bytes = 0;
        REQUIRE_CODE(cuDeviceSetGraphMemAttribute(0, 1, &bytes), 0);
        REQUIRE_THAT(figure(1) == 0 && figure(3) == step);  // each mark by itself
        REQUIRE_CODE(cuDeviceSetGraphMemAttribute(0, 3, &bytes), 0);
        REQUIRE_THAT(figure(3) == 0);
        REQUIRE_CODE(cuDeviceSetGraphMemAttribute(0, 0, &bytes), 1);
        REQUIRE_CODE(cuDeviceGraphMemTrim(50), 101);
    });
}

TEST(SimGraphMemory, ATrimKeepsWhatALaunchLeftAllocated) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(false);
        REQUIRE_CODE(cuGraphLaunch(instantiate(scene.graph), scene.stream), 0);
        REQUIRE_CODE(cuDeviceGraphMemTrim(0), 0);
        REQUIRE_THAT(figure(0) == std::uint64_t{32} << 20);
        REQUIRE_CODE(cuMemFreeAsync(scene.memory, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        REQUIRE_CODE(cuDeviceGraphMemTrim(0), 0);
        REQUIRE_THAT(figure(0) == 0);
    });
}

TEST(SimGraphMemory, ALaunchWithoutRoomForItsMemoryIsRefused) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        const OwningGraph scene = capture(true);
        GraphExec* const instance = instantiate(scene.graph);
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(0, std::uint64_t{16} << 20) == 0);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 2);
        REQUIRE_THAT(isthmus_sim_set_memory_bytes(0, 0) == 0);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    });
}

AllocationNodeParameters wanted(std::size_t bytes) {
    AllocationNodeParameters wanted = {};
    wanted.properties.allocation_type = 1;
    wanted.properties.location = {1, 0};
    wanted.bytes = bytes;
    return wanted;
}

TEST(SimGraphMemory, NodesAllocateAndFreeWithoutACapture) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        AllocationNodeParameters asked = wanted(4096);
        const AccessDescription own = {{1, 0}, 3};
        asked.access = &own;
        asked.access_count = 1;
        NodeObject *allocates = nullptr, *fills = nullptr, *frees = nullptr;
        REQUIRE_CODE(cuGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &asked), 0);
        REQUIRE_THAT(asked.address != 0);
        REQUIRE_CODE(cuGraphAddEmptyNode(&fills, graph, &allocates, 1), 0);
        REQUIRE_CODE(cuGraphAddMemFreeNode(&frees, graph, &fills, 1, asked.address), 0);
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(allocates, &type), 0);
        REQUIRE_THAT(type == 10);
        REQUIRE_CODE(cuGraphNodeGetType(frees, &type), 0);
        REQUIRE_THAT(type == 11);

        AllocationNodeParameters told = {};
        REQUIRE_CODE(cuGraphMemAllocNodeGetParams(allocates, &told), 0);
        REQUIRE_THAT(told.address == asked.address && told.bytes == 4096 && told.properties.location.type == 1);
        REQUIRE_THAT(told.access_count == 1 && told.access[0].flags == 3);
        Address freed = 0;
        REQUIRE_CODE(cuGraphMemFreeNodeGetParams(frees, &freed), 0);
        REQUIRE_THAT(freed == asked.address);
        REQUIRE_CODE(cuGraphMemAllocNodeGetParams(frees, &told), 1);
        REQUIRE_CODE(cuGraphMemFreeNodeGetParams(allocates, &freed), 1);
        REQUIRE_CODE(cuGraphMemAllocNodeGetParams(allocates, nullptr), 1);

        REQUIRE_CODE(cuGraphAddMemFreeNode(&frees, graph, nullptr, 0, asked.address), 1);  // twice in a graph
        REQUIRE_CODE(cuGraphAddMemFreeNode(&frees, graph, nullptr, 0, asked.address + 8), 1);
        REQUIRE_CODE(cuGraphAddMemFreeNode(&frees, graph, nullptr, 0, device_memory(64)), 1);
        Stream* const stream = new_stream();
        GraphExec* const instance = instantiate(graph);
        for (int i = 0; i < 2; ++i) REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_THAT(isthmus_sim_live("graph") == 0);
    });
}

TEST(SimGraphMemory, ManagedMemoryOfAGraphIsDeviceMemory) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        GraphObject* graph = nullptr;
        NodeObject* node = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        AllocationNodeParameters asked = wanted(4096);
        asked.properties.allocation_type = 2;
        if (version() < 13000) {
            REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &asked), 1);
            return;
        }
        asked.properties.location = {0, 0};
        REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &asked), 801);
        asked.properties.location = {1, 0};
        REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &asked), 0);
        AllocationNodeParameters told = {};
        REQUIRE_CODE(cuGraphMemAllocNodeGetParams(node, &told), 0);
        REQUIRE_THAT(told.properties.allocation_type == 2 && told.address == asked.address);
        Stream* const stream = new_stream();
        REQUIRE_CODE(cuGraphLaunch(instantiate(graph), stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(figure(0) == std::uint64_t{32} << 20);
        int managed = 9, type = 0;
        REQUIRE_CODE(cuPointerGetAttribute(&managed, 8, asked.address), 0);
        REQUIRE_CODE(cuPointerGetAttribute(&type, 2, asked.address), 0);
        REQUIRE_THAT(managed == 0 && type == 2);
    });
}

TEST(SimGraphMemory, WrongAllocationNodesAreRefused) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        GraphObject* graph = nullptr;
        NodeObject* node = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        const auto refused = [&](const auto& change, int code = 1) {
            AllocationNodeParameters asked = wanted(4096);
            change(asked);
            REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &asked), code);
        };
        refused([](auto& asked) { asked.bytes = 0; });
        refused([](auto& asked) { asked.properties.handle_types = 1; });  // documented: no IPC
        refused([](auto& asked) { asked.properties.location = {2, 0}; }, 801);
        refused([](auto& asked) { asked.properties.location = {3, 0}; }, 801);
        refused([](auto& asked) { asked.properties.location = {0, 0}; });
        refused([](auto& asked) { asked.properties.location = {5, 0}; });
        refused([](auto& asked) { asked.properties.location.id = 50; });
        refused([](auto& asked) { asked.properties.allocation_type = 0; });
        refused([](auto& asked) { asked.access_count = 1; });
        const AccessDescription host = {{2, 0}, 3}, wrong = {{1, 0}, 2};
        refused([&](auto& asked) { asked.access = &host, asked.access_count = 1; });
        refused([&](auto& asked) { asked.access = &wrong, asked.access_count = 1; });
        AllocationNodeParameters asked = wanted(std::size_t{1} << 60);
        REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &asked), 2);
        REQUIRE_CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, nullptr), 1);
        std::size_t count = 9;
        REQUIRE_CODE(cuGraphGetNodes(graph, nullptr, &count), 0);
        REQUIRE_THAT(count == 0 && isthmus_sim_live("graph") == 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
