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
        std::uint64_t bytes = 0;
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 0, &bytes), 0);
        REQUIRE_THAT(bytes == 4096 && pool_figure(pool, 7) == 0);
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 4, &bytes), 1);
        REQUIRE_CODE(cuGraphDestroy(scene.graph), 0);
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 0, &bytes), 0);
        REQUIRE_THAT(bytes == 0);
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 1, &bytes), 0);
        REQUIRE_THAT(bytes == 4096);
        bytes = 0;
        REQUIRE_CODE(cuDeviceSetGraphMemAttribute(0, 1, &bytes), 0);
        REQUIRE_CODE(cuDeviceGetGraphMemAttribute(0, 1, &bytes), 0);
        REQUIRE_THAT(bytes == 0);
        REQUIRE_CODE(cuDeviceGraphMemTrim(0), 0);
        REQUIRE_CODE(cuDeviceGraphMemTrim(50), 101);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
