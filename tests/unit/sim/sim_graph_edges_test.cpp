// SPDX-License-Identifier: Apache-2.0
// Edges that are added and removed, nodes that are taken out, parameters of instantiation, user objects of graphs, and
// images from files.
#include "sim_capture_scene.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace isthmus::sim::test {
namespace {

struct Three {
    GraphObject* graph = nullptr;
    NodeObject* nodes[3] = {};
    Three() {
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        for (NodeObject*& node : nodes) REQUIRE_CODE(cuGraphAddEmptyNode(&node, graph, nullptr, 0), 0);
    }
    Result add(int from, int to) { return cuGraphAddDependencies_v2(graph, nodes + from, nodes + to, nullptr, 1); }
    Result remove(int from, int to) {
        return cuGraphRemoveDependencies_v2(graph, nodes + from, nodes + to, nullptr, 1);
    }
    std::size_t edges() {
        std::size_t count = 99;
        REQUIRE_CODE(cuGraphGetEdges(graph, nullptr, nullptr, &count), 0);
        return count;
    }
};

TEST(SimGraphEdges, AreAddedAndRemovedOnce) {
    in_own_process([] {
        open_device();
        Three g;
        REQUIRE_CODE(g.add(0, 1), 0);
        REQUIRE_CODE(g.add(0, 1), 1);  // documented
        REQUIRE_CODE(cuGraphAddDependencies(g.graph, g.nodes + 1, g.nodes + 2, 1), 0);
        REQUIRE_THAT(g.edges() == 2);
        REQUIRE_CODE(g.remove(0, 2), 1);  // documented
        REQUIRE_CODE(g.remove(0, 1), 0);
        REQUIRE_CODE(cuGraphRemoveDependencies(g.graph, g.nodes + 1, g.nodes + 2, 1), 0);
        REQUIRE_THAT(g.edges() == 0);
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, nullptr, nullptr, nullptr, 0), 0);  // documented: ignored
    });
}

TEST(SimGraphEdges, WrongOnesChangeNothing) {
    in_own_process([] {
        open_device();
        Three g, other;
        REQUIRE_CODE(g.add(0, 1), 0);
        REQUIRE_CODE(g.add(1, 0), 1);  // a circle
        REQUIRE_CODE(g.add(1, 1), 1);
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, other.nodes, g.nodes, nullptr, 1), 1);
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, nullptr, g.nodes, nullptr, 1), 1);
        REQUIRE_CODE(cuGraphAddDependencies_v2(nullptr, g.nodes, g.nodes + 1, nullptr, 1), 1);
        NodeObject* const from[] = {g.nodes[1], g.nodes[0]};
        NodeObject* const to[] = {g.nodes[2], g.nodes[1]};
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, from, to, nullptr, 2), 1);  // the second one exists
        REQUIRE_THAT(g.edges() == 1);
        const EdgeData plain = {}, programmatic = {1, 0, 1, {}};
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, g.nodes + 1, g.nodes + 2, &programmatic, 1), 801);
        REQUIRE_CODE(cuGraphAddDependencies_v2(g.graph, g.nodes + 1, g.nodes + 2, &plain, 1), 0);
    });
}

