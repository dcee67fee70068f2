// SPDX-License-Identifier: Apache-2.0
// Pools of another process, and the devices that a process sees.
#include "sim_two_processes.hpp"
#include "sim_virtual_scene.hpp"

#include <string>

namespace isthmus::sim::test {
namespace {

constexpr int descriptor = 1;

PoolProperties shared_pool(Location where = {1, 0}) {
    PoolProperties properties = {};
    properties.allocation_type = 1;
    properties.handle_types = descriptor;
    properties.location = where;
    return properties;
}

bool shares_pools() {
    return pools() && (fact(119) & descriptor) != 0;
}

void* as_handle(int file) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
}

TEST(SimPoolSharing, MemoryOfAPoolIsSeenInAnotherProcess) {
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                if (!shares_pools()) return;
                Stream* const stream = new_stream();
                Pool* pool = nullptr;
                const PoolProperties properties = shared_pool();
                REQUIRE_CODE(cuMemPoolCreate(&pool, &properties), 0);
                const Address memory = pool_memory(4096, stream, pool);
                fill(memory, 5);
                int file = -1;
                ShareableBytes bytes = {};
                REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, pool, descriptor, 0), 0);
                REQUIRE_CODE(cuMemPoolExportPointer(&bytes, memory), 0);
                line.send_file(file);
                line.send(bytes);
                line.listen();
                REQUIRE_THAT(first_int(memory) == 10);
                REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
            },
            [](const Line& line) {
                open_device();
                if (!shares_pools()) return;
                Stream* const stream = new_stream();
                const int file = line.receive_file();
                ShareableBytes bytes = line.receive<ShareableBytes>();
                Pool *pool = nullptr, *own = nullptr;
                REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&pool, as_handle(file), descriptor, 1), 1);
                REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&pool, as_handle(file), descriptor, 0), 0);
                Address memory = 0;
                const PoolProperties properties = shared_pool();
                REQUIRE_CODE(cuMemPoolCreate(&own, &properties), 0);
                REQUIRE_CODE(cuMemPoolImportPointer(&memory, own, &bytes), 1);  // not the pool's
                REQUIRE_CODE(cuMemPoolImportPointer(&memory, pool, &bytes), 0);
                REQUIRE_THAT(first_int(memory) == 5);
                REQUIRE_CODE(launch_multiply(stream, memory, 16, 2), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                // Documented: an imported pool allocates nothing, is no device's current pool, and is not exported
                // again.
                Address more = 0;
                int again = -1;
                REQUIRE_CODE(cuMemAllocFromPoolAsync(&more, 4096, pool, stream), 1);
                REQUIRE_CODE(cuDeviceSetMemPool(0, pool), 1);
                REQUIRE_CODE(cuMemPoolExportToShareableHandle(&again, pool, descriptor, 0), 1);
                REQUIRE_CODE(cuMemPoolExportPointer(&bytes, memory), 1);
                REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
                REQUIRE_CODE(cuMemPoolDestroy(own), 0);
                REQUIRE_THAT(isthmus_sim_live("pool") == 0 && isthmus_sim_live("pools") == 0);
                line.tell();
            });
    });
}

