// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: what a capture shows of them while it is open and after, and kernel nodes' parameters.
#include "sim_capture_scene.hpp"

namespace isthmus::sim::test {
namespace {

constexpr int kernel_node = 0, copy_node = 1, fill_node = 2, host_node = 3, graph_node = 4, empty_node = 5;

struct Shown {
    int status = 9;
    std::uint64_t id = 0;
    GraphObject* graph = nullptr;
    std::vector<NodeObject*> dependencies;
};

Shown show(Stream* stream) {
    Shown shown;
    NodeObject* const* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 99;
    REQUIRE_CODE(cuStreamGetCaptureInfo_v3(stream, &shown.status, &shown.id, &shown.graph, &nodes, &edges, &count), 0);
    if (shown.status == 1) shown.dependencies.assign(nodes, nodes + count);
    return shown;
}

std::vector<NodeObject*> nodes_of(GraphObject* graph) {
    std::size_t count = 0;
    REQUIRE_CODE(cuGraphGetNodes(graph, nullptr, &count), 0);
    std::vector<NodeObject*> nodes(count + 1);
    std::size_t places = count + 1;
    REQUIRE_CODE(cuGraphGetNodes(graph, nodes.data(), &places), 0);
    REQUIRE_THAT(places == count && nodes.back() == nullptr);  // unused places become null
    nodes.pop_back();
    return nodes;
}

int type_of(NodeObject* node) {
    int type = -1;
    REQUIRE_CODE(cuGraphNodeGetType(node, &type), 0);
    return type;
}

int read_int(CaptureScene& scene) {
    int value = 0;
    REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&value, scene.memory, sizeof(value), scene.stream), 0);
    REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    return value;
}

void write_int(CaptureScene& scene, int value) {
    REQUIRE_CODE(cuMemsetD32Async(scene.memory, static_cast<unsigned>(value), 4, scene.stream), 0);
}

TEST(SimGraphNodes, AnOpenCaptureShowsItsGraphAndTheNodesThatTheNextOneFollows) {  // keeps S16's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        REQUIRE_THAT(show(scene.stream).status == 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_THAT(show(scene.stream).dependencies.empty());
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
        const Shown first = show(scene.stream);
        REQUIRE_THAT(first.status == 1 && first.graph != nullptr && first.dependencies.size() == 1);
        REQUIRE_THAT(type_of(first.dependencies[0]) == kernel_node);
        REQUIRE_CODE(cuMemsetD8Async(scene.memory, 0, 16, scene.stream), 0);
        const Shown second = show(scene.stream);
        REQUIRE_THAT(second.graph == first.graph && second.dependencies[0] != first.dependencies[0]);
        // Visible to every thread, and to code that did not begin the capture.
        std::thread([&] {
            REQUIRE_CODE(cuCtxSetCurrent(scene.context), 0);
            REQUIRE_THAT(show(scene.stream).dependencies == second.dependencies);
        }).join();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        REQUIRE_THAT(graph == first.graph);
        const std::vector<NodeObject*> nodes = nodes_of(graph);
        REQUIRE_THAT(nodes.size() == 2 && nodes[0] == first.dependencies[0] && nodes[1] == second.dependencies[0]);
        REQUIRE_THAT(type_of(nodes[1]) == fill_node);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(nodes[0], &type), 1);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
    });
}

TEST(SimGraphNodes, ALostCapturesGraphHandleGoesWithIt) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
        const Shown shown = show(scene.stream);
        REQUIRE_CODE(cuGraphDestroy(shown.graph), 1);  // owned by the capture
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 900);
        REQUIRE_THAT(show(scene.stream).status == 2);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 901);
        std::size_t count = 0;
        REQUIRE_CODE(cuGraphGetNodes(shown.graph, nullptr, &count), 1);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);

        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.other, global), 0);
        REQUIRE_CODE(launch_multiply(scene.other, scene.memory, 4, 2), 0);
        REQUIRE_THAT(show(scene.other).dependencies.size() == 1);
        REQUIRE_CODE(cuStreamDestroy_v2(scene.other), 0);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
    });
}

