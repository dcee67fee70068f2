// SPDX-License-Identifier: Apache-2.0
// Host, copy and fill nodes: added, read, set in graphs and instances; nodes of any kind by one structure; nodes that
// are switched off.
#include "sim_capture_scene.hpp"

namespace isthmus::sim::test {
namespace {

struct NodeScene {
    CaptureScene scene = open_scene();
    GraphObject* graph = nullptr;
    NodeObject* node = nullptr;
    NodeScene() {
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuMemsetD8_v2(scene.memory, 0, 4096), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);  // the fill is asynchronous, and the scene's stream does not wait for it
    }
    GraphExec* instance() {
        GraphExec* made = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&made, graph, nullptr, nullptr, 0), 0);
        return made;
    }
    void launch(GraphExec* instance) {
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(scene.stream), 0);
    }
    int read(std::size_t offset = 0) {
        int value = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&value, scene.memory + offset, sizeof(value)), 0);
        return value;
    }
    // A graph of this many fills of the first word, one behind the other.
    GraphObject* fills(unsigned value, std::size_t times) const {
        GraphObject* made = nullptr;
        NodeObject* last = nullptr;
        REQUIRE_CODE(cuGraphCreate(&made, 0), 0);
        const FillNodeParameters p = {scene.memory, 0, value, 4, 1, 1};
        for (std::size_t i = 0; i < times; ++i) {
            REQUIRE_CODE(cuGraphAddMemsetNode(&last, made, &last, last ? 1 : 0, &p, scene.context), 0);
        }
        return made;
    }
};

void count_up(void* counter) {
    ++*static_cast<int*>(counter);
}

TEST(SimHostNodes, RunAtEachLaunchAndAreSet) {
    in_own_process([] {
        NodeScene s;
        int first = 0, second = 0, third = 0;
        HostNodeParameters p = {&count_up, &first}, known = {};
        REQUIRE_CODE(cuGraphAddHostNode(&s.node, s.graph, nullptr, 0, &p), 0);
        GraphExec* const instance = s.instance();
        s.launch(instance);
        REQUIRE_CODE(cuGraphHostNodeGetParams(s.node, &known), 0);
        REQUIRE_THAT(first == 1 && known.function == &count_up && known.data == &first);
        p.data = &second;
        REQUIRE_CODE(cuGraphHostNodeSetParams(s.node, &p), 0);
        s.launch(instance);  // keeps what it was made with
        p.data = &third;
        REQUIRE_CODE(cuGraphExecHostNodeSetParams(instance, s.node, &p), 0);
        s.launch(instance);
        s.launch(s.instance());
        REQUIRE_THAT(first == 2 && second == 1 && third == 1);
        p.function = nullptr;
        REQUIRE_CODE(cuGraphAddHostNode(&s.node, s.graph, nullptr, 0, &p), 1);
        REQUIRE_CODE(cuGraphHostNodeSetParams(s.node, &p), 1);
        REQUIRE_CODE(cuGraphAddHostNode(&s.node, s.graph, nullptr, 0, nullptr), 1);
        NodeObject* empty = nullptr;
        REQUIRE_CODE(cuGraphAddEmptyNode(&empty, s.graph, nullptr, 0), 0);
        p.function = &count_up;
        REQUIRE_CODE(cuGraphHostNodeSetParams(empty, &p), 1);
        REQUIRE_CODE(cuGraphHostNodeGetParams(empty, &known), 1);
        REQUIRE_CODE(cuGraphExecHostNodeSetParams(instance, empty, &p), 1);  // the instance has no such node
    });
}

TEST(SimHostNodes, ACapturedHostFunctionIsRead) {
    in_own_process([] {
        NodeScene s;
        int counter = 0;
        std::size_t count = 1;
        HostNodeParameters known = {};
        REQUIRE_CODE(cuStreamBeginCapture_v2(s.scene.stream, global), 0);
        REQUIRE_CODE(cuLaunchHostFunc(s.scene.stream, &count_up, &counter), 0);
        REQUIRE_CODE(cuStreamEndCapture(s.scene.stream, &s.graph), 0);
        REQUIRE_CODE(cuGraphGetNodes(s.graph, &s.node, &count), 0);
        REQUIRE_CODE(cuGraphHostNodeGetParams(s.node, &known), 0);
        REQUIRE_THAT(known.function == &count_up && known.data == &counter && counter == 0);
    });
}