TEST(SimPoolSharing, MemoryAtANodeIsSeenInAnotherProcess) {
    in_own_process([] {
        beside_another_process(
            [](const Line& line) {
                open_device();
                Pool* pool = nullptr;
                const PoolProperties properties = shared_pool({3, 0});
                if (!shares_pools() || cuMemPoolCreate(&pool, &properties) != 0) return;
                Stream* const stream = new_stream();
                const Address memory = pool_memory(4096, stream, pool);
                auto* const word = reinterpret_cast<volatile int*>(memory);
                *word = 5;  // the CPU has it, before it is exported and after
                int file = -1;
                ShareableBytes bytes = {};
                REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, pool, descriptor, 0), 0);
                REQUIRE_CODE(cuMemPoolExportPointer(&bytes, memory), 0);
                REQUIRE_CODE(cuMemPoolExportPointer(&bytes, memory), 0);
                line.send_file(file);
                line.send(bytes);
                line.listen();
                REQUIRE_THAT(*word == 6);
                REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
                REQUIRE_THAT(isthmus_sim_live("pool") == 0);
            },
            [](const Line& line) {
                open_device();
                Pool *pool = nullptr, *own = nullptr;
                const PoolProperties properties = shared_pool({3, 0});
                if (!shares_pools() || cuMemPoolCreate(&own, &properties) != 0) return;
                Stream* const stream = new_stream();
                const int file = line.receive_file();
                ShareableBytes bytes = line.receive<ShareableBytes>();
                REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&pool, as_handle(file), descriptor, 0), 0);
                Address memory = 0;
                REQUIRE_CODE(cuMemPoolImportPointer(&memory, own, &bytes), 1);  // not the pool's
                REQUIRE_CODE(cuMemPoolImportPointer(&memory, pool, &bytes), 0);
                REQUIRE_THAT(*reinterpret_cast<volatile int*>(memory) == 5);
                REQUIRE_CODE(cuMemsetD8_v2(memory, 0, 16), 1);  // no access for the device; copies reach it
                const int six = 6;
                REQUIRE_CODE(cuMemcpyHtoD_v2(memory, &six, sizeof six), 0);
                REQUIRE_CODE(cuMemFreeAsync(memory, stream), 0);
                REQUIRE_CODE(cuStreamSynchronize(stream), 0);
                REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
                line.tell();
            });
    });
}

TEST(SimPoolSharing, WhatCannotBeSharedIsRefused) {
    in_own_process([] {
        open_device();
        if (!shares_pools()) return;
        Stream* const stream = new_stream();
        Pool *plain = nullptr, *standard = nullptr, *imported = nullptr;
        PoolProperties properties = shared_pool();
        properties.handle_types = 0;
        REQUIRE_CODE(cuMemPoolCreate(&plain, &properties), 0);
        REQUIRE_CODE(cuDeviceGetDefaultMemPool(&standard, 0), 0);
        int file = -1;
        ShareableBytes bytes = {};
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, plain, descriptor, 0), 1);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, standard, descriptor, 0), 1);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(nullptr, plain, descriptor, 0), 1);
        REQUIRE_CODE(cuMemPoolExportPointer(&bytes, pool_memory(4096, stream, plain)), 1);
        REQUIRE_CODE(cuMemPoolExportPointer(&bytes, device_memory(4096)), 1);
        REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&imported, as_handle(0), descriptor, 0), 1);
        REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&imported, as_handle(-1), descriptor, 0), 1);
        Pool* shared = nullptr;
        properties.handle_types = descriptor;
        REQUIRE_CODE(cuMemPoolCreate(&shared, &properties), 0);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, shared, 8, 0), 1);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, shared, descriptor, 1), 1);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, shared, descriptor, 0), 0);
        REQUIRE_CODE(cuMemPoolImportFromShareableHandle(&imported, as_handle(file), descriptor, 0), 0);
        Address address = 0;
        bytes.bytes[0] = 'x';
        REQUIRE_CODE(cuMemPoolImportPointer(&address, imported, &bytes), 1);
    });
}

TEST(SimPoolSharing, PoolsAtNumaNodesHaveDescriptorsAndThoseAtTheHostNone) {
    in_own_process([] {
        open_device();
        Pool* pool = nullptr;
        PoolProperties properties = shared_pool({3, 0});
        properties.handle_types = 0;
        if (!shares_pools() || cuMemPoolCreate(&pool, &properties) != 0) return;
        REQUIRE_CODE(cuMemPoolDestroy(pool), 0);
        properties.handle_types = descriptor;
        int file = -1;
        REQUIRE_CODE(cuMemPoolCreate(&pool, &properties), 0);
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, pool, descriptor, 0), 0);
        properties.location = {2, 0};
        properties.handle_types = 0;
        if (cuMemPoolCreate(&pool, &properties) != 0) return;
        REQUIRE_CODE(cuMemPoolExportToShareableHandle(&file, pool, descriptor, 0), 1);
    });
}