TEST(SimGraphEdges, ANodeIsTakenOutWithItsEdges) {
    in_own_process([] {
        open_device();
        Three g;
        REQUIRE_CODE(g.add(0, 1), 0);
        REQUIRE_CODE(g.add(0, 2), 0);
        REQUIRE_CODE(g.add(1, 2), 0);
        GraphExec* before = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&before, g.graph, 0), 0);
        REQUIRE_CODE(cuGraphDestroyNode(g.nodes[1]), 0);
        REQUIRE_CODE(cuGraphDestroyNode(g.nodes[1]), 1);
        std::size_t count = 9;
        NodeObject* left[3] = {};
        REQUIRE_CODE(cuGraphGetNodes(g.graph, nullptr, &count), 0);
        REQUIRE_THAT(count == 2 && g.edges() == 1);
        count = 3;
        REQUIRE_CODE(cuGraphNodeGetDependencies(g.nodes[2], left, &count), 0);
        REQUIRE_THAT(count == 1 && left[0] == g.nodes[0]);  // handles of the others stay right
        Stream* const stream = new_stream();
        REQUIRE_CODE(cuGraphLaunch(before, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
}

TEST(SimGraphEdges, GraphsThatOwnMemoryKeepNodesAndEdges) {
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Three g;
        REQUIRE_CODE(g.add(0, 1), 0);
        AllocationNodeParameters asked = {};
        asked.properties.allocation_type = 1;
        asked.properties.location = {1, 0};
        asked.bytes = 4096;
        NodeObject* node = nullptr;
        REQUIRE_CODE(cuGraphAddMemAllocNode(&node, g.graph, nullptr, 0, &asked), 0);
        REQUIRE_CODE(cuGraphDestroyNode(g.nodes[0]), 801);
        REQUIRE_CODE(g.remove(0, 1), 801);
        REQUIRE_CODE(g.add(1, 2), 0);
    });
}

TEST(SimGraphEdges, AnOpenCaptureKeepsItsNodes) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, relaxed), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
        GraphObject* graph = nullptr;
        int status = 0;
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(scene.stream, &status, nullptr, &graph, nullptr, nullptr), 0);
        NodeObject* node = nullptr;
        std::size_t count = 1;
        REQUIRE_CODE(cuGraphGetNodes(graph, &node, &count), 0);
        REQUIRE_CODE(cuGraphDestroyNode(node), 1);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        REQUIRE_CODE(cuGraphDestroyNode(node), 0);
    });
}

TEST(SimGraphInstances, ParametersSayHowItWent) {
    in_own_process([] {
        open_device();
        Three g;
        Stream* const stream = new_stream();
        InstantiateParameters asked = {8 | 2, stream, g.nodes[0], 7};
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &asked), 0);
        REQUIRE_THAT(asked.result == 0 && asked.error_node == nullptr);
        std::uint64_t flags = 0;
        REQUIRE_CODE(cuGraphExecGetFlags(instance, &flags), 0);
        REQUIRE_THAT(flags == 8);
        REQUIRE_CODE(cuGraphExecGetFlags(instance, nullptr), 1);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, nullptr), 1);
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, nullptr, &asked), 1);
        REQUIRE_THAT(asked.result == 1);
        asked.flags = 16;
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &asked), 1);
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
        asked.flags = 2;
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &asked), 400);
    });
}

TEST(SimGraphInstances, ForLaunchesByKernelsTheyHoldDeviceWorkOfOneContext) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject *graph = nullptr, *around = nullptr;
        NodeObject *node = nullptr, *host = nullptr;
        GraphExec* instance = nullptr;
        const auto answer = [&](GraphObject* of, unsigned long long flags, int code, int result) {
            InstantiateParameters asked = {flags, nullptr, nullptr, 9};
            REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, of, &asked), code);
            REQUIRE_THAT(asked.result == result);
            return asked.error_node;
        };
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        answer(graph, 4, 1, 1);  // empty
        const FillNodeParameters fill = {scene.memory, 0, 5, 4, 1, 1};
        REQUIRE_CODE(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, scene.context), 0);
        REQUIRE_THAT(answer(graph, 4 | 8, 0, 0) == nullptr);
        std::uint64_t flags = 0;
        REQUIRE_CODE(cuGraphExecGetFlags(instance, &flags), 0);
        REQUIRE_THAT(flags == 12);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        int value = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&value, scene.memory, sizeof value), 0);
        REQUIRE_THAT(value == 5);
        answer(graph, 4 | 1, 1, 1);  // memory that a launch frees
        REQUIRE_CODE(cuGraphCreate(&around, 0), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&node, around, nullptr, 0, graph), 0);
        answer(around, 4, 0, 0);
        REQUIRE_CODE(cuGraphAddEmptyNode(&host, graph, nullptr, 0), 0);
        REQUIRE_THAT(answer(graph, 4, 1, 3) == host);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 4), 1);
        answer(graph, 0, 0, 0);
        REQUIRE_CODE(cuGraphCreate(&around, 0), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&node, around, nullptr, 0, graph), 0);
        REQUIRE_THAT(answer(around, 4, 1, 3) == node);

        int pageable = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemAllocHost_v2(&pinned, 64), 0);
        for (void* const to : {static_cast<void*>(&pageable), pinned}) {
            Copy3D copy = {};
            copy.source.type = 2;
            copy.source.device = scene.memory;
            copy.destination.type = 1;
            copy.destination.host = to;
            copy.width_bytes = 4;
            copy.height = copy.depth = 1;
            REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
            REQUIRE_CODE(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, scene.context), 0);
            if (to == pinned) {
                answer(graph, 4, 0, 0);
            } else {
                REQUIRE_THAT(answer(graph, 4, 1, 3) == node);
            }
        }
        Context* another = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
        REQUIRE_CODE(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, another), 0);
        REQUIRE_THAT(answer(graph, 4, 1, 4) == node);
    });
}