TEST(SimGraphNodes, WrongQuestionsAboutACaptureAnswerOne) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        int status = 0;
        const EdgeData* edges = nullptr;
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(scene.stream, nullptr, nullptr, nullptr, nullptr, nullptr), 1);
        REQUIRE_CODE(cuStreamGetCaptureInfo_v3(scene.stream, &status, nullptr, nullptr, nullptr, &edges, nullptr), 1);
        Stream* blocking = new_stream(0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(blocking, relaxed), 0);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(nullptr, &status, nullptr, &graph, nullptr, nullptr), 906);
        REQUIRE_CODE(cuStreamIsCapturing(nullptr, &status), 906);
        REQUIRE_CODE(cuStreamEndCapture(blocking, &graph), 0);
    });
}

TEST(SimGraphNodes, EveryKindOfCapturedWorkHasItsTypeAndItsEdges) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject *graph = nullptr, *child = nullptr;
        NodeObject* added = nullptr;
        REQUIRE_CODE(cuGraphCreate(&child, 0), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
        REQUIRE_CODE(cuMemcpyDtoDAsync_v2(scene.memory, scene.memory + 64, 16, scene.stream), 0);
        REQUIRE_CODE(cuMemsetD8Async(scene.memory, 0, 16, scene.stream), 0);
        REQUIRE_CODE(cuLaunchHostFunc(
                         scene.stream, [](void*) {}, nullptr),
                     0);
        const Shown open = show(scene.stream);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&added, open.graph, open.dependencies.data(), 1, child), 0);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(scene.stream, &added, 1, 1), 0);
        REQUIRE_THAT(show(scene.stream).dependencies == std::vector<NodeObject*>{added});
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        const std::vector<NodeObject*> nodes = nodes_of(graph);
        const int types[] = {kernel_node, copy_node, fill_node, host_node, graph_node};
        REQUIRE_THAT(nodes.size() == 5);
        for (std::size_t i = 0; i < 5; ++i) REQUIRE_THAT(type_of(nodes[i]) == types[i]);
        std::size_t count = 4;
        NodeObject *from[4], *to[4], *near[2];
        EdgeData data[4];
        REQUIRE_CODE(cuGraphGetEdges_v2(graph, from, to, data, &count), 0);
        REQUIRE_THAT(count == 4);
        for (std::size_t i = 0; i < 4; ++i) REQUIRE_THAT(from[i] == nodes[i] && to[i] == nodes[i + 1]);
        REQUIRE_CODE(cuGraphGetEdges(graph, from, nullptr, &count), 1);
        REQUIRE_CODE(cuGraphGetEdges(graph, nullptr, nullptr, &count), 0);
        REQUIRE_THAT(count == 4);
        count = 2;
        REQUIRE_CODE(cuGraphGetRootNodes(graph, near, &count), 0);
        REQUIRE_THAT(count == 1 && near[0] == nodes[0] && near[1] == nullptr);
        count = 2;
        REQUIRE_CODE(cuGraphNodeGetDependencies(nodes[1], near, &count), 0);
        REQUIRE_THAT(count == 1 && near[0] == nodes[0]);
        count = 2;
        REQUIRE_CODE(cuGraphNodeGetDependentNodes(nodes[1], near, &count), 0);
        REQUIRE_THAT(count == 1 && near[0] == nodes[2]);
        GraphObject* embedded = nullptr;
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(nodes[0], &embedded), 1);
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(nodes[4], &embedded), 0);
        REQUIRE_THAT(embedded != child && nodes_of(embedded).empty());
        REQUIRE_CODE(cuGraphDestroy(embedded), 1);  // owned by the node
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_CODE(cuGraphDestroy(child), 0);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
    });
}