Copy3D line(Address to, const void* from, std::size_t bytes) {
    Copy3D copy = {};
    copy.source.type = 1;
    copy.source.host = from;
    copy.destination.type = 2;
    copy.destination.device = to;
    copy.width_bytes = bytes;
    copy.height = copy.depth = 1;
    return copy;
}

TEST(SimCopyNodes, CopyAtEachLaunchAndAreSet) {
    in_own_process([] {
        NodeScene s;
        int values[4] = {11, 22, 33, 44};
        Copy3D copy = line(s.scene.memory, &values[0], 4), known = {};
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &copy, s.scene.context), 0);
        GraphExec* const instance = s.instance();
        s.launch(instance);
        REQUIRE_THAT(s.read() == 11);
        values[0] = 55;  // read when the graph runs
        s.launch(instance);
        REQUIRE_THAT(s.read() == 55);
        REQUIRE_CODE(cuGraphMemcpyNodeGetParams(s.node, &known), 0);
        REQUIRE_THAT(known.source.host == &values[0] && known.destination.device == s.scene.memory &&
                     known.width_bytes == 4);
        copy.source.host = &values[1];
        Copy3D unified = copy;  // documented: the type of memory does not change
        unified.destination.type = 4;
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, s.node, &unified, s.scene.context), 1);
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, s.node, &copy, s.scene.context), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 22);
        copy.source.host = &values[2];
        REQUIRE_CODE(cuGraphMemcpyNodeSetParams(s.node, &copy), 0);
        s.launch(s.instance());
        REQUIRE_THAT(s.read() == 33);
        Copy3D box = copy;
        box.height = 2;
        box.source.pitch = box.destination.pitch = 8;
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, s.node, &box, s.scene.context), 1);  // documented
        REQUIRE_CODE(cuGraphExecMemcpyNodeSetParams(instance, s.node, &copy, nullptr),
                     0);  // 580, H200: its own context
        REQUIRE_CODE(cuGraphMemcpyNodeSetParams(s.node, nullptr), 1);
        copy.width_bytes = 0;
        REQUIRE_CODE(cuGraphMemcpyNodeSetParams(s.node, &copy), 1);
        copy = line(s.scene.memory, &values[0], 8192);  // leaves its allocation
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &copy, s.scene.context), 1);
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &known, nullptr), 0);  // 580, H200: the current
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &known, nullptr), 0);  // 580
    });
}

TEST(SimCopyNodes, ManagedMemoryIsNotUnifiedWherePhasesGuardIt) {
    in_own_process([] {
        NodeScene s;
        Address managed = 0;
        if (fact(attribute::managed) == 0 || cuMemAllocManaged(&managed, 4096, 1) != 0) return;
        Copy3D copy = line(s.scene.memory, nullptr, 16);
        copy.source.type = 4;
        copy.source.device = managed;
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &copy, s.scene.context),
                     concurrent_managed() ? 0 : 1);
        copy.source.type = 2;
        REQUIRE_CODE(cuGraphAddMemcpyNode(&s.node, s.graph, nullptr, 0, &copy, s.scene.context), 0);
    });
}

TEST(SimFillNodes, AreReadAndSet) {
    in_own_process([] {
        NodeScene s;
        FillNodeParameters p = {s.scene.memory, 0, 5, 4, 4, 1}, known = {};
        REQUIRE_CODE(cuGraphAddMemsetNode(&s.node, s.graph, nullptr, 0, &p, s.scene.context), 0);
        GraphExec* const instance = s.instance();
        REQUIRE_CODE(cuGraphMemsetNodeGetParams(s.node, &known), 0);
        REQUIRE_THAT(known.address == p.address && known.value == 5 && known.element_bytes == 4 && known.width == 4);
        p.value = 6;
        p.address += 16;
        REQUIRE_CODE(cuGraphExecMemsetNodeSetParams(instance, s.node, &p, s.scene.context), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 0 && s.read(16) == 6);
        p.value = 7;
        REQUIRE_CODE(cuGraphMemsetNodeSetParams(s.node, &p), 0);
        s.launch(s.instance());
        REQUIRE_THAT(s.read(28) == 7);
        p.height = 2;  // documented: an instance's height does not change
        p.pitch = 64;
        REQUIRE_CODE(cuGraphExecMemsetNodeSetParams(instance, s.node, &p, s.scene.context), 1);
        p.element_bytes = 3;
        REQUIRE_CODE(cuGraphMemsetNodeSetParams(s.node, &p), 1);
        REQUIRE_CODE(cuGraphMemsetNodeGetParams(s.node, nullptr), 1);
        REQUIRE_CODE(cuGraphExecMemsetNodeSetParams(instance, s.node, &p, nullptr), 1);
    });
}

