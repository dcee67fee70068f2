// SPDX-License-Identifier: Apache-2.0
// Updating an instance from another graph: which updates it accepts, and how it reports the others.
#include "sim_capture_scene.hpp"

#include <cstring>
#include <utility>

namespace isthmus::sim::test {
namespace {

constexpr int updated = 0, failed = 1, topology_changed = 2, type_changed = 3, parameters_changed = 5,
              not_supported = 6, function_changed_too_far = 7, attributes_changed = 8;

using Body = std::function<void(CaptureScene&)>;

GraphObject* captured(CaptureScene& scene, const Body& body) {
    GraphObject* graph = nullptr;
    REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
    body(scene);
    REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
    return graph;
}

NodeObject* node_of(GraphObject* graph, std::size_t index) {
    NodeObject* nodes[8] = {};
    std::size_t count = 8;
    REQUIRE_CODE(cuGraphGetNodes(graph, nodes, &count), 0);
    return nodes[index];
}

GraphExec* instance_of(GraphObject* graph, unsigned long long flags = 0) {
    GraphExec* instance = nullptr;
    REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, flags), 0);
    return instance;
}

UpdateResult expect_update(GraphExec* instance, GraphObject* graph, int expected) {
    UpdateResult answer = {99, nullptr, nullptr};
    REQUIRE_CODE(cuGraphExecUpdate_v2(instance, graph, &answer), expected == updated ? 0 : 910);
    REQUIRE_THAT(answer.result == expected);
    return answer;
}

Body multiplies(int factor) {
    return [factor](CaptureScene& scene) { REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, factor), 0); };
}

// Runs the instance on the value 1 and returns the result.
int run(CaptureScene& scene, GraphExec* instance) {
    int value = 0;
    REQUIRE_CODE(cuMemsetD32Async(scene.memory, 1, 4, scene.stream), 0);
    REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
    REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&value, scene.memory, 4, scene.stream), 0);
    REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    return value;
}

TEST(SimGraphUpdate, ArgumentsAndFunctionsMayChange) {  // keeps S16's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphExec* instance = instance_of(captured(scene, multiplies(2)));
        REQUIRE_THAT(run(scene, instance) == 2);
        GraphObject* other = captured(scene, multiplies(6));
        expect_update(instance, other, updated);
        REQUIRE_CODE(cuGraphDestroy(other), 0);
        REQUIRE_THAT(run(scene, instance) == 6);
        static int stored = 0;
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 64, 0), 0);
        REQUIRE_CODE(launch_wild_store(scene.stream, pinned), 0);  // loads the kernel
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
        std::memset(pinned, 0, 64);
        const auto store = [&](CaptureScene& s) { REQUIRE_CODE(launch_wild_store(s.stream, pinned), 0); };
        expect_update(instance, captured(scene, store), updated);
        static_cast<void>(run(scene, instance));
        std::memcpy(&stored, pinned, sizeof(stored));
        REQUIRE_THAT(stored == 1);
    });
}

TEST(SimGraphUpdate, TheOriginalGraphsNodesStillNameTheInstancesNodes) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject* graph = captured(scene, multiplies(2));
        GraphObject* other = captured(scene, multiplies(6));
        GraphExec* instance = instance_of(graph);
        expect_update(instance, other, updated);
        KernelNodeParameters parameters = {};
        REQUIRE_CODE(cuGraphKernelNodeGetParams(node_of(graph, 0), &parameters), 0);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams(instance, node_of(other, 0), &parameters), 1);
        REQUIRE_CODE(cuGraphExecKernelNodeSetParams(instance, node_of(graph, 0), &parameters), 0);
        REQUIRE_THAT(run(scene, instance) == 2);
    });
}

TEST(SimGraphUpdate, AnotherShapeIsRefusedAndTheInstanceStillWorks) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        const auto both = [](CaptureScene& s) {
            multiplies(2)(s);
            multiplies(3)(s);
        };
        GraphExec* instance = instance_of(captured(scene, both));
        UpdateResult answer = expect_update(instance, captured(scene, multiplies(2)), topology_changed);
        REQUIRE_THAT(answer.error_node == nullptr && answer.error_from_node == nullptr);
        REQUIRE_THAT(run(scene, instance) == 6);
        // Two last nodes instead of one: one of them is named.
        const auto beside = [](CaptureScene& s) {
            Event* fork = new_event();
            Event* join = new_event();
            REQUIRE_CODE(cuEventRecord(fork, s.stream), 0);
            REQUIRE_CODE(cuStreamWaitEvent(s.other, fork, 0), 0);
            multiplies(2)(s);
            std::swap(s.stream, s.other);
            multiplies(3)(s);
            std::swap(s.stream, s.other);
            REQUIRE_CODE(cuEventRecord(join, s.other), 0);
            REQUIRE_CODE(cuStreamWaitEvent(s.stream, join, 0), 0);
        };
        GraphObject* wide = captured(scene, beside);
        answer = expect_update(instance, wide, topology_changed);
        REQUIRE_THAT(answer.error_node == node_of(wide, 1) && answer.error_from_node == nullptr);
        REQUIRE_THAT(run(scene, instance) == 6);
    });
}