TEST(SimGraphInstances, NeedACurrentContext) {  // keeps S16's ground
    in_own_process([] {
        Context* const context = open_device();
        Stream* const stream = new_stream();
        Three g;
        GraphExec* instance = nullptr;
        InstantiateParameters parameters = {};
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuGraphInstantiate(&instance, g.graph, nullptr, nullptr, 0), 201);
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, g.graph, nullptr, nullptr, 0), 201);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, g.graph, 0), 201);
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &parameters), 201);
        REQUIRE_THAT(instance == nullptr && parameters.result == 1);
        parameters.flags = 2;  // with an upload, whose stream has a context
        parameters.upload_stream = stream;
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &parameters), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        parameters = {};
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_CODE(cuGraphInstantiateWithParams(&instance, g.graph, &parameters), 0);
        REQUIRE_THAT(parameters.result == 0);
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);  // the stream has a context
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
    });
}

// Counts in the child process of a test.
std::atomic<int> destroyed{0};
void destroy(void* pointer) {
    destroyed += *static_cast<int*>(pointer);
}
void wait_for_destroyed(int count) {
    for (int i = 0; i < 60000 && destroyed != count; ++i) ::usleep(1000);
    REQUIRE_THAT(destroyed == count);
}

TEST(SimUserObjects, EndWithTheLastReference) {
    in_own_process([] {
        open_device();
        int one = 1;
        UserObject* object = nullptr;
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 2, 1), 0);
        REQUIRE_CODE(cuUserObjectRetain(object, 1), 0);
        REQUIRE_CODE(cuUserObjectRelease(object, 2), 0);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 1 && destroyed == 0);
        REQUIRE_CODE(cuUserObjectRelease(object, 2), 1);
        REQUIRE_CODE(cuUserObjectRelease(object, 1), 0);
        wait_for_destroyed(1);
        REQUIRE_CODE(cuUserObjectRelease(object, 1), 1);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 0);
    });
}

TEST(SimUserObjects, LiveAsLongAsAGraphOrItsInstances) {
    in_own_process([] {
        open_device();
        Three g;
        int one = 1;
        UserObject* object = nullptr;
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 1, 1), 0);
        REQUIRE_CODE(cuGraphRetainUserObject(g.graph, object, 1, 1), 0);  // the program's reference moves
        GraphExec* instance = nullptr;
        GraphObject* clone = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, g.graph, 0), 0);
        REQUIRE_CODE(cuGraphClone(&clone, g.graph), 0);
        REQUIRE_CODE(cuGraphReleaseUserObject(g.graph, object, 2), 1);
        REQUIRE_CODE(cuGraphReleaseUserObject(g.graph, object, 1), 0);
        REQUIRE_CODE(cuGraphReleaseUserObject(g.graph, object, 1), 1);
        REQUIRE_CODE(cuGraphDestroy(g.graph), 0);
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(clone), 0);
        REQUIRE_THAT(destroyed == 0);  // the launch holds it
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        wait_for_destroyed(1);
    });
}

