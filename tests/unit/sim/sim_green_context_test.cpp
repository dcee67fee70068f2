// SPDX-License-Identifier: Apache-2.0
// Shares of a device's multiprocessors, and green contexts with streams of their own.
#include "sim_test.hpp"

#include <algorithm>

namespace isthmus::sim::test {
namespace {

constexpr int multiprocessors = 1, graphics = 7;

DevResource of_device() {
    DevResource all = {};
    REQUIRE_CODE(cuDeviceGetDevResource(0, &all, multiprocessors), 0);
    return all;
}

ResourceDescription* description_of(DevResource* resources, unsigned count) {
    ResourceDescription* made = nullptr;
    REQUIRE_CODE(cuDevResourceGenerateDesc(&made, resources, count), 0);
    return made;
}

GreenContext* green_context(unsigned least = 8) {
    DevResource all = of_device(), part = {};
    unsigned count = 1;
    REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, least), 0);
    REQUIRE_THAT(count == 1);
    GreenContext* made = nullptr;
    REQUIRE_CODE(cuGreenCtxCreate(&made, description_of(&part, 1), 0, 1), 0);
    return made;
}

TEST(SimShares, ADeviceIsSplitIntoEqualPartsAndARest) {
    in_own_process([] {
        open_device();
        DevResource all = of_device(), parts[4] = {}, rest = {};
        REQUIRE_THAT(all.type == multiprocessors && static_cast<int>(all.count) == fact(attribute::multiprocessors));
        REQUIRE_THAT(all.least >= all.multiple && all.multiple > 0);
        unsigned possible = 0, made = 2;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(nullptr, &possible, &all, nullptr, 0, 1), 0);
        REQUIRE_THAT(possible == all.count / all.least);
        if (possible < 2) return;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(parts, &made, &all, &rest, 0, 1), 0);
        REQUIRE_THAT(made == 2 && parts[0].count == all.least && parts[1].count == all.least);
        REQUIRE_THAT(parts[0].least == 0 && parts[0].multiple == 0);  // observed (580, H100)
        REQUIRE_THAT(rest.count == all.count - 2 * all.least && (rest.count != 0 || rest.type == 0));
        made = 4;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(parts, &made, &all, &rest, 0, all.count), 0);
        REQUIRE_THAT(made == 1 && parts[0].count == all.count && rest.type == 0);
    });
}

TEST(SimShares, WrongSplitsAreRefused) {
    in_own_process([] {
        open_device();
        DevResource all = of_device(), part = {}, none = {};
        unsigned count = 1;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, nullptr, &all, nullptr, 0, 1), 1);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, nullptr, nullptr, 0, 1), 1);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 3, 1), 1);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, all.count + 1), 915);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &none, nullptr, 0, 1), 914);
        none.type = multiprocessors;  // invented
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &none, nullptr, 0, 1), 915);
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, 1), 0);
        DevResource again = {};
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&again, &count, &part, nullptr, 0, 1), 915);  // observed
        DevResource rest = {};
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 1), 0);
        if (rest.type != 0) REQUIRE_CODE(cuDevSmResourceSplitByCount(&again, &count, &rest, nullptr, 0, 1), 915);
        unsigned groups = 0;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&again, &groups, &all, nullptr, 0, 1), 1);
        DevResource none_such = {};
        REQUIRE_CODE(cuDeviceGetDevResource(0, &none_such, graphics), 914);
        REQUIRE_CODE(cuDeviceGetDevResource(50, &all, multiprocessors), 101);
        REQUIRE_CODE(cuDeviceGetDevResource(0, nullptr, multiprocessors), 1);
        ResourceDescription* description = nullptr;
        DevResource changed = part;
        changed.count = part.count + 1;
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, &changed, 1), 915);  // 580, H200
        DevResource twice[] = {part, part}, mixed[] = {part, of_device()}, with_none[] = {part, {}};
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, with_none, 2), 914);
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, twice, 2), 0);  // observed
        GreenContext* of_twice = nullptr;
        DevResource had = {};
        REQUIRE_CODE(cuGreenCtxCreate(&of_twice, description, 0, 1), 0);
        REQUIRE_CODE(cuGreenCtxGetDevResource(of_twice, &had, multiprocessors), 0);
        // As a driver 580 on an H200: counted twice, and the whole device beside a group.
        REQUIRE_THAT(had.count == std::min(2 * part.count, of_device().count));
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, mixed, 2), 0);
        DevResource of_another = {}, both[] = {part, {}};
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&of_another, &count, &all, nullptr, 0, 1), 0);
        both[1] = of_another;
        REQUIRE_CODE(cuDevResourceGenerateDesc(&description, both, 2), 915);  // not of one split
    });
}