TEST(SimGraphNodes, NodesAddedByHandFollowWhatTheyAreToldTo) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject *graph = nullptr, *child = nullptr;
        NodeObject *first = nullptr, *second = nullptr, *inner = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 3), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &child), 0);
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphAddEmptyNode(&first, graph, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&second, graph, &first, 1, child), 0);
        REQUIRE_THAT(type_of(first) == empty_node && type_of(second) == graph_node);
        NodeObject* twice[] = {first, first};
        REQUIRE_CODE(cuGraphAddEmptyNode(&inner, graph, twice, 2), 1);
        REQUIRE_CODE(cuGraphAddEmptyNode(&inner, child, &first, 1), 1);  // another graph's node
        REQUIRE_CODE(cuGraphAddEmptyNode(&inner, graph, nullptr, 1), 1);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        write_int(scene, 7);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 21);
        GraphObject* clone = nullptr;
        REQUIRE_CODE(cuGraphClone(&clone, graph), 0);
        REQUIRE_CODE(cuGraphNodeFindInClone(&inner, second, clone), 0);
        REQUIRE_THAT(inner != second && type_of(inner) == graph_node);
        REQUIRE_CODE(cuGraphNodeFindInClone(&inner, second, child), 1);
    });
}

struct Parameters {
    isthmus_sim_extent extent;
    MultiplyPack pack;
    void* pointers[2];
    KernelNodeParameters2 all;
    Parameters(const Parameters&) = delete;
    Parameters(NodeObject* node, int factor) : extent{4, 1, 1}, all{} {
        REQUIRE_CODE(cuGraphKernelNodeGetParams_v2(node, &all), 0);
        pack = *static_cast<const MultiplyPack*>(all.launch.parameters[1]);
        pack.factor = factor;
        pointers[0] = &extent;
        pointers[1] = &pack;
        all.launch.parameters = pointers;
    }
};

// A graph of one kernel that multiplies by two, and its node.
GraphObject* one_kernel(CaptureScene& scene, NodeObject*& node) {
    GraphObject* graph = nullptr;
    REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
    REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
    node = show(scene.stream).dependencies.at(0);
    REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
    return graph;
}

TEST(SimGraphNodes, AKernelNodesParametersAreReadAndSet) {  // keeps S16's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        NodeObject* node = nullptr;
        GraphObject* graph = one_kernel(scene, node);
        GraphExec *before = nullptr, *after = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&before, graph, 0), 0);
        Parameters wanted(node, 5);
        REQUIRE_THAT(wanted.all.launch.block_x == 256 && wanted.all.launch.function != nullptr);
        REQUIRE_CODE(cuGraphKernelNodeSetParams_v2(node, &wanted.all), 0);
        KernelNodeParameters first_version = {};
        REQUIRE_CODE(cuGraphKernelNodeGetParams(node, &first_version), 0);
        REQUIRE_THAT(static_cast<const MultiplyPack*>(first_version.parameters[1])->factor == 5);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&after, graph, 0), 0);
        write_int(scene, 1);
        REQUIRE_CODE(cuGraphLaunch(before, scene.stream), 0);  // an instance keeps the parameters that it was made with
        REQUIRE_THAT(read_int(scene) == 2);
        REQUIRE_CODE(cuGraphLaunch(after, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 10);
    });
}

TEST(SimGraphNodes, AnInstancesKernelIsPatchedForFutureLaunchesOnly) {  // keeps S16's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        NodeObject* node = nullptr;
        GraphObject* graph = one_kernel(scene, node);
        GraphExec *patched = nullptr, *untouched = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&patched, graph, 0), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&untouched, graph, 0), 0);
        Gate gate;
        write_int(scene, 1);
        REQUIRE_CODE(launch_hold(scene.stream, gate), 0);
        REQUIRE_CODE(cuGraphLaunch(patched, scene.stream), 0);  // launched already
        Parameters wanted(node, 10);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(patched, node, &wanted.all), 0);
        wanted.pack.factor = 1000;  // was copied
        REQUIRE_CODE(cuGraphLaunch(patched, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(untouched, scene.stream), 0);
        gate.released = 1;
        REQUIRE_THAT(read_int(scene) == 2 * 10 * 2);
        KernelNodeParameters unchanged = {};
        REQUIRE_CODE(cuGraphKernelNodeGetParams(node, &unchanged), 0);  // the graph's node is not modified
        REQUIRE_THAT(static_cast<const MultiplyPack*>(unchanged.parameters[1])->factor == 2);
        wanted.pack.factor = 3;
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams(patched, node, &wanted.all.launch), 0);
        write_int(scene, 1);
        REQUIRE_CODE(cuGraphLaunch(patched, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 3);
    });
}