TEST(SimUserObjects, AGraphTakesReferencesOfItsOwn) {
    in_own_process([] {
        open_device();
        Three g;
        int one = 1;
        UserObject* object = nullptr;
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 1, 1), 0);
        REQUIRE_CODE(cuGraphRetainUserObject(g.graph, object, 3, 0), 0);
        REQUIRE_CODE(cuUserObjectRelease(object, 1), 0);
        REQUIRE_THAT(destroyed == 0);
        REQUIRE_CODE(cuGraphReleaseUserObject(g.graph, object, 1), 0);
        REQUIRE_CODE(cuGraphDestroy(g.graph), 0);
        wait_for_destroyed(1);
    });
}

// A graph of `nodes` empty nodes that owns an object, which adds `weight` to `destroyed` at its end.
GraphObject* owning(int& weight, int nodes = 1) {
    GraphObject* graph = nullptr;
    UserObject* object = nullptr;
    REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
    for (int i = 0; i < nodes; ++i) {
        NodeObject* node = nullptr;
        REQUIRE_CODE(cuGraphAddEmptyNode(&node, graph, nullptr, 0), 0);
    }
    REQUIRE_CODE(cuUserObjectCreate(&object, &weight, destroy, 1, 1), 0);
    REQUIRE_CODE(cuGraphRetainUserObject(graph, object, 1, 1), 0);
    return graph;
}

GraphObject* around(GraphObject* child, NodeObject*& node) {
    GraphObject* graph = nullptr;
    REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
    REQUIRE_CODE(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child), 0);
    REQUIRE_CODE(cuGraphDestroy(child), 0);
    return graph;
}

Result update_from(GraphExec* instance, GraphObject* graph) {
    UpdateResult answer = {};
    return cuGraphExecUpdate_v2(instance, graph, &answer);
}

TEST(SimUserObjects, AnUpdatedInstanceHasThoseOfItsNewGraph) {
    in_own_process([] {
        open_device();
        int one = 1, ten = 10, hundred = 100;
        GraphExec* instance = nullptr;
        GraphObject *first = owning(one), *second = owning(ten), *larger = owning(hundred, 2);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, first, 0), 0);
        REQUIRE_CODE(cuGraphDestroy(first), 0);
        REQUIRE_CODE(update_from(instance, larger), 910);
        REQUIRE_CODE(cuGraphDestroy(larger), 0);
        wait_for_destroyed(100);  // a failed update takes nothing
        REQUIRE_CODE(update_from(instance, second), 0);
        wait_for_destroyed(101);
        REQUIRE_CODE(cuGraphDestroy(second), 0);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 1);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        wait_for_destroyed(111);
    });
}

TEST(SimUserObjects, AnUpdateKeepsTheOldOnesForWorkThatRuns) {
    in_own_process([] {
        open_device();
        int one = 1, ten = 10;
        GraphExec* instance = nullptr;
        GraphObject *first = owning(one), *second = owning(ten);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, first, 0), 0);
        REQUIRE_CODE(cuGraphDestroy(first), 0);
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
        REQUIRE_CODE(update_from(instance, second), 0);
        REQUIRE_CODE(cuGraphDestroy(second), 0);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 2);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        wait_for_destroyed(1);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        wait_for_destroyed(11);
    });
}

TEST(SimUserObjects, AChildGraphThatIsSetInAnInstanceBringsItsOwn) {
    in_own_process([] {
        open_device();
        int one = 1, ten = 10, hundred = 100;
        GraphExec* instance = nullptr;
        NodeObject *node = nullptr, *other = nullptr;
        GraphObject *parent = around(owning(one), node), *second = owning(ten), *wide = owning(hundred, 2);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, parent, 0), 0);
        REQUIRE_THAT(cuGraphExecChildGraphNodeSetParams(instance, node, wide) != 0);
        REQUIRE_CODE(cuGraphDestroy(wide), 0);
        wait_for_destroyed(100);
        REQUIRE_CODE(cuGraphExecChildGraphNodeSetParams(instance, node, second), 0);
        REQUIRE_CODE(cuGraphDestroy(second), 0);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 2);
        REQUIRE_CODE(cuGraphDestroy(parent), 0);  // its own child graph was not changed
        wait_for_destroyed(101);
        // An update reaches the child graphs, too.
        GraphObject* const again = around(owning(one), other);
        REQUIRE_CODE(update_from(instance, again), 0);
        wait_for_destroyed(111);
        REQUIRE_CODE(cuGraphDestroy(again), 0);
        REQUIRE_THAT(isthmus_sim_live("user_objects") == 1);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        wait_for_destroyed(112);
    });
}

