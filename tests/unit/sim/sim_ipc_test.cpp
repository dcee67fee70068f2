// SPDX-License-Identifier: Apache-2.0
// Memory and events that processes share by legacy IPC handles of 64 bytes.
#include "sim_two_processes.hpp"
#include "sim_virtual_scene.hpp"

#include <thread>

namespace isthmus::sim::test {
namespace {

constexpr unsigned no_timing = 2, interprocess = 4;
constexpr unsigned lazy_peer_access = 1;
constexpr std::size_t page = 4096;

bool legacy_memory() {
    unsigned char capable = 0;
    const Address probe = device_memory(page);
    REQUIRE_CODE(cuPointerGetAttribute(&capable, 10, probe), 0);
    REQUIRE_CODE(cuMemFree_v2(probe), 0);
    return capable != 0;
}

bool shared_events() {
    return fact(attribute::ipc_events) != 0;
}

TEST(SimIpc, AllocatedMemoryIsSeenInAnotherProcessAsItIs) {  // keeps I1's ground
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!legacy_memory()) return;
                const Address address = device_memory(3 * page);
                fill(address, 5);
                fill(address + 2 * page, 7);
                ShareableBytes bytes = {}, again = {};
                REQUIRE_CODE(cuIpcGetMemHandle(&bytes, address), 0);
                REQUIRE_CODE(cuIpcGetMemHandle(&again, address), 0);
                REQUIRE_THAT(std::memcmp(&bytes, &again, sizeof(bytes)) == 0);
                REQUIRE_THAT(first_int(address) == 5 && first_int(address + 2 * page) == 7);
                line.send(bytes);
                line.listen();
                REQUIRE_THAT(first_int(address) == 12);
                REQUIRE_CODE(cuMemFree_v2(address), 0);
                line.tell();
                line.listen();
            },
            [](const Line& line) {
                open_device();
                if (!legacy_memory()) return;
                const ShareableBytes bytes = line.receive<ShareableBytes>();
                Address address = 0, again = 0;
                REQUIRE_CODE(cuIpcOpenMemHandle_v2(&address, bytes, 0), 1);
                REQUIRE_CODE(cuIpcOpenMemHandle_v2(&address, bytes, lazy_peer_access), 0);
                REQUIRE_CODE(cuIpcOpenMemHandle_v2(&again, bytes, lazy_peer_access), 0);
                REQUIRE_THAT(again == address);  // documented, and counted
                REQUIRE_THAT(first_int(address) == 5 && first_int(address + 2 * page) == 7);
                fill(address, 6);
                REQUIRE_CODE(launch_multiply(nullptr, address, 16, 2), 0);
                REQUIRE_CODE(cuCtxSynchronize(), 0);
                line.tell();
                line.listen();
                Address late = 0;
                Context* another = nullptr;
                REQUIRE_CODE(cuMemFree_v2(address), 1);
                REQUIRE_CODE(cuIpcCloseMemHandle(address + 64), 1);
                REQUIRE_CODE(cuIpcCloseMemHandle(address), 0);
                REQUIRE_THAT(first_int(address) == 12);
                REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
                REQUIRE_CODE(cuIpcOpenMemHandle_v2(&late, bytes, lazy_peer_access), 800);  // freed by the exporter
                open_device();
                REQUIRE_CODE(cuIpcCloseMemHandle(address), 0);
                REQUIRE_CODE(cuIpcCloseMemHandle(address), 1);
                REQUIRE_THAT(isthmus_sim_live("allocations") == 0);
                line.tell();
            });
    });
}