TEST(SimShares, ADescriptionOfNothingEndsTheProcess) {  // as a driver 580 on an H200
    in_own_process_faults(
        [] {
            open_device();
            DevResource all = of_device();
            ResourceDescription* none = nullptr;
            cuDevResourceGenerateDesc(&none, &all, 0);
        },
        "cuDevResourceGenerateDesc of no resources: the real driver ends here");
}

TEST(SimGreenContexts, ShareThePrimaryContextAndHaveTheirStreams) {
    in_own_process([] {
        Context* const primary = open_device();
        GreenContext* const green = green_context();
        Context *context = nullptr, *current = nullptr;
        REQUIRE_CODE(cuCtxFromGreenCtx(&context, green), 0);
        DevResource own = {};
        REQUIRE_CODE(cuGreenCtxGetDevResource(green, &own, multiprocessors), 0);
        REQUIRE_THAT(own.count >= 8 && own.count <= of_device().count);
        DevResource same = {};
        REQUIRE_CODE(cuCtxGetDevResource(context, &same, multiprocessors), 0);
        REQUIRE_THAT(same.count == own.count);
        REQUIRE_CODE(cuCtxGetDevResource(primary, &same, multiprocessors), 0);
        REQUIRE_THAT(same.count == of_device().count);

        const Address memory = device_memory(4096);  // of the primary context
        Event* const event = new_event();
        Stream *stream = nullptr, *ordinary = new_stream();
        REQUIRE_CODE(cuGreenCtxStreamCreate(&stream, green, 0, 0), 1);  // documented: non-blocking
        REQUIRE_CODE(cuGreenCtxStreamCreate(&stream, green, 1, 0), 0);
        GreenContext* of_stream = nullptr;
        REQUIRE_CODE(cuStreamGetGreenCtx(stream, &of_stream), 0);
        REQUIRE_THAT(of_stream == green);
        Context* owner = nullptr;
        REQUIRE_CODE(cuStreamGetCtx_v2(stream, &owner, &of_stream), 0);
        REQUIRE_THAT(owner != nullptr && of_stream == green);  // observed
        REQUIRE_CODE(cuStreamGetCtx(stream, &owner), 0);
        REQUIRE_THAT(owner == context);  // observed
        REQUIRE_CODE(cuStreamGetCtx(ordinary, &owner), 0);
        REQUIRE_THAT(owner == primary);
        REQUIRE_CODE(cuStreamGetGreenCtx(ordinary, &of_stream), 0);
        REQUIRE_THAT(of_stream == nullptr);
        DevResource half = {};
        unsigned halves = 1;
        REQUIRE_CODE(cuDevSmResourceSplitByCount(&half, &halves, &own, nullptr, 0, 1), 0);  // a green context's
        REQUIRE_CODE(cuMemsetD32Async(memory, 3, 16, stream), 0);
        REQUIRE_CODE(launch_multiply(stream, memory, 16, 2), 0);
        REQUIRE_CODE(cuEventRecord(event, stream), 0);
        REQUIRE_CODE(cuEventSynchronize(event), 0);

        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_CODE(cuCtxGetCurrent(&current), 0);
        REQUIRE_THAT(current == context);
        // As a driver 580 on an H200: the NULL stream there is the green context's.
        REQUIRE_CODE(cuStreamGetCtx_v2(nullptr, &owner, &of_stream), 0);
        REQUIRE_THAT(owner == primary && of_stream == green);
        REQUIRE_CODE(cuStreamGetCtx(nullptr, &owner), 0);
        REQUIRE_THAT(owner == context);
        Stream* inside = nullptr;
        REQUIRE_CODE(cuStreamCreate(&inside, 1), 0);
        REQUIRE_CODE(cuStreamGetGreenCtx(inside, &of_stream), 0);
        REQUIRE_THAT(of_stream == green);
        int back = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&back, memory, sizeof back), 0);
        REQUIRE_THAT(back == 6);
        REQUIRE_CODE(cuCtxDestroy_v2(context), 201);
        REQUIRE_CODE(cuGreenCtxDestroy(green), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 709);
        REQUIRE_CODE(cuCtxSetCurrent(primary), 0);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);  // 580, H200: taken, and its calls answer 709
        REQUIRE_CODE(cuCtxSynchronize(), 709);
        Address unused = 0;
        REQUIRE_CODE(cuMemAlloc_v2(&unused, 64), 709);
        REQUIRE_CODE(cuCtxSetCurrent(primary), 0);
        REQUIRE_CODE(cuStreamQuery(inside), 709);  // observed, like the next two
        REQUIRE_CODE(cuStreamSynchronize(stream), 709);
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 709);
        REQUIRE_CODE(cuStreamQuery(ordinary), 0);
        REQUIRE_CODE(cuMemFree_v2(memory), 0);
    });
}