TEST(SimUserObjects, WrongOnesAreRefused) {
    in_own_process([] {
        open_device();
        Three g;
        int one = 1;
        UserObject* object = nullptr;
        REQUIRE_CODE(cuUserObjectCreate(nullptr, &one, destroy, 1, 1), 1);
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, nullptr, 1, 1), 1);
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 0, 1), 1);
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 1, 0), 1);  // documented: the flag is required
        REQUIRE_CODE(cuUserObjectCreate(&object, &one, destroy, 1, 1), 0);
        REQUIRE_CODE(cuUserObjectRetain(object, 0), 1);
        REQUIRE_CODE(cuUserObjectRetain(object, 0x80000000u), 1);
        REQUIRE_CODE(cuUserObjectRetain(nullptr, 1), 1);
        REQUIRE_CODE(cuGraphRetainUserObject(nullptr, object, 1, 0), 1);
        REQUIRE_CODE(cuGraphRetainUserObject(g.graph, object, 1, 2), 1);
        REQUIRE_CODE(cuGraphRetainUserObject(g.graph, object, 2, 1), 1);  // more than there are
    });
}

TEST(SimGraphDot, AFileNamesNodesAndEdges) {
    in_own_process([] {
        open_device();
        Three g;
        REQUIRE_CODE(g.add(0, 1), 0);
        const std::string path = ::testing::TempDir() + "isthmus-dot-" + std::to_string(::getpid());
        REQUIRE_CODE(cuGraphDebugDotPrint(g.graph, path.c_str(), 1), 0);
        std::ifstream file(path);
        const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        ::unlink(path.c_str());
        REQUIRE_THAT(text.find("digraph") == 0 && text.find("EMPTY") != std::string::npos);
        REQUIRE_THAT(text.find(" -> ") != std::string::npos && text.find(" -> ") == text.rfind(" -> "));
        REQUIRE_CODE(cuGraphDebugDotPrint(g.graph, "/nowhere/at/all", 0), 304);
        REQUIRE_CODE(cuGraphDebugDotPrint(g.graph, nullptr, 0), 1);
        REQUIRE_CODE(cuGraphDebugDotPrint(nullptr, path.c_str(), 0), 1);
        REQUIRE_CODE(cuGraphDebugDotPrint(g.graph, path.c_str(), 1u << 16), 1);
    });
}

