// SPDX-License-Identifier: Apache-2.0
// External semaphores: imported, signalled and waited for by streams and graphs, with the other side played by the
// test.
#include "sim_capture_scene.hpp"

#include <driver_abi/sim_semaphore.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace isthmus::sim::test {
namespace {

constexpr int opaque = 1, timeline = 9;

// The other side: a file that this process maps too.
struct Word {
    int file = -1;
    isthmus_sim_semaphore* shared = nullptr;

    explicit Word(unsigned kind, std::uint64_t value = 0) {
        file = ::memfd_create("semaphore", MFD_CLOEXEC);
        const isthmus_sim_semaphore content = {ISTHMUS_SIM_SEMAPHORE_MAGIC, kind, 0, value};
        REQUIRE_THAT(::write(file, &content, sizeof(content)) == static_cast<ssize_t>(sizeof(content)));
        void* const at = ::mmap(nullptr, sizeof(content), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        REQUIRE_THAT(at != MAP_FAILED);
        shared = static_cast<isthmus_sim_semaphore*>(at);
    }
    std::uint64_t value() const { return __atomic_load_n(&shared->value, __ATOMIC_ACQUIRE); }
    void set(std::uint64_t to) { __atomic_store_n(&shared->value, to, __ATOMIC_RELEASE); }
};

Result import_code(int file, int type, Semaphore*& semaphore, unsigned flags = 0) {
    SemaphoreDescription from = {};
    from.type = type;
    from.handle.descriptor = file;
    from.flags = flags;
    return cuImportExternalSemaphore(&semaphore, &from);
}

bool timelines() {
    return fact(attribute::timeline_semaphores) == 1;
}

Semaphore* imported(const Word& word, int type) {
    Semaphore* semaphore = nullptr;
    REQUIRE_CODE(import_code(word.file, type, semaphore), 0);
    REQUIRE_THAT(semaphore != nullptr);
    return semaphore;
}

SemaphoreParameters of_value(std::uint64_t value) {
    SemaphoreParameters parameters = {};
    parameters.value = value;
    return parameters;
}

TEST(SimSemaphores, AreImportedFromFilesOfTheirKind) {
    in_own_process([] {
        open_device();
        const Word binary(isthmus_sim_semaphore_binary), steps(isthmus_sim_semaphore_timeline);
        Semaphore* semaphore = nullptr;
        SemaphoreDescription from = {};
        REQUIRE_CODE(cuImportExternalSemaphore(nullptr, &from), 1);
        REQUIRE_CODE(cuImportExternalSemaphore(&semaphore, nullptr), 1);
        // 999: as a driver 580 on an H200.
        REQUIRE_CODE(import_code(-1, opaque, semaphore), 999);
        REQUIRE_CODE(import_code(-1, timeline, semaphore), timelines() ? 1 : 801);
        REQUIRE_CODE(import_code(binary.file, opaque, semaphore, 1), 1);
        REQUIRE_CODE(import_code(binary.file, 0, semaphore), 1);
        REQUIRE_CODE(import_code(binary.file, 11, semaphore), 1);
        REQUIRE_CODE(import_code(binary.file, 4, semaphore), 801);  // of Direct3D
        REQUIRE_CODE(import_code(binary.file, 6, semaphore), 801);
        const int none = ::memfd_create("no semaphore", MFD_CLOEXEC);
        REQUIRE_CODE(import_code(none, opaque, semaphore), 999);
        REQUIRE_CODE(import_code(steps.file, opaque, semaphore), 999);
        int ends[2] = {};
        REQUIRE_THAT(::pipe(ends) == 0);
        REQUIRE_CODE(import_code(ends[0], opaque, semaphore), 999);
        REQUIRE_CODE(import_code(12345, opaque, semaphore), 999);
        REQUIRE_THAT(::fcntl(none, F_GETFD) >= 0 && ::fcntl(steps.file, F_GETFD) >= 0);  // stay the caller's
        REQUIRE_THAT(isthmus_sim_live("semaphores") == 0);
        semaphore = imported(binary, opaque);
        REQUIRE_THAT(::fcntl(binary.file, F_GETFD) < 0);  // the driver's
        REQUIRE_CODE(cuDestroyExternalSemaphore(semaphore), 0);
        REQUIRE_CODE(cuDestroyExternalSemaphore(semaphore), 400);
        REQUIRE_CODE(cuDestroyExternalSemaphore(nullptr), 1);  // 580, H200
        REQUIRE_CODE(import_code(steps.file, timeline, semaphore), timelines() ? 0 : 801);
        REQUIRE_THAT(isthmus_sim_fault_plan("call=cuImportExternalSemaphore:n=1:code=304") == 0);
        const Word again(isthmus_sim_semaphore_binary);
        REQUIRE_CODE(import_code(again.file, opaque, semaphore), 304);
        REQUIRE_CODE(import_code(again.file, opaque, semaphore), 0);
    });
}

TEST(SimSemaphores, ASignalOfNullEndsTheProcess) {  // as a driver 580 on an H200
    in_own_process_faults(
        [] {
            open_device();
            Semaphore* none = nullptr;
            const SemaphoreParameters any = of_value(0);
            cuSignalExternalSemaphoresAsync(&none, &any, 1, new_stream());
        },
        "a call for a semaphore that is null: the real driver ends here");
}

TEST(SimSemaphores, EachSignalEndsOneWait) {
    in_own_process([] {
        const CaptureScene s = open_scene();
        Word word(isthmus_sim_semaphore_binary);
        Semaphore* const semaphore = imported(word, opaque);
        const SemaphoreParameters any = of_value(0);
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(&semaphore, &any, 1, s.stream), 0);
        REQUIRE_CODE(cuMemsetD8Async(s.memory, 5, 4, s.stream), 0);
        ::usleep(20000);
        REQUIRE_CODE(cuStreamQuery(s.stream), 600);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&semaphore, &any, 1, s.other), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 0);
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(&semaphore, &any, 1, s.stream), 0);
        ::usleep(20000);
        REQUIRE_CODE(cuStreamQuery(s.stream), 600);
        word.set(1);  // by the other side
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        // In stream order: not before earlier work.
        Gate gate;
        REQUIRE_CODE(launch_hold(s.stream, gate), 0);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&semaphore, &any, 1, s.stream), 0);
        wait_until(gate.begun);
        REQUIRE_THAT(word.value() == 0);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 1);
    });
}