TEST(SimFillNodes, WithoutAContextTheyHaveTheCurrentOne) {
    in_own_process([] {
        NodeScene s;
        NodeParameters p = {};
        p.type = 2;
        p.fill = {{s.scene.memory, 0, 5, 4, 1, 1}, nullptr};
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &p), 0);
        GraphExec* const instance = s.instance();
        s.launch(instance);
        REQUIRE_THAT(s.read() == 5);
        p.fill.fill.value = 6;
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, s.node, &p), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 6);
        p.fill.fill.value = 7;
        REQUIRE_CODE(cuGraphExecMemsetNodeSetParams(instance, s.node, &p.fill.fill, nullptr), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 7);
    });
}

TEST(SimAnyNodes, EachKindIsAddedByOneStructure) {
    in_own_process([] {
        NodeScene s;
        int counter = 0, value = 21;
        GraphObject* child = nullptr;
        REQUIRE_CODE(cuGraphCreate(&child, 0), 0);
        std::vector<NodeParameters> all;
        const auto of_type = [&](int type) -> NodeParameters& {
            all.push_back({});
            all.back().type = type;
            return all.back();
        };
        of_type(2).fill = {{s.scene.memory + 64, 0, 9, 4, 1, 1}, s.scene.context};
        of_type(1).copy = {0, 0, s.scene.context, line(s.scene.memory, &value, 4)};
        of_type(3).host = {&count_up, &counter};
        of_type(4).child = {child, 0};
        of_type(5);
        of_type(7).event = s.scene.fresh;
        of_type(6).event = s.scene.fresh;
        MemoryOperation write = {2, 0, s.scene.memory + 128, 8, 0, 0, 0, 0};
        of_type(12).words = {s.scene.context, 1, &write, 0};
        NodeObject* before = nullptr;
        for (NodeParameters& p : all) {
            const EdgeData plain = {};
            NodeObject* added = nullptr;
            int type = -1;
            REQUIRE_CODE(cuGraphAddNode_v2(&added, s.graph, &before, &plain, before ? 1 : 0, &p), 0);
            REQUIRE_CODE(cuGraphNodeGetType(added, &type), 0);
            REQUIRE_THAT(type == p.type);
            before = added;
        }
        s.launch(s.instance());
        REQUIRE_THAT(s.read() == 21 && s.read(64) == 9 && s.read(128) == 8 && counter == 1);
        REQUIRE_CODE(cuEventQuery(s.scene.fresh), 0);
        NodeParameters& host = all[2];
        host.reserved[1] = 1;
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &host), 1);
        host.reserved[1] = 0;
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &host), 0);
        const EdgeData programmatic = {1, 0, 1, {}};
        REQUIRE_CODE(cuGraphAddNode_v2(&s.node, s.graph, &before, &programmatic, 1, &host), 801);
        of_type(8);
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &all.back()), 0);  // 580: of no semaphore
        of_type(99);
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &all.back()), 1);
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, nullptr), 1);
    });
}

TEST(SimAnyNodes, ParametersAreSetByOneStructure) {
    in_own_process([] {
        NodeScene s;
        int first = 0, second = 0;
        HostNodeParameters plain = {&count_up, &first};
        REQUIRE_CODE(cuGraphAddHostNode(&s.node, s.graph, nullptr, 0, &plain), 0);
        GraphExec* const instance = s.instance();
        NodeParameters p = {};
        p.type = 3;
        p.host = {&count_up, &second};
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, s.node, &p), 0);
        s.launch(instance);
        REQUIRE_THAT(first == 0 && second == 1);
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 0);
        s.launch(s.instance());
        REQUIRE_THAT(first == 0 && second == 2);
        p.type = 2;  // another type than the node's
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 1);
        p.type = 3;
        REQUIRE_CODE(cuGraphExecNodeSetParams(nullptr, s.node, &p), 1);
        REQUIRE_CODE(cuGraphNodeSetParams(nullptr, &p), 1);
        GraphObject* another = nullptr;
        NodeObject* stranger = nullptr;
        REQUIRE_CODE(cuGraphCreate(&another, 0), 0);
        REQUIRE_CODE(cuGraphAddEmptyNode(&stranger, another, nullptr, 0), 0);
        p.type = 5;
        REQUIRE_CODE(cuGraphNodeSetParams(stranger, &p), 0);
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, stranger, &p), 1);  // the instance has no such node
    });
}