TEST(SimGraphNodes, WrongParametersAreRefusedAndChangeNothing) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        NodeObject *node = nullptr, *foreign = nullptr, *empty = nullptr;
        GraphObject *graph = one_kernel(scene, node), *other = one_kernel(scene, foreign);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        Parameters wanted(node, 9);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, foreign, &wanted.all), 1);
        REQUIRE_CODE(cuGraphAddEmptyNode(&empty, other, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphKernelNodeSetParams_v2(empty, &wanted.all), 1);
        REQUIRE_CODE(cuGraphKernelNodeGetParams_v2(empty, &wanted.all), 1);
        REQUIRE_CODE(cuGraphKernelNodeGetParams_v2(node, nullptr), 1);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, nullptr), 1);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(nullptr, node, &wanted.all), 1);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, nullptr, &wanted.all), 1);
        void* extra[] = {reinterpret_cast<void*>(1), &wanted.pack, nullptr};
        wanted.all.launch.extra = extra;
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 1);  // both ways at once
        wanted.all.launch.extra = nullptr;
        wanted.all.launch.grid_x = 0;
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 1);
        wanted.all.launch.grid_x = 1;
        wanted.all.launch.function = nullptr;
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 400);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams(instance, node, &wanted.all.launch), 400);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);  // the node is destroyed with its graph
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 1);
        write_int(scene, 1);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 2);
    });
}

TEST(SimGraphNodes, ANodeKeepsItsContext) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        NodeObject* node = nullptr;
        GraphObject* graph = one_kernel(scene, node);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        Context* another = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
        Parameters wanted(node, 9);
        wanted.all.launch.function = multiply_kernel();  // loaded into the other context
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 1);
        REQUIRE_CODE(cuGraphKernelNodeSetParams_v2(node, &wanted.all), 0);
        UpdateResult answer = {};
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, graph, &answer), 910);
        REQUIRE_THAT(answer.result == 7 && answer.error_node == node && answer.error_from_node == nullptr);
    });
}

TEST(SimGraphNodes, NodesOfAChildGraphArePatchedInTheInstanceToo) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        NodeObject *node = nullptr, *child = nullptr;
        GraphObject *inner = one_kernel(scene, node), *graph = nullptr, *embedded = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&child, graph, nullptr, 0, inner), 0);
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(child, &embedded), 0);
        NodeObject* const nested = nodes_of(embedded).at(0);
        REQUIRE_THAT(nested != node);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        Parameters wanted(nested, 6);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, node, &wanted.all), 1);  // was cloned
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams_v2(instance, nested, &wanted.all), 0);
        write_int(scene, 1);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 6);
        wanted.pack.factor = 7;
        REQUIRE_CODE(cuGraphKernelNodeSetParams_v2(nested, &wanted.all), 0);  // reflected in the node: documented
        GraphExec* again = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&again, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(again, scene.stream), 0);
        REQUIRE_THAT(read_int(scene) == 42);
    });
}

struct Conditional {
    GraphObject* graph = nullptr;
    NodeParameters parameters = {};
    Conditional() {
        Context* context = nullptr;
        std::uint64_t handle = 0;
        REQUIRE_CODE(cuCtxGetCurrent(&context), 0);
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0), 0);
        parameters.type = 13;
        parameters.conditional = {handle, 1, 1, nullptr, context};
    }
    Result add(NodeObject*& node) { return cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &parameters); }
};

TEST(SimGraphNodes, AGraphWithAConditionalNodeHasOneInstanceAndNoCopies) {
    in_own_process([] {
        open_device();
        Conditional loop;
        NodeObject *node = nullptr, *inside = nullptr;
        REQUIRE_CODE(loop.add(node), 0);
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(node, &type), 0);
        REQUIRE_THAT(type == 13);
        REQUIRE_CODE(cuGraphAddEmptyNode(&inside, loop.parameters.conditional.bodies[0], nullptr, 0), 0);
        GraphExec *instance = nullptr, *another = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, loop.graph, 0), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&another, loop.graph, 0), 801);
        GraphObject *clone = nullptr, *parent = nullptr;
        REQUIRE_CODE(cuGraphClone(&clone, loop.graph), 801);
        REQUIRE_CODE(cuGraphCreate(&parent, 0), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&inside, parent, nullptr, 0, loop.graph), 801);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(parent), 0);
        REQUIRE_CODE(cuGraphDestroy(loop.graph), 0);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
    });
}

