// SPDX-License-Identifier: Apache-2.0
// Nodes that record an event or wait for one at each launch, and fill nodes.
#include "sim_capture_scene.hpp"

namespace isthmus::sim::test {
namespace {

struct EventGraph {
    CaptureScene scene = open_scene();
    GraphObject* graph = nullptr;
    NodeObject* node = nullptr;
    EventGraph() { REQUIRE_CODE(cuGraphCreate(&graph, 0), 0); }
    GraphExec* instance() {
        GraphExec* made = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&made, graph, 0), 0);
        return made;
    }
};

TEST(SimEventNodes, ARecordNodeRecordsAtEachLaunch) {
    in_own_process([] {
        EventGraph g;
        REQUIRE_CODE(cuGraphAddEventRecordNode(&g.node, g.graph, nullptr, 0, g.scene.fresh), 0);
        int type = 0;
        Event* event = nullptr;
        REQUIRE_CODE(cuGraphNodeGetType(g.node, &type), 0);
        REQUIRE_CODE(cuGraphEventRecordNodeGetEvent(g.node, &event), 0);
        REQUIRE_THAT(type == 7 && event == g.scene.fresh);
        GraphExec* const instance = g.instance();
        Gate gate;
        REQUIRE_CODE(launch_hold(g.scene.stream, gate), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, g.scene.stream), 0);
        REQUIRE_CODE(cuEventQuery(g.scene.fresh), 600);
        gate.released = 1;
        REQUIRE_CODE(cuEventSynchronize(g.scene.fresh), 0);
    });
}

TEST(SimEventNodes, AWaitNodeWaitsForTheRecordOfTheLaunch) {
    in_own_process([] {
        EventGraph g;
        REQUIRE_CODE(cuGraphAddEventWaitNode(&g.node, g.graph, nullptr, 0, g.scene.fresh), 0);
        GraphExec* const instance = g.instance();
        REQUIRE_CODE(cuGraphLaunch(instance, g.scene.stream), 0);  // never recorded: nothing to wait for
        REQUIRE_CODE(cuStreamSynchronize(g.scene.stream), 0);
        Gate gate;
        REQUIRE_CODE(launch_hold(g.scene.other, gate), 0);
        REQUIRE_CODE(cuEventRecord(g.scene.fresh, g.scene.other), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, g.scene.stream), 0);
        REQUIRE_CODE(cuStreamQuery(g.scene.stream), 600);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(g.scene.stream), 0);
    });
}

TEST(SimEventNodes, TheEventIsChangedInTheGraphOrInAnInstance) {
    in_own_process([] {
        EventGraph g;
        Event *const second = new_event(), *const third = new_event();
        REQUIRE_CODE(cuGraphAddEventRecordNode(&g.node, g.graph, nullptr, 0, g.scene.fresh), 0);
        GraphExec* const first = g.instance();
        REQUIRE_CODE(cuGraphEventRecordNodeSetEvent(g.node, second), 0);
        Event* event = nullptr;
        REQUIRE_CODE(cuGraphEventRecordNodeGetEvent(g.node, &event), 0);
        REQUIRE_THAT(event == second);
        REQUIRE_CODE(cuGraphExecEventRecordNodeSetEvent(first, g.node, third), 0);
        Gate gate;
        REQUIRE_CODE(launch_hold(g.scene.stream, gate), 0);
        REQUIRE_CODE(cuGraphLaunch(first, g.scene.stream), 0);
        REQUIRE_CODE(cuEventQuery(third), 600);  // the instance's
        REQUIRE_CODE(cuEventQuery(second), 0);
        REQUIRE_CODE(cuEventQuery(g.scene.fresh), 0);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(g.scene.stream), 0);
        NodeObject* waits = nullptr;
        REQUIRE_CODE(cuGraphAddEventWaitNode(&waits, g.graph, nullptr, 0, second), 0);
        GraphExec* const both = g.instance();
        REQUIRE_CODE(cuGraphEventWaitNodeSetEvent(waits, third), 0);
        REQUIRE_CODE(cuGraphEventWaitNodeGetEvent(waits, &event), 0);
        REQUIRE_THAT(event == third);
        REQUIRE_CODE(cuGraphExecEventWaitNodeSetEvent(both, waits, third), 0);
        REQUIRE_CODE(cuGraphExecEventWaitNodeSetEvent(first, waits, third), 1);  // the instance has no such node
    });
}