TEST(SimSemaphores, TimelinesCountUp) {
    in_own_process(
        [] {
            const CaptureScene s = open_scene();
            if (!timelines()) {
                std::fprintf(stderr, "a larger value\n");
                return;
            }
            Word word(isthmus_sim_semaphore_timeline, 3);
            Semaphore* const semaphore = imported(word, timeline);
            const SemaphoreParameters three = of_value(3), five = of_value(5), seven = of_value(7);
            REQUIRE_CODE(cuWaitExternalSemaphoresAsync(&semaphore, &three, 1, s.stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
            REQUIRE_CODE(cuWaitExternalSemaphoresAsync(&semaphore, &five, 1, s.stream), 0);
            REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&semaphore, &seven, 1, s.stream), 0);
            ::usleep(20000);
            REQUIRE_THAT(word.value() == 3);
            word.set(6);
            REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
            REQUIRE_THAT(word.value() == 7);
            REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&semaphore, &five, 1, s.stream), 0);  // downwards
            REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        },
        "a larger value");
}

TEST(SimSemaphores, WhatCannotBeSignalledIsRefused) {
    in_own_process([] {
        const CaptureScene s = open_scene();
        const Word first(isthmus_sim_semaphore_binary), second(isthmus_sim_semaphore_binary);
        Semaphore* both[2] = {imported(first, opaque), imported(second, opaque)};
        SemaphoreParameters parameters[2] = {};
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, parameters, 2, s.stream), 0);
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(both, parameters, 2, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, parameters, 0, s.stream), 1);  // 580, H200
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(both, parameters, 0, s.stream), 1);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(nullptr, parameters, 1, s.stream), 1);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, nullptr, 1, s.stream), 1);
        parameters[1].flags = 1;
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, parameters, 2, s.stream), 1);
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(both, parameters, 2, s.stream), 1);
        parameters[1].flags = 0;
        REQUIRE_CODE(cuDestroyExternalSemaphore(both[1]), 0);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, parameters, 2, s.stream), 400);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(first.value() == 0);  // none of a refused set
        Context* made = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&made, 0, 0), 0);
        const Word third(isthmus_sim_semaphore_binary);
        both[1] = imported(third, opaque);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(both, parameters, 2, s.stream), 400);  // of another context
        REQUIRE_CODE(cuCtxDestroy_v2(made), 0);
        open_device();
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&both[1], parameters, 1, s.stream), 709);
        REQUIRE_CODE(cuDestroyExternalSemaphore(both[1]), 709);
    });
}

TEST(SimSemaphores, AWaitEndsWithItsDevice) {
    in_own_process([] {
        const CaptureScene s = open_scene();
        const Word word(isthmus_sim_semaphore_binary);
        Semaphore* const semaphore = imported(word, opaque);
        const SemaphoreParameters any = of_value(0);
        REQUIRE_CODE(cuWaitExternalSemaphoresAsync(&semaphore, &any, 1, s.stream), 0);
        REQUIRE_CODE(launch_wild_store(s.other, nullptr), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.other), 700);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 700);
    });
}