// keeps S22's ground
TEST(SimGraphNodes, ABodyIsCapturedIntoWhileTheGraphAroundItIsCaptured) {
    in_own_process([] {
        open_device();
        Context* context = nullptr;
        REQUIRE_CODE(cuCtxGetCurrent(&context), 0);
        Stream *outer = new_stream(), *inner = new_stream(), *innermost = new_stream();
        REQUIRE_CODE(cuStreamBeginCapture_v2(outer, 1), 0);
        GraphObject* around = nullptr;
        Stream* const streams[] = {inner, innermost};
        Stream* captured = outer;
        GraphObject* bodies[2] = {};
        for (int depth = 0; depth < 2; ++depth) {
            int status = 0;
            REQUIRE_CODE(cuStreamGetCaptureInfo_v2(captured, &status, nullptr, &around, nullptr, nullptr), 0);
            NodeParameters parameters = {};
            parameters.type = 13;
            std::uint64_t handle = 0;
            REQUIRE_CODE(cuGraphConditionalHandleCreate(&handle, around, context, 0, 0), 0);
            parameters.conditional = {handle, 1, 1, nullptr, context};
            NodeObject* node = nullptr;
            REQUIRE_CODE(cuGraphAddNode_v2(&node, around, nullptr, nullptr, 0, &parameters), 0);
            bodies[depth] = parameters.conditional.bodies[0];
            REQUIRE_CODE(cuStreamBeginCaptureToGraph(streams[depth], bodies[depth], nullptr, nullptr, 0, 1), 0);
            captured = streams[depth];
        }
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(new_stream(), bodies[0], nullptr, nullptr, 0, 1), 801);
        NodeObject* empty = nullptr;
        REQUIRE_CODE(cuGraphAddEmptyNode(&empty, bodies[1], nullptr, 0), 0);
        std::size_t count = 0;
        for (int depth = 2; depth-- > 0;) {
            GraphObject* ended = nullptr;
            REQUIRE_CODE(cuStreamEndCapture(streams[depth], &ended), 0);
            REQUIRE_THAT(ended == bodies[depth]);
            REQUIRE_CODE(cuGraphGetNodes(bodies[depth], nullptr, &count), 0);
            REQUIRE_THAT(count == 1);
            REQUIRE_CODE(cuGraphDestroy(bodies[depth]), 1);  // it is the node's
        }
        GraphObject* whole = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(outer, &whole), 0);
        REQUIRE_CODE(cuGraphGetNodes(bodies[1], nullptr, &count), 0);
        REQUIRE_THAT(count == 1);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, whole, 0), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(whole), 0);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
    });
}

TEST(SimGraphNodes, AConditionalNodeNamesAConditionThatWasMade) {
    in_own_process([] {
        open_device();
        Conditional loop;
        NodeObject* node = nullptr;
        ++loop.parameters.conditional.handle;
        REQUIRE_CODE(loop.add(node), 1);
        loop.parameters.conditional.handle = 0;
        REQUIRE_CODE(loop.add(node), 1);
    });
}

TEST(SimGraphNodes, AConditionServesOneNodeOfItsGraph) {
    in_own_process([] {
        open_device();
        Conditional one, other;
        NodeObject* node = nullptr;
        std::swap(one.parameters.conditional.handle, other.parameters.conditional.handle);
        REQUIRE_CODE(one.add(node), 1);
        std::swap(one.parameters.conditional.handle, other.parameters.conditional.handle);
        REQUIRE_CODE(one.add(node), 0);
        REQUIRE_CODE(one.add(node), 1);
        std::uint64_t handle = 0;
        REQUIRE_CODE(cuGraphConditionalHandleCreate(&handle, one.graph, one.parameters.conditional.context, 0, 2), 1);
    });
}