TEST(SimEventNodes, WrongOnesAreRefused) {
    in_own_process([] {
        EventGraph g;
        NodeObject* empty = nullptr;
        Event* event = nullptr;
        REQUIRE_CODE(cuGraphAddEventRecordNode(&g.node, g.graph, nullptr, 0, nullptr), 1);
        REQUIRE_CODE(cuGraphAddEventRecordNode(nullptr, g.graph, nullptr, 0, g.scene.fresh), 1);
        REQUIRE_CODE(cuGraphAddEventRecordNode(&g.node, nullptr, nullptr, 0, g.scene.fresh), 1);
        REQUIRE_CODE(cuGraphAddEmptyNode(&empty, g.graph, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphEventRecordNodeGetEvent(empty, &event), 1);
        REQUIRE_CODE(cuGraphEventRecordNodeSetEvent(empty, g.scene.fresh), 1);
        REQUIRE_CODE(cuGraphAddEventWaitNode(&g.node, g.graph, &empty, 1, g.scene.fresh), 0);
        REQUIRE_CODE(cuGraphEventRecordNodeGetEvent(g.node, &event), 1);
        REQUIRE_CODE(cuGraphEventWaitNodeGetEvent(g.node, nullptr), 1);
        REQUIRE_CODE(cuGraphExecEventWaitNodeSetEvent(nullptr, g.node, g.scene.fresh), 1);
        Event* const gone = new_event();
        REQUIRE_CODE(cuEventDestroy_v2(gone), 0);
        REQUIRE_CODE(cuGraphEventWaitNodeSetEvent(g.node, gone), 400);
    });
}

TEST(SimFillNodes, FillAtEachLaunch) {
    in_own_process([] {
        EventGraph g;
        const FillNodeParameters two_rows = {g.scene.memory, 64, 0x01020304, 4, 2, 2};
        REQUIRE_CODE(cuMemsetD8_v2(g.scene.memory, 0, 256), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, &two_rows, g.scene.context), 0);
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(g.node, &type), 0);
        REQUIRE_THAT(type == 2);
        REQUIRE_CODE(cuGraphLaunch(g.instance(), g.scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(g.scene.stream), 0);
        unsigned back[20] = {};
        REQUIRE_CODE(cuMemcpyDtoH_v2(back, g.scene.memory, sizeof back), 0);
        REQUIRE_THAT(back[1] == 0x01020304 && back[2] == 0 && back[16] == 0x01020304 && back[18] == 0);
    });
}

TEST(SimFillNodes, WrongOnesAreRefused) {
    in_own_process([] {
        EventGraph g;
        const auto refused = [&](FillNodeParameters p, Result code = 1) {
            REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, &p, g.scene.context), code);
        };
        refused({g.scene.memory, 0, 1, 3, 4, 1});      // the size of elements
        refused({g.scene.memory + 2, 0, 1, 4, 4, 1});  // alignment
        refused({g.scene.memory, 0, 1, 4, 0, 1});
        refused({g.scene.memory, 4, 1, 4, 4, 2});       // rows overlap
        refused({g.scene.memory, 0, 1, 4, 100000, 1});  // beyond the allocation
        const FillNodeParameters good = {g.scene.memory, 0, 1, 4, 4, 1};
        REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, &good, nullptr), 0);  // 580
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, &good, nullptr), 0);
        REQUIRE_CODE(cuCtxSetCurrent(g.scene.context), 0);
        REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, nullptr, g.scene.context), 1);
        REQUIRE_CODE(cuGraphAddMemsetNode(&g.node, g.graph, nullptr, 0, &good, g.scene.context), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