TEST(SimSemaphores, AreNodesOfGraphs) {
    in_own_process([] {
        const CaptureScene s = open_scene();
        Word word(isthmus_sim_semaphore_binary), other(isthmus_sim_semaphore_binary, 1);
        Semaphore *both[2] = {imported(word, opaque), imported(other, opaque)}, *none_of_them = nullptr;
        SemaphoreParameters parameters[2] = {};
        const SemaphoreNodeParameters signal = {both, parameters, 1}, wait = {&both[1], parameters, 1};
        SemaphoreNodeParameters known = {};
        GraphObject* graph = nullptr;
        NodeObject *signals = nullptr, *waits = nullptr, *none = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresWaitNode(&waits, graph, nullptr, 0, &wait), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&signals, graph, &waits, 1, &signal), 0);
        int type = 0;
        REQUIRE_CODE(cuGraphNodeGetType(signals, &type), 0);
        REQUIRE_THAT(type == 8);
        REQUIRE_CODE(cuGraphNodeGetType(waits, &type), 0);
        REQUIRE_THAT(type == 9);
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, graph, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 1 && other.value() == 0);
        REQUIRE_CODE(cuGraphExternalSemaphoresWaitNodeGetParams(waits, &known), 0);
        REQUIRE_THAT(known.count == 1 && known.semaphores[0] == both[1]);
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeGetParams(signals, &known), 0);
        REQUIRE_THAT(known.count == 1 && known.semaphores[0] == both[0]);
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeGetParams(waits, &known), 1);
        REQUIRE_CODE(cuGraphExternalSemaphoresWaitNodeGetParams(waits, nullptr), 1);
        // The instance's nodes change, but not the number of their semaphores.
        word.set(0);
        other.set(1);
        const SemaphoreNodeParameters two = {both, parameters, 2};
        REQUIRE_CODE(cuGraphExecExternalSemaphoresSignalNodeSetParams(instance, signals, &two), 1);
        REQUIRE_CODE(cuGraphExecExternalSemaphoresSignalNodeSetParams(instance, signals, &wait), 0);
        REQUIRE_CODE(cuGraphExecExternalSemaphoresWaitNodeSetParams(instance, waits, &wait), 0);
        REQUIRE_CODE(cuGraphExecExternalSemaphoresWaitNodeSetParams(instance, signals, &wait), 1);
        REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 0 && other.value() == 1);
        // The graph's own nodes take any number; then the instance cannot follow.
        REQUIRE_CODE(cuGraphExternalSemaphoresWaitNodeSetParams(waits, &wait), 0);
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeSetParams(signals, &two), 0);
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeSetParams(waits, &two), 1);
        UpdateResult update = {};
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, graph, &update), 910);
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeSetParams(signals, &signal), 0);
        REQUIRE_CODE(cuGraphExecUpdate_v2(instance, graph, &update), 0);
        // 580: nodes of no semaphores, and of one that is null. Here they do nothing.
        const SemaphoreNodeParameters empty = {}, null = {&none_of_them, parameters, 1};
        GraphObject* other_graph = nullptr;
        NodeObject* last = nullptr;
        REQUIRE_CODE(cuGraphCreate(&other_graph, 0), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&last, other_graph, nullptr, 0, &empty), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&last, other_graph, &last, 1, &null), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&last, other_graph, &last, 1, &signal), 0);
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, other_graph, nullptr, nullptr, 0), 0);
        word.set(0);
        REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 1);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&none, graph, nullptr, 0, nullptr), 1);
        REQUIRE_CODE(cuDestroyExternalSemaphore(both[0]), 0);
        REQUIRE_CODE(cuGraphAddExternalSemaphoresSignalNode(&none, graph, nullptr, 0, &signal), 400);
        REQUIRE_THAT(none == nullptr);
    });
}

TEST(SimSemaphores, AreNodesOfAnyKindAndOfCaptures) {
    in_own_process([] {
        const CaptureScene s = open_scene();
        Word word(isthmus_sim_semaphore_binary);
        Semaphore* semaphore = imported(word, opaque);
        SemaphoreParameters any = of_value(0);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(s.stream, global), 0);
        REQUIRE_CODE(cuSignalExternalSemaphoresAsync(&semaphore, &any, 1, s.stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(s.stream, &graph), 0);
        REQUIRE_THAT(word.value() == 0);
        NodeObject *node = nullptr, *second = nullptr;
        std::size_t count = 1;
        REQUIRE_CODE(cuGraphGetNodes(graph, &node, &count), 0);
        SemaphoreNodeParameters known = {};
        REQUIRE_CODE(cuGraphExternalSemaphoresSignalNodeGetParams(node, &known), 0);
        REQUIRE_THAT(known.semaphores[0] == semaphore);
        NodeParameters p = {};
        p.type = 9;
        p.semaphores = {&semaphore, &any, 1};
        REQUIRE_CODE(cuGraphAddNode(&second, graph, &node, 1, &p), 0);
        REQUIRE_CODE(cuGraphNodeSetParams(second, &p), 0);
        REQUIRE_CODE(cuGraphNodeSetParams(node, &p), 1);  // of another type
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, graph, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphExecNodeSetParams(instance, second, &p), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, s.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.stream), 0);
        REQUIRE_THAT(word.value() == 0);
    });
}

TEST(SimSemaphores, ArraysInExternalMemoryAreNotModelled) {
    in_own_process([] {
        open_device();
        MipmappedArray* levels = nullptr;
        const ExternalMipmappedArray description = {};
        REQUIRE_CODE(cuExternalMemoryGetMappedMipmappedArray(nullptr, nullptr, &description), 1);
        REQUIRE_CODE(cuExternalMemoryGetMappedMipmappedArray(&levels, nullptr, nullptr), 1);
        REQUIRE_CODE(cuExternalMemoryGetMappedMipmappedArray(&levels, nullptr, &description), 400);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