// How many devices there are, or the code of cuInit as a negative number.
int devices_with(const char* visible, const char* order = nullptr) {
    if (visible) ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    if (order) ::setenv("CUDA_DEVICE_ORDER", order, 1);
    if (const Result code = cuInit(0)) return -code;
    int count = 0;
    REQUIRE_CODE(cuDeviceGetCount(&count), 0);
    return count;
}

std::string bus_of(int device) {
    char text[32] = {};
    REQUIRE_CODE(cuDeviceGetPCIBusId(text, sizeof text, device), 0);
    return text;
}

bool two_devices() {
    const char* const machine = std::getenv("ISTHMUS_SIM");
    return machine && std::string(machine) == "h200-x2";
}

TEST(SimVisibleDevices, AnEmptyOrWrongListNamesNone) {
    for (const char* const visible : {"", "-1", "9", "x", "GPU-", ",0", "NoDevFiles"}) {
        in_own_process([&] { REQUIRE_THAT(devices_with(visible) == -100); });
    }
    in_own_process([] { REQUIRE_THAT(devices_with("0") == 1); });
}

TEST(SimVisibleDevices, TheListChoosesAndOrders) {
    if (!two_devices()) GTEST_SKIP() << "one device";
    const struct {
        const char* visible;
        int count;
    } rows[] = {{nullptr, 2},  {"0,1", 2}, {"1", 1},   {" 1 , 0 ", 2}, {"1,x,0", 1},
                {"1,1", -101}, {"0,7", 1}, {"0x1", 1}, {"+0,01", 2}};
    for (const auto& row : rows) {
        in_own_process([&] { REQUIRE_THAT(devices_with(row.visible) == row.count); });
    }
    for (const char* const order : {"", "nonsense"}) {
        in_own_process([&] { REQUIRE_THAT(devices_with(nullptr, order) == -101); });
    }
    in_own_process([] {
        REQUIRE_THAT(devices_with("1,0") == 2);
        const std::string first = bus_of(0), second = bus_of(1);
        REQUIRE_THAT(first > second);  // the record numbers by bus
        int can = 0;
        REQUIRE_CODE(cuDeviceCanAccessPeer(&can, 0, 1), 0);
        REQUIRE_THAT(can == 1);
        open_device(1);
        REQUIRE_THAT(device_memory(64) != 0);
    });
    in_own_process([] {
        REQUIRE_THAT(devices_with(nullptr, "PCI_BUS_ID") == 2);
        REQUIRE_THAT(bus_of(0) < bus_of(1));
    });
}

TEST(SimVisibleDevices, AUuidOrItsBeginningNamesADevice) {
    std::string uuid = "GPU-";
    struct {
        int devices = 0;
        Uuid uuid = {};  // of the first one
    } known;
    int answer[2] = {-1, -1};
    REQUIRE_THAT(::pipe(answer) == 0);
    in_own_process([&] {
        open_device();
        REQUIRE_CODE(cuDeviceGetCount(&known.devices), 0);
        REQUIRE_CODE(cuDeviceGetUuid(&known.uuid, 0), 0);
        REQUIRE_THAT(::write(answer[1], &known, sizeof known) == sizeof known);
    });
    REQUIRE_THAT(::read(answer[0], &known, sizeof known) == sizeof known);
    for (int i = 0; i < 16; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02X", known.uuid.bytes[i]);
        if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
        uuid += digits;
    }
    in_own_process([&] { REQUIRE_THAT(devices_with(uuid.c_str()) == 1); });
    const std::string other = uuid.substr(0, uuid.size() - 1) + (uuid.back() == '0' ? '5' : '0');
    in_own_process([&] { REQUIRE_THAT(devices_with(other.c_str()) != 2); });
    if (known.devices > 1) return;  // whose beginnings may be the same
    in_own_process([&] { REQUIRE_THAT(devices_with(uuid.substr(0, 8).c_str()) == 1); });
}

}  // namespace
}  // namespace isthmus::sim::test