TEST(SimGraphNodes, TheNumberOfBodiesFitsTheKind) {
    in_own_process([] {
        open_device();
        const struct {
            int type;
            unsigned size;
            Result code;
        } rows[] = {{0, 1, 0}, {0, 2, 0}, {0, 3, 1}, {0, 0, 1}, {1, 1, 0},
                    {1, 2, 1}, {2, 1, 0}, {2, 5, 0}, {2, 0, 1}, {3, 1, 1}};
        for (const auto& row : rows) {
            Conditional made;
            NodeObject* node = nullptr;
            made.parameters.conditional.type = row.type;
            made.parameters.conditional.size = row.size;
            const bool is_new = row.type == 2 || row.size > 1;
            REQUIRE_CODE(made.add(node), is_new && version() < 12080 ? 1 : row.code);
        }
        REQUIRE_THAT(isthmus_sim_live("graphs") > 0);
    });
}

// A graph with a condition that has a default value, and bodies that multiply by 2, 3, 5, ...
struct Choosing {
    CaptureScene scene = open_scene();
    GraphObject* graph = nullptr;
    NodeParameters parameters = {};
    Choosing(int type, unsigned size, unsigned initial) {
        constexpr int factors[] = {2, 3, 5};
        std::uint64_t handle = 0;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphConditionalHandleCreate(&handle, graph, scene.context, initial, 1), 0);
        parameters.type = 13;
        parameters.conditional = {handle, type, size, nullptr, scene.context};
        NodeObject* node = nullptr;
        REQUIRE_CODE(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &parameters), 0);
        for (unsigned i = 0; i < size; ++i) {
            GraphObject *const body = parameters.conditional.bodies[i], *ended = nullptr;
            REQUIRE_CODE(cuStreamBeginCaptureToGraph(scene.other, body, nullptr, nullptr, 0, 1), 0);
            REQUIRE_CODE(launch_multiply(scene.other, scene.memory, 4, factors[i]), 0);
            REQUIRE_CODE(cuStreamEndCapture(scene.other, &ended), 0);
            REQUIRE_THAT(ended == body);
        }
    }
    int run() {
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        write_int(scene, 1);
        for (int i = 0; i < 2; ++i) REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        const int value = read_int(scene);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_THAT(isthmus_sim_live("graphs") == 0 && isthmus_sim_live("graph_nodes") == 0);
        return value;
    }
};

TEST(SimGraphNodes, ADefaultValueDecidesAtEachLaunch) {
    const struct {
        int type;
        unsigned size, initial;
        int value;  // after two launches
    } rows[] = {{0, 1, 0, 1}, {0, 1, 7, 4}, {0, 2, 1, 4}, {0, 2, 0, 9}, {2, 3, 0, 4}, {2, 3, 2, 25}, {2, 3, 3, 1}};
    for (const auto& row : rows) {
        in_own_process([&] {
            open_device();
            if ((row.type == 2 || row.size > 1) && version() < 12080) return;
            REQUIRE_THAT(Choosing(row.type, row.size, row.initial).run() == row.value);
        });
    }
}

TEST(SimGraphNodes, AnUpdateBringsTheNewGraphsDefaultValue) {
    in_own_process([] {
        open_device();
        if (version() < 12080) return;
        Choosing first(2, 3, 0), second(2, 3, 2), fewer(2, 2, 0), iffy(0, 1, 1);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, first.graph, 0), 0);
        const auto run = [&](Choosing& in) {
            write_int(in.scene, 1);
            REQUIRE_CODE(cuGraphLaunch(instance, in.scene.stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(in.scene.stream), 0);
            return read_int(in.scene);
        };
        REQUIRE_THAT(run(first) == 2);
        UpdateResult answer = {};
        for (GraphObject* const other : {fewer.graph, iffy.graph}) {
            REQUIRE_CODE(cuGraphExecUpdate_v2(instance, other, &answer), 910);
            REQUIRE_THAT(answer.result == 6);
        }
        REQUIRE_THAT(run(first) == 2);
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, second.graph, &answer), 0);
        REQUIRE_THAT(run(second) == 5);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
