// SPDX-License-Identifier: Apache-2.0
// Thousands of short programs in one seeded process: none of them leaves anything behind.
#include "sim_capture_scene.hpp"

namespace isthmus::sim::test {
namespace {

struct Program {
    Stream* first = new_stream();
    Stream* second = new_stream();
    Event* fork = new_event();
    Event* join = new_event();
    Address memory = device_memory(4096);

    void work(Stream* stream) { REQUIRE_CODE(launch_multiply(stream, memory, 4, 1), 0); }
    void meet() {
        work(first);
        REQUIRE_CODE(cuEventRecord(fork, first), 0);
        REQUIRE_CODE(cuStreamWaitEvent(second, fork, 0), 0);
        work(second);
        work(first);
        REQUIRE_CODE(cuEventRecord(join, second), 0);
        REQUIRE_CODE(cuStreamWaitEvent(first, join, 0), 0);
    }
    // The graph of the two streams, queried during its capture.
    GraphObject* capture() {
        int status = 0;
        GraphObject *open = nullptr, *graph = nullptr;
        NodeObject* const* nodes = nullptr;
        std::size_t count = 0;
        REQUIRE_CODE(cuStreamBeginCapture_v2(first, thread_local_mode), 0);
        meet();
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(first, &status, nullptr, &open, &nodes, &count), 0);
        REQUIRE_THAT(status == 1 && count == 2);
        REQUIRE_CODE(cuStreamEndCapture(first, &graph), 0);
        return graph;
    }
    void replay(int turn) {
        GraphObject *graph = capture(), *same = capture();
        GraphExec* instance = nullptr;
        UpdateResult answer = {};
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, first), 0);
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, same, &answer), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, turn % 2 == 0 ? first : second), 0);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);  // while it may be running
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_CODE(cuGraphDestroy(same), 0);
    }
    void lose_one() {
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(first, thread_local_mode), 0);
        meet();
        REQUIRE_CODE(cuStreamSynchronize(first), 900);
        REQUIRE_CODE(cuStreamEndCapture(first, &graph), 901);
    }
    void end() {
        REQUIRE_CODE(cuEventDestroy_v2(fork), 0);
        REQUIRE_CODE(cuEventDestroy_v2(join), 0);
        REQUIRE_CODE(cuStreamDestroy_v2(first), 0);
        REQUIRE_CODE(cuStreamDestroy_v2(second), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
    }
};

TEST(SimMany, SeededProgramsLeaveNothingBehind) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
        open_device();
        for (int turn = 0; turn < 500; ++turn) {
            Program program;
            program.meet();
            program.replay(turn);
            if (turn % 3 == 0) program.lose_one();
            program.end();
            for (const char* what : {"streams", "events", "graphs", "graph_nodes", "graph_instances", "allocations"}) {
                REQUIRE_THAT(isthmus_sim_live(what) == 0);
            }
        }
    });
}

}  // namespace
}  // namespace isthmus::sim::test