TEST(SimIpc, OnlyPlainDeviceMemoryHasAHandle) {
    in_own_process([] {
        open_device();
        ShareableBytes bytes = {};
        Address managed = 0;
        void* pinned = nullptr;
        const Result refused = legacy_memory() ? 1 : 801;
        const Address plain = device_memory(page);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, page, 0), 0);
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, plain), legacy_memory() ? 0 : 801);
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, plain + 64), legacy_memory() ? 0 : 801);
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, reinterpret_cast<Address>(pinned)), refused);
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, mapped(granule)), refused);
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, 0), refused);
        REQUIRE_CODE(cuIpcGetMemHandle(nullptr, plain), 1);
        if (fact(attribute::managed) != 0) {
            REQUIRE_CODE(cuMemAllocManaged(&managed, page, 1), 0);
            REQUIRE_CODE(cuIpcGetMemHandle(&bytes, managed), refused);  // observed
        }
        if (pools()) REQUIRE_CODE(cuIpcGetMemHandle(&bytes, pool_memory(page, nullptr)), refused);
        if (!legacy_memory()) return;
        Address address = 0;
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, plain), 0);
        REQUIRE_CODE(cuIpcOpenMemHandle_v2(&address, bytes, lazy_peer_access), 201);  // in the same process
        bytes = {};
        REQUIRE_CODE(cuIpcOpenMemHandle_v2(&address, bytes, lazy_peer_access), 1);
    });
}

TEST(SimIpc, AHandleIsTakenWithoutLosingWhatRuns) {
    in_own_process([] {
        open_device();
        if (!legacy_memory()) return;
        const Address address = device_memory(page);
        fill(address, 5);
        Stream* const stream = new_stream();
        Gate gate;
        REQUIRE_CODE(launch_hold(stream, gate), 0);
        REQUIRE_CODE(launch_multiply(stream, address, 16, 3), 0);
        wait_until(gate.begun);
        std::thread other([&] { gate.released.store(1); });
        ShareableBytes bytes = {};
        REQUIRE_CODE(cuIpcGetMemHandle(&bytes, address), 0);
        REQUIRE_CODE(launch_multiply(stream, address, 16, 2), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(first_int(address) == 30);
        other.join();
    });
}

TEST(SimIpc, TheCpuFaultsOnMemoryThatHasAHandleToo) {  // keeps A6
    in_own_process_faults(
        [] {
            open_device();
            const Address address = device_memory(page);
            ShareableBytes bytes = {};
            REQUIRE_THAT(cuIpcGetMemHandle(&bytes, address) == (legacy_memory() ? 0 : 801));
            *reinterpret_cast<volatile int*>(address) = 1;
        },
        "memory of device 0");
}

struct EventAndStream {
    Event* event = nullptr;
    Stream* stream = nullptr;
};

EventAndStream opened(const Line& line) {
    EventAndStream made = {nullptr, new_stream()};
    REQUIRE_CODE(cuIpcOpenEventHandle(&made.event, line.receive<ShareableBytes>()), 0);
    return made;
}

EventAndStream exported(const Line& line) {
    const EventAndStream made = {new_event(no_timing | interprocess), new_stream()};
    ShareableBytes bytes = {};
    REQUIRE_CODE(cuIpcGetEventHandle(&bytes, made.event), 0);
    line.send(bytes);
    return made;
}

TEST(SimIpc, AnEventHoldsUpTheStreamsOfAnotherProcess) {  // keeps I2's ground
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = exported(line);
                line.listen();  // opened, never recorded
                Gate gate;
                REQUIRE_CODE(launch_hold(stream, gate), 0);
                REQUIRE_CODE(cuEventRecord(event, stream), 0);
                REQUIRE_CODE(cuEventQuery(event), 600);
                line.tell();
                line.listen();
                gate.released.store(1);
                line.listen();
                REQUIRE_CODE(cuEventSynchronize(event), 0);
                line.tell();
                line.listen();  // the other process recorded it
                REQUIRE_CODE(cuEventQuery(event), 600);
                REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 0);
                line.tell();
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuEventQuery(event), 0);
                REQUIRE_CODE(cuEventDestroy_v2(event), 0);
            },
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = opened(line);
                REQUIRE_CODE(cuEventQuery(event), 0);
                REQUIRE_CODE(cuEventSynchronize(event), 0);
                line.tell();
                line.listen();
                REQUIRE_CODE(cuEventQuery(event), 600);
                REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 0);
                REQUIRE_CODE(cuStreamQuery(stream), 600);
                line.tell();
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuEventQuery(event), 0);
                line.tell();
                line.listen();
                Gate gate;
                REQUIRE_CODE(launch_hold(stream, gate), 0);
                REQUIRE_CODE(cuEventRecord(event, stream), 0);
                line.tell();
                line.listen();
                gate.released.store(1);
                REQUIRE_CODE(cuEventSynchronize(event), 0);
                GraphObject* graph = nullptr;  // records are refused, and waits end the capture
                REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 1), 0);
                REQUIRE_CODE(cuEventRecord(event, stream), 900);
                REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
                REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 1), 0);
                REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 900);
                REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 901);
                REQUIRE_CODE(cuEventDestroy_v2(event), 0);
                REQUIRE_THAT(isthmus_sim_live("events") == 0);
            });
    });
}