struct TiledRequest {
    alignas(64) TensorMap map = {};
    int type = 7;  // 32-bit floating
    unsigned rank = 2;
    void* address = reinterpret_cast<void*>(std::uintptr_t{0x1000});
    std::uint64_t sizes[5] = {64, 64, 4, 4, 4}, strides[4] = {256, 16384, 65536, 262144};
    std::uint32_t box[5] = {32, 8, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
    int lower[3] = {}, upper[3] = {}, interleave = 0, swizzle = 0, promotion = 0, fill = 0;
    Result tiled() {
        return cuTensorMapEncodeTiled(&map, type, rank, address, sizes, strides, box, steps, interleave, swizzle,
                                      promotion, fill);
    }
    Result im2col() {
        return cuTensorMapEncodeIm2col(&map, type, rank, address, sizes, strides, lower, upper, box[0], box[1], steps,
                                       interleave, swizzle, promotion, fill);
    }
};

TEST(SimTensorMaps, AreMadeWhereTheDeviceHasThem) {
    in_own_process([] {
        open_device();
        TiledRequest asked;
        if (fact(attribute::cc_major) < 9) {
            REQUIRE_CODE(asked.tiled(), 801);
            REQUIRE_CODE(asked.im2col(), 801);
            return;
        }
        REQUIRE_CODE(asked.tiled(), 0);
        const TensorMap before = asked.map;
        REQUIRE_CODE(cuTensorMapReplaceAddress(&asked.map, reinterpret_cast<void*>(std::uintptr_t{0x2000})), 0);
        REQUIRE_THAT(std::memcmp(&before, &asked.map, sizeof before) != 0);
        REQUIRE_CODE(cuTensorMapReplaceAddress(&asked.map, reinterpret_cast<void*>(std::uintptr_t{0x2008})), 1);
        asked.rank = 4;
        REQUIRE_CODE(asked.im2col(), 0);
        alignas(64) TensorMap none = {};
        REQUIRE_CODE(cuTensorMapReplaceAddress(&none, nullptr), 1);
    });
}

TEST(SimTensorMaps, EachRuleIsChecked) {  // all of them are documented
    in_own_process([] {
        open_device();
        if (fact(attribute::cc_major) < 9) return;
        const auto refused = [](const auto& change) {
            TiledRequest asked;
            change(asked);
            REQUIRE_CODE(asked.tiled(), 1);
        };
        refused([](auto& t) { t.rank = 0; });
        refused([](auto& t) { t.rank = 6; });
        refused([](auto& t) { t.type = 16; });
        refused([](auto& t) { t.address = reinterpret_cast<void*>(std::uintptr_t{0x1008}); });
        refused([](auto& t) { t.sizes[1] = 0; });
        refused([](auto& t) { t.sizes[1] = (std::uint64_t{1} << 32) + 1; });
        refused([](auto& t) { t.strides[0] = 8; });
        refused([](auto& t) { t.strides[0] = std::uint64_t{1} << 40; });
        refused([](auto& t) { t.box[1] = 0; });
        refused([](auto& t) { t.box[1] = 257; });
        refused([](auto& t) { t.box[0] = 3; });  // 12 bytes
        refused([](auto& t) { t.steps[1] = 9; });
        refused([](auto& t) { t.swizzle = 1; });  // 128 bytes in a span of 32
        refused([](auto& t) { t.swizzle = 7; });
        refused([](auto& t) { t.interleave = 1; });  // needs three dimensions
        refused([](auto& t) { t.interleave = 2, t.rank = 3; });
        refused([](auto& t) { t.type = 3, t.fill = 1; });  // NaN in whole numbers
        refused([](auto& t) { t.promotion = 4; });
        TiledRequest column;
        REQUIRE_CODE(column.im2col(), 1);  // two dimensions
        column.rank = 3;
        column.lower[0] = 40000;
        REQUIRE_CODE(column.im2col(), 1);
        column.lower[0] = -32768;
        column.box[1] = 1025;
        REQUIRE_CODE(column.im2col(), 1);
        column.box[1] = 1024;
        REQUIRE_CODE(column.im2col(), 0);
    });
}

TEST(SimImageFiles, AreLoadedAsTheirBytes) {
    in_own_process([] {
        open_device();
        const std::string path = ::testing::TempDir() + "isthmus-image-" + std::to_string(::getpid());
        std::ofstream(path)
            << ".version 7.5\n.target sm_52\n.address_size 64\n.visible .entry nothing()\n{\n ret;\n}\n";
        Module *module = nullptr, *library = nullptr;
        REQUIRE_CODE(cuModuleLoad(&module, path.c_str()), 0);
        REQUIRE_CODE(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
        Function* function = nullptr;
        REQUIRE_CODE(cuModuleGetFunction(&function, module, "nothing"), 0);
        REQUIRE_CODE(cuLibraryGetKernel(&function, library, "nothing"), 0);
        ::unlink(path.c_str());
        REQUIRE_CODE(cuModuleLoad(&module, path.c_str()), 301);
        REQUIRE_CODE(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), 301);
        REQUIRE_CODE(cuModuleLoad(&module, nullptr), 1);
        REQUIRE_CODE(cuLibraryLoadFromFile(nullptr, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