TEST(SimAnyNodes, FlagsOfACopyAreRefusedWhenItIsAddedAndWhenItIsSet) {
    in_own_process([] {
        NodeScene s;
        int values[2] = {11, 22};
        NodeParameters p = {};
        p.type = 1;
        p.copy = {1, 0, s.scene.context, line(s.scene.memory, &values[0], 4)};
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &p), 1);
        p.copy.flags = 0;
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &p), 0);
        GraphExec* const instance = s.instance();
        p.copy.copy.source.host = &values[1];
        p.copy.flags = 1;
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 1);
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, s.node, &p), 1);
        p.copy.flags = 0;
        p.copy.reserved = 1;
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 1);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 11);
        p.copy.reserved = 0;
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, s.node, &p), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 22);
    });
}

TEST(SimAnyNodes, AChildGraphOfAnInstanceIsUpdated) {
    in_own_process([] {
        NodeScene s;
        REQUIRE_CODE(cuGraphAddChildGraphNode(&s.node, s.graph, nullptr, 0, s.fills(1, 1)), 0);
        GraphExec* const instance = s.instance();
        REQUIRE_CODE(cuGraphExecChildGraphNodeSetParams(instance, s.node, s.fills(2, 1)), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 2);
        REQUIRE_CODE(cuGraphExecChildGraphNodeSetParams(instance, s.node, s.fills(3, 2)), 910);  // another shape
        s.launch(instance);
        REQUIRE_THAT(s.read() == 2);
        REQUIRE_CODE(cuGraphExecChildGraphNodeSetParams(instance, nullptr, s.fills(3, 1)), 1);
        REQUIRE_CODE(cuGraphExecChildGraphNodeSetParams(instance, s.node, nullptr), 1);
    });
}

TEST(SimAnyNodes, AChildGraphIsReplacedInItsGraph) {
    in_own_process([] {
        NodeScene s;
        REQUIRE_CODE(cuGraphAddChildGraphNode(&s.node, s.graph, nullptr, 0, s.fills(1, 1)), 0);
        GraphExec* const before = s.instance();
        GraphObject *first = nullptr, *second = nullptr;
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(s.node, &first), 0);
        NodeObject* inside = nullptr;
        std::size_t count = 1;
        REQUIRE_CODE(cuGraphGetNodes(first, &inside, &count), 0);
        NodeParameters p = {};
        p.type = 4;
        p.child.graph = s.fills(2, 2);  // another shape
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 0);
        REQUIRE_CODE(cuGraphDestroy(p.child.graph), 0);  // the node has a copy
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(inside, &type), 1);
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(s.node, &second), 0);
        REQUIRE_CODE(cuGraphGetNodes(second, nullptr, &count), 0);
        REQUIRE_THAT(count == 2);
        s.launch(s.instance());
        REQUIRE_THAT(s.read() == 2);
        s.launch(before);  // keeps what it was made with
        REQUIRE_THAT(s.read() == 1);
        p.child.graph = second;
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 801);
        p.child.graph = s.graph;
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 801);
        p.child.graph = nullptr;
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 1);
        p.child.graph = s.fills(3, 1);
        p.child.ownership = 1;  // moved
        REQUIRE_CODE(cuGraphNodeSetParams(s.node, &p), 801);
        s.launch(s.instance());
        REQUIRE_THAT(s.read() == 2);
    });
}

TEST(SimAnyNodes, ANodeThatIsSwitchedOffDoesNothing) {
    in_own_process([] {
        NodeScene s;
        int counter = 0;
        FillNodeParameters p = {s.scene.memory, 0, 5, 4, 1, 1};
        const HostNodeParameters host = {&count_up, &counter};
        NodeObject* after = nullptr;
        unsigned enabled = 7;
        REQUIRE_CODE(cuGraphAddMemsetNode(&s.node, s.graph, nullptr, 0, &p, s.scene.context), 0);
        REQUIRE_CODE(cuGraphAddHostNode(&after, s.graph, &s.node, 1, &host), 0);
        GraphExec* const instance = s.instance();
        REQUIRE_CODE(cuGraphNodeGetEnabled(instance, s.node, &enabled), 0);
        REQUIRE_THAT(enabled == 1);
        REQUIRE_CODE(cuGraphNodeSetEnabled(instance, s.node, 0), 0);
        REQUIRE_CODE(cuGraphNodeGetEnabled(instance, s.node, &enabled), 0);
        s.launch(instance);
        REQUIRE_THAT(enabled == 0 && s.read() == 0 && counter == 1);
        s.launch(s.instance());  // another instance has it on
        REQUIRE_THAT(s.read() == 5);
        p.value = 6;
        REQUIRE_CODE(cuGraphExecMemsetNodeSetParams(instance, s.node, &p, s.scene.context), 0);
        REQUIRE_CODE(cuGraphNodeSetEnabled(instance, s.node, 1), 0);
        s.launch(instance);
        REQUIRE_THAT(s.read() == 6);
        REQUIRE_CODE(cuGraphNodeSetEnabled(instance, after, 0), 1);  // documented: kernels, fills and copies
        REQUIRE_CODE(cuGraphNodeGetEnabled(instance, s.node, nullptr), 1);
        REQUIRE_CODE(cuGraphNodeSetEnabled(nullptr, s.node, 0), 1);
    });
}