TEST(SimGreenContexts, EventsStandForAllTheirStreams) {
    in_own_process([] {
        open_device();
        GreenContext* const green = green_context();
        Event *const event = new_event(), *const after = new_event();
        Stream *first = nullptr, *second = nullptr;
        REQUIRE_CODE(cuGreenCtxStreamCreate(&first, green, 1, 0), 0);
        REQUIRE_CODE(cuGreenCtxStreamCreate(&second, green, 1, 0), 0);
        Gate gate;
        REQUIRE_CODE(launch_hold(first, gate), 0);
        REQUIRE_CODE(cuGreenCtxRecordEvent(green, event), 0);
        REQUIRE_CODE(cuEventQuery(event), 600);
        gate.released = 1;
        REQUIRE_CODE(cuEventSynchronize(event), 0);
        Gate outside;
        Stream* const ordinary = new_stream();
        REQUIRE_CODE(launch_hold(ordinary, outside), 0);
        REQUIRE_CODE(cuEventRecord(after, ordinary), 0);
        REQUIRE_CODE(cuGreenCtxWaitEvent(green, after), 0);
        REQUIRE_CODE(cuStreamQuery(first), 600);
        REQUIRE_CODE(cuStreamQuery(second), 600);
        outside.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(second), 0);
        REQUIRE_CODE(cuGreenCtxRecordEvent(green, nullptr), 400);
    });
}

TEST(SimGreenContexts, WrongOnesAreRefusedAndThePrimaryContextIsHeld) {
    in_own_process([] {
        open_device();
        DevResource all = of_device();
        ResourceDescription* const description = description_of(&all, 1);
        GreenContext* green = nullptr;
        REQUIRE_CODE(cuGreenCtxCreate(&green, description, 0, 0), 1);  // documented: the flag is required
        REQUIRE_CODE(cuGreenCtxCreate(&green, description, 50, 1), 101);
        REQUIRE_CODE(cuGreenCtxCreate(&green, nullptr, 0, 1), 1);
        REQUIRE_CODE(cuGreenCtxCreate(&green, description, 0, 1), 0);
        unsigned long long id = 0;
        REQUIRE_CODE(cuGreenCtxGetId(green, &id), 0);
        REQUIRE_THAT(id != 0);
        REQUIRE_CODE(cuDevicePrimaryCtxRelease_v2(0), 0);
        unsigned flags = 0;
        int active = 0;
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 1);  // the green context holds it
        REQUIRE_CODE(cuGreenCtxDestroy(green), 0);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 0);
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuGreenCtxDestroy(green), 709);
        REQUIRE_CODE(cuGreenCtxDestroy(nullptr), 201);
        REQUIRE_CODE(cuCtxFromGreenCtx(nullptr, green), 709);
    });
}