TEST(SimIpc, SeededProcessesWaitForEachOtherToo) {
    in_own_process([] {
        ::setenv("ISTHMUS_SIM_MODE", "seeded", 1);
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = exported(line);
                const Address address = device_memory(page);
                REQUIRE_CODE(launch_multiply(stream, address, 16, 3), 0);
                REQUIRE_CODE(cuEventRecord(event, stream), 0);
                line.tell();
                REQUIRE_CODE(cuEventSynchronize(event), 0);
                line.listen();
            },
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = opened(line);
                line.listen();
                REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuEventSynchronize(event), 0);
                line.tell();
            });
    });
}

TEST(SimIpc, WhoWaitsForAProcessThatHasEndedWaitsForGood) {  // keeps I6's ground: observed
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = exported(line);
                line.listen();
                static Gate gate;
                REQUIRE_CODE(launch_hold(stream, gate), 0);
                REQUIRE_CODE(cuEventRecord(event, stream), 0);
            },
            [](const Line& line) {
                open_device();
                if (!shared_events()) return;
                const auto [event, stream] = opened(line);
                load_kernels();
                line.tell();
                line.wait_for_end();
                REQUIRE_CODE(cuEventQuery(event), 600);
                REQUIRE_CODE(cuStreamWaitEvent(stream, event, 0), 0);
                REQUIRE_CODE(cuStreamQuery(stream), 600);
                Stream* const other = new_stream();
                REQUIRE_CODE(launch_multiply(other, device_memory(page), 16, 3), 0);
                REQUIRE_CODE(cuStreamSynchronize(other), 0);  // no other stream waits
            });
    });
}

TEST(SimIpc, OnlyInterprocessEventsHaveAHandle) {
    in_own_process([] {
        open_device();
        ShareableBytes bytes = {};
        Event* event = nullptr;
        const bool supported = shared_events();
        REQUIRE_CODE(cuIpcGetEventHandle(&bytes, new_event(no_timing)), supported ? 400 : 801);
        REQUIRE_CODE(cuIpcOpenEventHandle(&event, bytes), supported ? 205 : 801);
        if (!supported) return;
        Event* const shared = new_event(no_timing | interprocess);
        REQUIRE_CODE(cuIpcGetEventHandle(nullptr, shared), 1);
        REQUIRE_CODE(cuIpcGetEventHandle(&bytes, shared), 0);
        REQUIRE_CODE(cuIpcOpenEventHandle(nullptr, bytes), 1);
        REQUIRE_CODE(cuIpcOpenEventHandle(&event, bytes), 201);  // in the same process
        REQUIRE_CODE(cuCtxRecordEvent(nullptr, shared), 801);    // not modelled
    });
}

}  // namespace
}  // namespace isthmus::sim::test