NodeParameters moves(GraphObject* child) {
    NodeParameters p = {};
    p.type = 4;
    p.child = {child, 1};
    return p;
}

TEST(SimChildGraphs, AMovedOneKeepsItsHandles) {
    in_own_process([] {
        NodeScene s;
        GraphObject* child = nullptr;
        NodeObject* fill = nullptr;
        REQUIRE_CODE(cuGraphCreate(&child, 0), 0);
        FillNodeParameters f = {s.scene.memory, 0, 3, 1, 64, 1};
        REQUIRE_CODE(cuGraphAddMemsetNode(&fill, child, nullptr, 0, &f, s.scene.context), 0);
        NodeParameters p = moves(child);
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &p), 0);
        GraphObject* embedded = nullptr;
        REQUIRE_CODE(cuGraphChildGraphNodeGetGraph(s.node, &embedded), 0);
        REQUIRE_THAT(embedded == child);
        f.value = 4;
        REQUIRE_CODE(cuGraphMemsetNodeSetParams(fill, &f), 0);  // changes the parent's node
        GraphExec* const instance = s.instance();
        s.launch(instance);
        REQUIRE_THAT(s.read() == 0x04040404);
        // It belongs to its node.
        GraphExec* none = nullptr;
        int answer = 0;
        NodeObject *error = nullptr, *again = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&none, child, nullptr, nullptr, 0), 801);  // 580: this and two below
        REQUIRE_CODE(cuGraphDestroy(child), 1);
        REQUIRE_CODE(cuGraphExecUpdate(instance, child, &error, &answer), 1);
        GraphObject* another = nullptr;
        REQUIRE_CODE(cuGraphCreate(&another, 0), 0);
        REQUIRE_CODE(cuGraphAddNode(&again, another, nullptr, 0, &p), 801);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&again, another, nullptr, 0, child), 801);
        p = moves(another);
        REQUIRE_CODE(cuGraphAddNode(&again, another, nullptr, 0, &p), 1);  // into itself
        p.child.ownership = 2;
        REQUIRE_CODE(cuGraphAddNode(&again, s.graph, nullptr, 0, &p), 1);
        REQUIRE_CODE(cuGraphDestroy(s.graph), 0);
        std::size_t count = 0;
        REQUIRE_CODE(cuGraphGetNodes(child, nullptr, &count), 1);  // ended with its parent
        s.launch(instance);
    });
}

TEST(SimChildGraphs, AMovedOneMayAllocate) {
    in_own_process([] {
        NodeScene s;
        if (!pools()) return;
        GraphObject* child = nullptr;
        NodeObject *taken = nullptr, *given_back = nullptr;
        REQUIRE_CODE(cuGraphCreate(&child, 0), 0);
        AllocationNodeParameters a = {};
        a.properties.allocation_type = 1;
        a.properties.location = {1, 0};
        a.bytes = 4096;
        REQUIRE_CODE(cuGraphAddMemAllocNode(&taken, child, nullptr, 0, &a), 0);
        REQUIRE_CODE(cuGraphAddMemFreeNode(&given_back, child, &taken, 1, a.address), 0);
        REQUIRE_CODE(cuGraphAddChildGraphNode(&s.node, s.graph, nullptr, 0, child), 801);  // a clone may not
        NodeParameters p = moves(child);
        REQUIRE_CODE(cuGraphAddNode(&s.node, s.graph, nullptr, 0, &p), 0);
        REQUIRE_CODE(cuGraphAddMemAllocNode(&taken, child, nullptr, 0, &a), 801);  // no more of them
        REQUIRE_CODE(cuGraphAddMemFreeNode(&taken, child, nullptr, 0, a.address), 801);
        GraphExec *const instance = s.instance(), *second = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&second, s.graph, nullptr, nullptr, 0), 801);  // as for all that allocates
        s.launch(instance);
        s.launch(instance);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