TEST(SimGraphUpdate, EdgesArePairedFromTheEndsBackwards) {
    in_own_process([] {
        open_scene();
        // first -> {left, right} -> last, in two orders of adding, and with one edge that differs.
        const auto diamond = [](bool swapped, bool other_edge) {
            GraphObject* graph = nullptr;
            NodeObject *first = nullptr, *left = nullptr, *right = nullptr, *last = nullptr;
            REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
            REQUIRE_CODE(cuGraphAddEmptyNode(&first, graph, nullptr, 0), 0);
            REQUIRE_CODE(cuGraphAddEmptyNode(swapped ? &right : &left, graph, &first, 1), 0);
            NodeObject* before[] = {first, swapped ? right : left};
            REQUIRE_CODE(cuGraphAddEmptyNode(swapped ? &left : &right, graph, other_edge ? before + 1 : before, 1), 0);
            NodeObject* both[] = {left, right};
            REQUIRE_CODE(cuGraphAddEmptyNode(&last, graph, both, 2), 0);
            return graph;
        };
        GraphExec* instance = instance_of(diamond(false, false));
        expect_update(instance, diamond(false, false), updated);
        expect_update(instance, diamond(true, false), updated);
        GraphObject* other = diamond(false, true);
        const UpdateResult answer = expect_update(instance, other, topology_changed);
        REQUIRE_THAT(answer.error_node != nullptr && answer.error_from_node != nullptr);
    });
}

TEST(SimGraphUpdate, ANodeOfAnotherTypeIsNamed) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphExec* instance = instance_of(captured(scene, multiplies(2)));
        GraphObject* fill =
            captured(scene, [](CaptureScene& s) { REQUIRE_CODE(cuMemsetD32Async(s.memory, 9, 4, s.stream), 0); });
        UpdateResult answer = expect_update(instance, fill, type_changed);
        REQUIRE_THAT(answer.error_node == node_of(fill, 0));
        NodeObject* error_node = nullptr;
        int verdict = 0;
        REQUIRE_CODE(cuGraphExecUpdate(instance, fill, &error_node, &verdict), 910);
        REQUIRE_THAT(error_node == answer.error_node && verdict == type_changed);
        REQUIRE_CODE(cuGraphExecUpdate(instance, fill, nullptr, nullptr), 910);
        REQUIRE_THAT(run(scene, instance) == 2);
    });
}

TEST(SimGraphUpdate, CopiesAndFillsKeepTheirKindsOfMemory) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        static char host[64];
        const Address more = device_memory(64);
        const auto copy = [&](Address to, const void* from, std::size_t bytes) {
            return captured(scene, [&](CaptureScene& s) {
                if (from) {
                    REQUIRE_CODE(cuMemcpyHtoDAsync_v2(to, from, bytes, s.stream), 0);
                } else {
                    REQUIRE_CODE(cuMemcpyDtoDAsync_v2(to, scene.memory, bytes, s.stream), 0);
                }
            });
        };
        GraphExec* instance = instance_of(copy(scene.memory, host, 16));
        expect_update(instance, copy(more, host + 16, 32), updated);
        GraphObject* between = copy(more, nullptr, 16);
        const UpdateResult answer = expect_update(instance, between, parameters_changed);
        REQUIRE_THAT(answer.error_node == node_of(between, 0));

        const auto rows = [&](std::size_t width, std::size_t height, unsigned char value) {
            return captured(scene, [&](CaptureScene& s) {
                REQUIRE_CODE(cuMemsetD2D8Async(s.memory, 64, value, width, height, s.stream), 0);
            });
        };
        GraphExec* shaped = instance_of(rows(8, 4, 1));
        expect_update(shaped, rows(8, 4, 2), updated);
        expect_update(shaped, rows(16, 4, 2), parameters_changed);
        expect_update(shaped, rows(8, 1, 2), parameters_changed);
        GraphExec* line = instance_of(rows(8, 1, 1));
        expect_update(line, rows(16, 1, 1), updated);  // for one row the size may change
    });
}