TEST(SimContextEvents, LaterWorkOfAContextWaits) {
    in_own_process([] {
        Context* const context = open_device();
        Stream *const before = new_stream(), *const holding = new_stream();
        Context* other = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&other, 0, 0), 0);
        Stream* const of_other = new_stream();
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        Gate gate;
        Event* const event = new_event();
        REQUIRE_CODE(launch_hold(holding, gate), 0);
        REQUIRE_CODE(cuEventRecord(event, holding), 0);
        REQUIRE_CODE(cuCtxWaitEvent(context, event), 0);
        Stream* const after = new_stream();  // made later, and waits too
        const Address memory = device_memory(64);
        REQUIRE_CODE(launch_multiply(before, memory, 4, 1), 0);
        REQUIRE_CODE(launch_multiply(after, memory, 4, 1), 0);
        REQUIRE_CODE(cuStreamQuery(before), 600);
        REQUIRE_CODE(cuStreamQuery(after), 600);
        REQUIRE_CODE(cuStreamQuery(of_other), 0);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(after), 0);
        REQUIRE_CODE(cuStreamSynchronize(before), 0);
        REQUIRE_CODE(cuCtxWaitEvent(context, nullptr), 400);
        REQUIRE_CODE(cuCtxWaitEvent(nullptr, event), 201);  // 580: not the current one
        REQUIRE_CODE(cuCtxWaitEvent(reinterpret_cast<Context*>(&gate), event), 201);
    });
}

TEST(SimContextEvents, AGreenContextsContextMeansItsStreams) {
    in_own_process([] {
        Context* const primary = open_device();
        GreenContext* const green = green_context();
        Context* context = nullptr;
        REQUIRE_CODE(cuCtxFromGreenCtx(&context, green), 0);
        Stream *own = nullptr, *const outside = new_stream();
        REQUIRE_CODE(cuGreenCtxStreamCreate(&own, green, 1, 0), 0);
        Gate gate;
        Event *const event = new_event(), *const of_green = new_event(), *const of_all = new_event();
        REQUIRE_CODE(launch_hold(outside, gate), 0);
        REQUIRE_CODE(cuEventRecord(event, outside), 0);
        REQUIRE_CODE(cuCtxRecordEvent(context, of_green), 0);
        REQUIRE_CODE(cuEventSynchronize(of_green), 0);  // nothing of the green context runs
        REQUIRE_CODE(cuCtxRecordEvent(primary, of_all), 0);
        REQUIRE_CODE(cuEventQuery(of_all), 600);
        REQUIRE_CODE(cuCtxWaitEvent(context, event), 0);
        REQUIRE_CODE(cuStreamQuery(own), 600);
        REQUIRE_CODE(cuStreamQuery(new_stream()), 0);  // of the primary context
        Stream* later = nullptr;
        REQUIRE_CODE(cuGreenCtxStreamCreate(&later, green, 1, 0), 0);
        REQUIRE_CODE(cuStreamQuery(later), 600);
        gate.released = 1;
        REQUIRE_CODE(cuStreamSynchronize(later), 0);
        REQUIRE_CODE(cuGreenCtxDestroy(green), 0);
        REQUIRE_CODE(cuCtxWaitEvent(context, event), 709);
    });
}

TEST(SimContextEvents, CapturesOfTheEventAndOfTheContextAreLost) {
    in_own_process([] {
        Context* const context = open_device();
        Stream* const stream = new_stream();
        Event* const event = new_event();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 2), 0);
        REQUIRE_CODE(cuCtxWaitEvent(context, event), 900);  // a stream of the context
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 901);
        Context* other = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&other, 0, 0), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 2), 0);
        REQUIRE_CODE(cuCtxSetCurrent(context), 0);
        REQUIRE_CODE(cuEventRecord(event, stream), 0);
        REQUIRE_CODE(cuCtxWaitEvent(other, event), 900);  // the event
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 901);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
