// SPDX-License-Identifier: Apache-2.0
// The driver's attributes of addresses: each kind of memory, unknown memory, and which attributes can be set.
#include "sim_test.hpp"

#include <vector>

namespace isthmus::sim::test {
namespace {

constexpr int context = 1, type = 2, device_pointer = 3, host_pointer = 4, sync_memops = 6, buffer_id = 7, managed = 8,
              ordinal = 9, range_start = 11, range_bytes = 12, mapped = 13, access = 16, pool_handle = 17;

template <class T>
T ask(int id, Address address) {
    T value = {};
    REQUIRE_CODE(cuPointerGetAttribute(&value, id, address), 0);
    return value;
}

TEST(SimPointer, EachKindOfMemoryIsToldFromTheOthers) {  // keeps A10's ground
    in_own_process([] {
        Context* owner = open_device();
        Address shared = 0;
        void* pinned = nullptr;
        const Address plain = device_memory(8192);
        REQUIRE_CODE(cuMemAllocManaged(&shared, 8192, 1), 0);
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 8192, 0), 0);
        const Address host = reinterpret_cast<Address>(pinned);
        for (const Address address : {plain, shared, host}) {
            REQUIRE_THAT(ask<Context*>(context, address + 5) == owner && ask<int>(ordinal, address + 5) == 0);
            REQUIRE_THAT(ask<Address>(range_start, address + 5) == address);
            REQUIRE_THAT(ask<std::size_t>(range_bytes, address + 5) == 8192);
            REQUIRE_THAT(ask<Address>(device_pointer, address + 5) == address + 5);
            REQUIRE_THAT(ask<unsigned char>(mapped, address) == 1 && ask<Pool*>(pool_handle, address) == nullptr);
            REQUIRE_THAT(ask<unsigned>(access, address) == 3);
        }
        REQUIRE_THAT(ask<unsigned>(type, plain) == 2 && ask<unsigned>(type, shared) == 2);
        REQUIRE_THAT(ask<unsigned>(type, host) == 1 && ask<void*>(host_pointer, host) == pinned);
        REQUIRE_THAT(ask<unsigned char>(managed, shared) == 1 && ask<unsigned char>(managed, plain) == 0);
        REQUIRE_THAT(ask<void*>(host_pointer, shared) == reinterpret_cast<void*>(shared));
        void* none = nullptr;
        REQUIRE_CODE(cuPointerGetAttribute(&none, host_pointer, plain), 1);
        REQUIRE_CODE(cuPointerGetAttribute(&none, 5, plain), 801);
        REQUIRE_CODE(cuPointerGetAttribute(&none, 22, plain), 1);
        REQUIRE_CODE(cuPointerGetAttribute(nullptr, type, plain), 1);
    });
}

TEST(SimPointer, PoolMemoryNamesItsPoolAndAGraphsMemoryNone) {  // keeps A10's ground
    in_own_process([] {
        open_device();
        if (!pools()) return;
        Pool* standard = nullptr;
        REQUIRE_CODE(cuDeviceGetDefaultMemPool(&standard, 0), 0);
        Stream* stream = new_stream();
        const Address pooled = pool_memory(4096, stream);
        REQUIRE_THAT(ask<Pool*>(pool_handle, pooled) == standard && ask<unsigned>(type, pooled) == 2);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(stream, 0), 0);
        const Address captured = pool_memory(4096, stream);
        REQUIRE_THAT(ask<Pool*>(pool_handle, captured) == nullptr && ask<int>(ordinal, captured) == 0);
        REQUIRE_CODE(cuStreamEndCapture(stream, &graph), 0);
    });
}

TEST(SimPointer, IdsAreNeverGivenTwiceThoughAddressesAre) {
    in_own_process([] {
        open_device();
        const Address first = device_memory(4096);
        const auto id = ask<unsigned long long>(buffer_id, first);
        REQUIRE_CODE(cuMemFree_v2(first), 0);
        const Address second = device_memory(4096);
        REQUIRE_THAT(ask<unsigned long long>(buffer_id, second) != id);
    });
}

TEST(SimPointer, UnknownAddressesFailTheSingleQuestionAndAreEmptyInThePluralOne) {  // keeps A9's ground
    in_own_process([] {
        open_device();
        const Address freed = device_memory(4096);
        REQUIRE_CODE(cuMemFree_v2(freed), 0);
        int on_stack = 0;
        for (const Address unknown : {reinterpret_cast<Address>(&on_stack), freed, Address{0}}) {
            Context* owner = reinterpret_cast<Context*>(8);
            unsigned kind = 9;
            Pool* pool = reinterpret_cast<Pool*>(8);
            std::size_t bytes = 9;
            REQUIRE_CODE(cuPointerGetAttribute(&kind, type, unknown), 1);
            int ids[] = {context, type, pool_handle, range_bytes};
            void* data[] = {&owner, &kind, &pool, &bytes};
            REQUIRE_CODE(cuPointerGetAttributes(4, ids, data, unknown), 0);
            REQUIRE_THAT(!owner && kind == 0 && !pool && bytes == 0);
            ids[0] = 99;
            REQUIRE_CODE(cuPointerGetAttributes(4, ids, data, unknown), 1);
            REQUIRE_CODE(cuPointerGetAttributes(0, ids, data, unknown), 1);
        }
    });
}

TEST(SimPointer, AccessIsThatOfTheCurrentDevice) {  // keeps A4's ground
    in_own_process([] {
        int can = 0;
        REQUIRE_CODE(cuInit(0), 0);
        if (cuDeviceCanAccessPeer(&can, 0, 1) != 0 || !can) return;
        Context* theirs = open_device(1);
        const Address far = device_memory(4096);
        open_device(0);
        REQUIRE_THAT(ask<unsigned>(access, far) == 0);
        REQUIRE_CODE(cuCtxEnablePeerAccess(theirs, 0), 0);
        REQUIRE_THAT(ask<unsigned>(access, far) == 3);
    });
}

TEST(SimPointer, AnAllocationsRangeIsFoundFromInsideIt) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(5000);
        Address base = 0;
        std::size_t bytes = 0;
        REQUIRE_CODE(cuMemGetAddressRange_v2(&base, &bytes, memory + 4999), 0);
        REQUIRE_THAT(base == memory && bytes == 5000);
        REQUIRE_CODE(cuMemGetAddressRange_v2(nullptr, nullptr, memory), 0);
        REQUIRE_CODE(cuMemGetAddressRange_v2(&base, &bytes, memory + 5000), 500);
    });
}

TEST(SimPointer, SynchronousOperationsCanBeAskedOfDeviceMemory) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(4096);
        unsigned on = 1, neither = 2;
        REQUIRE_THAT(ask<unsigned char>(sync_memops, memory) == 0);
        REQUIRE_CODE(cuPointerSetAttribute(&on, sync_memops, memory), 0);
        REQUIRE_THAT(ask<unsigned char>(sync_memops, memory) == 1);
        REQUIRE_CODE(cuPointerSetAttribute(&neither, sync_memops, memory), 1);
        REQUIRE_CODE(cuPointerSetAttribute(&on, type, memory), 1);
        REQUIRE_CODE(cuPointerSetAttribute(&on, sync_memops, reinterpret_cast<Address>(&on)), 1);
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, 64, 0), 0);
        REQUIRE_CODE(cuPointerSetAttribute(&on, sync_memops, reinterpret_cast<Address>(pinned)), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