TEST(SimGraphUpdate, APriorityIsFixedWhereTheInstanceFollowsIt) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        const auto with = [&](int priority) {
            return captured(scene, [&](CaptureScene& s) {
                LaunchAttribute attribute = {};
                attribute.id = 8;
                attribute.value.number = priority;
                isthmus_sim_extent extent = {4, 1, 1};
                MultiplyPack pack = {{s.memory, 4}, 1};
                void* parameters[] = {&extent, &pack};
                const LaunchConfig config = {1, 1, 1, 256, 1, 1, 0, s.stream, &attribute, 1};
                static Function* const kernel = [] {
                    int mode = relaxed;
                    REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                    Function* const loaded = multiply_kernel();
                    REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                    return loaded;
                }();
                REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, parameters, nullptr), 0);
            });
        };
        GraphExec* follows = instance_of(with(-2), 8);
        expect_update(follows, with(-2), updated);
        expect_update(follows, with(-3), attributes_changed);
        GraphExec* ignores = instance_of(with(-2), 0);
        expect_update(ignores, with(-3), updated);
    });
}

TEST(SimGraphUpdate, AFunctionOfAnotherContextIsTooFar) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphExec* instance = instance_of(captured(scene, multiplies(2)));
        Context* another = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
        CaptureScene theirs = {another, new_stream(), new_stream(), new_event(), device_memory(64)};
        Function* const kernel = multiply_kernel();
        GraphObject* graph = captured(theirs, [&](CaptureScene& s) {
            isthmus_sim_extent extent = {4, 1, 1};
            MultiplyPack pack = {{s.memory, 4}, 1};
            void* parameters[] = {&extent, &pack};
            REQUIRE_CODE(cuLaunchKernel(kernel, 1, 1, 1, 256, 1, 1, 0, s.stream, parameters, nullptr), 0);
        });
        const UpdateResult answer = expect_update(instance, graph, function_changed_too_far);
        REQUIRE_THAT(answer.error_node == node_of(graph, 0));
    });
}

TEST(SimGraphUpdate, GraphsWithMemoryOfTheirOwnAreNotUpdated) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        if (!pools()) return;
        const auto allocates = [](CaptureScene& s) {
            Address memory = 0;
            REQUIRE_CODE(cuMemAllocAsync(&memory, 64, s.stream), 0);
            REQUIRE_CODE(cuMemFreeAsync(memory, s.stream), 0);
        };
        GraphExec* instance = instance_of(captured(scene, allocates));
        expect_update(instance, captured(scene, allocates), not_supported);
    });
}

TEST(SimGraphUpdate, ChildGraphsAreComparedAndUpdatedFromWithin) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        const auto around = [](GraphObject* inner) {
            GraphObject* graph = nullptr;
            NodeObject* node = nullptr;
            REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
            REQUIRE_CODE(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, inner), 0);
            return graph;
        };
        GraphExec* instance = instance_of(around(captured(scene, multiplies(2))));
        REQUIRE_THAT(run(scene, instance) == 2);
        expect_update(instance, around(captured(scene, multiplies(5))), updated);
        REQUIRE_THAT(run(scene, instance) == 5);
        GraphObject* empty = nullptr;
        REQUIRE_CODE(cuGraphCreate(&empty, 0), 0);
        expect_update(instance, around(empty), topology_changed);
        GraphObject* fill = around(
            captured(scene, [](CaptureScene& s) { REQUIRE_CODE(cuMemsetD32Async(s.memory, 9, 4, s.stream), 0); }));
        const UpdateResult answer = expect_update(instance, fill, type_changed);
        REQUIRE_THAT(answer.error_node == node_of(fill, 0));
        REQUIRE_THAT(run(scene, instance) == 5);
    });
}

TEST(SimGraphUpdate, WrongHandlesAnswerOneAndSaySo) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject* graph = captured(scene, multiplies(2));
        GraphExec* instance = instance_of(graph);
        UpdateResult answer = {99, nullptr, nullptr};
        REQUIRE_CODE(cuGraphExecUpdate_v2(nullptr, graph, &answer), 1);
        REQUIRE_THAT(answer.result == failed);
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, nullptr, &answer), 1);
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, graph, nullptr), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
