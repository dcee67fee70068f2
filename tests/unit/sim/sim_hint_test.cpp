// SPDX-License-Identifier: Apache-2.0
// Prefetches and advice: what machines answer, and what the driver remembers per range.
#include "sim_test.hpp"

#include <vector>

namespace isthmus::sim::test {
namespace {

constexpr int on_device = 1, on_host = 2, on_node = 3;
constexpr int read_mostly = 1, preferred = 2, accessed_by = 3, last_prefetch = 4, preferred_type = 5, last_type = 7;
constexpr std::size_t bytes = 65536;

Address managed_memory() {
    Address address = 0;
    REQUIRE_CODE(cuMemAllocManaged(&address, bytes, 1), 0);
    return address;
}

int range_value(int id, Address address, std::size_t count) {
    int value = 77;
    REQUIRE_CODE(cuMemRangeGetAttribute(&value, sizeof(value), id, address, count), 0);
    return value;
}

TEST(SimHint, EveryFormAnswersAsTheMachineDoes) {  // keeps K21's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        const Address memory = managed_memory();
        const Result code = concurrent_managed() ? 0 : 101;
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes, 0, stream), code);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes, -1, stream), code);
        REQUIRE_CODE(cuMemPrefetchAsync_v2(memory, bytes, {on_device, 0}, 0, stream), code);
        REQUIRE_CODE(cuMemPrefetchAsync_v2(memory, bytes, {on_host, 0}, 0, stream), code);
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 1, 0), code);
        REQUIRE_CODE(cuMemAdvise_v2(memory, bytes, 3, {on_host, 0}), code);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes, 60, stream), 101);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes, -2, stream), 101);
        REQUIRE_CODE(cuMemPrefetchAsync_v2(memory, bytes, {on_node, 99}, 0, stream), 101);
        REQUIRE_CODE(cuMemPrefetchAsync_v2(memory, bytes, {9, 0}, 0, stream), 1);
        REQUIRE_CODE(cuMemPrefetchAsync_v2(memory, bytes, {on_device, 0}, 1, stream), 1);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, 0, 0, stream), 1);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes + 1, 0, stream), 1);
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 7, 0), 1);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
    });
}

TEST(SimHint, PlainMemoryTakesThemWhereTheDeviceReachesIt) {  // keeps K21's ground
    in_own_process([] {
        open_device();
        Stream* stream = new_stream();
        std::vector<char> plain(bytes);
        const Address address = reinterpret_cast<Address>(plain.data());
        REQUIRE_CODE(cuMemPrefetchAsync(address, bytes, 0, stream), pageable() ? 0 : 1);
        REQUIRE_CODE(cuMemAdvise(address, bytes, 1, 0), pageable() ? 0 : 1);
        REQUIRE_CODE(cuMemPrefetchAsync(0, bytes, 0, stream), 1);
        int value = 0;
        REQUIRE_CODE(cuMemRangeGetAttribute(&value, 4, read_mostly, address, bytes), 1);  // managed memory only
    });
}

TEST(SimHint, ARangeHasAHintWhereAllOfItHasIt) {
    in_own_process([] {
        open_device();
        if (!concurrent_managed()) return;
        Stream* stream = new_stream();
        const Address memory = managed_memory();
        REQUIRE_THAT(range_value(read_mostly, memory, bytes) == 0 && range_value(preferred, memory, bytes) == -2);
        REQUIRE_THAT(range_value(last_prefetch, memory, bytes) == -2 && range_value(last_type, memory, bytes) == 0);
        REQUIRE_CODE(cuMemAdvise(memory, 8192, 1, 0), 0);
        REQUIRE_THAT(range_value(read_mostly, memory, 8192) == 1 && range_value(read_mostly, memory, 8193) == 0);
        REQUIRE_CODE(cuMemAdvise(memory + 8192, bytes - 8192, 1, 0), 0);
        REQUIRE_THAT(range_value(read_mostly, memory, bytes) == 1);
        REQUIRE_CODE(cuMemAdvise(memory + 4096, 1, 2, 0), 0);
        REQUIRE_THAT(range_value(read_mostly, memory + 4096, 4096) == 0 && range_value(read_mostly, memory, 4096) == 1);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, bytes, 0, stream), 0);
        REQUIRE_CODE(cuMemPrefetchAsync(memory, 4096, -1, stream), 0);
        REQUIRE_THAT(range_value(last_prefetch, memory, 4096) == -1 && range_value(last_prefetch, memory, bytes) == -2);
        REQUIRE_THAT(range_value(last_prefetch, memory + 4096, bytes - 4096) == 0);
    });
}

TEST(SimHint, PreferredPlacesAndAccessorsAreRemembered) {
    in_own_process([] {
        open_device();
        if (!concurrent_managed()) return;
        const Address memory = managed_memory();
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 3, 0), 0);
        REQUIRE_THAT(range_value(preferred, memory, bytes) == 0 && range_value(preferred_type, memory, bytes) == 1);
        REQUIRE_CODE(cuMemAdvise_v2(memory, bytes, 3, {on_host, 0}), 0);
        REQUIRE_THAT(range_value(preferred, memory, bytes) == -1 && range_value(preferred_type, memory, bytes) == 2);
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 4, 0), 0);
        REQUIRE_THAT(range_value(preferred, memory, bytes) == -2);
        int who[3] = {};
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 5, 0), 0);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, sizeof(who), accessed_by, memory, bytes), 0);
        REQUIRE_THAT(who[0] == 0 && who[1] == -2 && who[2] == -2);
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 5, -1), 0);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, sizeof(who), accessed_by, memory, bytes), 0);
        REQUIRE_THAT(who[0] == 0 && who[1] == -1 && who[2] == -2);  // the CPU is the last
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 6, -1), 0);
        REQUIRE_CODE(cuMemAdvise(memory, bytes, 6, 0), 0);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, sizeof(who), accessed_by, memory, bytes), 0);
        REQUIRE_THAT(who[0] == -2);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, 3, accessed_by, memory, bytes), 1);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, 8, preferred, memory, bytes), 1);
        REQUIRE_CODE(cuMemRangeGetAttribute(who, 4, 99, memory, bytes), 1);
        int mostly = 5, place = 5;
        void* data[] = {&mostly, &place};
        std::size_t sizes[] = {4, 4};
        int ids[] = {read_mostly, preferred};
        REQUIRE_CODE(cuMemRangeGetAttributes(data, sizes, ids, 2, memory, bytes), 0);
        REQUIRE_THAT(mostly == 0 && place == -2);
    });
}

TEST(SimHint, ABatchPrefetchesEachRangeToItsPlace) {
    in_own_process([] {
        open_device();
        if (version() < 13000) return;
        Stream* stream = new_stream();
        Address ranges[] = {managed_memory(), managed_memory(), managed_memory()};
        std::size_t sizes[] = {bytes, bytes, bytes};
        Location places[] = {{on_device, 0}, {on_host, 0}};
        std::size_t first_of[] = {0, 2};
        const auto batch = [&](Stream* to) {
            return cuMemPrefetchBatchAsync(ranges, sizes, 3, places, first_of, 2, 0, to);
        };
        REQUIRE_CODE(batch(nullptr), 1);  // never the legacy stream
        bool all_concurrent = true;
        int devices = 0;
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        for (int i = 0; i < devices; ++i) all_concurrent = all_concurrent && fact(attribute::concurrent_managed, i);
        REQUIRE_CODE(batch(stream), all_concurrent ? 0 : 101);
        if (!all_concurrent) return;
        REQUIRE_THAT(range_value(last_prefetch, ranges[1], bytes) == 0);
        REQUIRE_THAT(range_value(last_prefetch, ranges[2], bytes) == -1);
        first_of[1] = 3;
        REQUIRE_CODE(batch(stream), 1);
        first_of[0] = 1;
        REQUIRE_CODE(batch(stream), 1);
        REQUIRE_CODE(cuMemPrefetchBatchAsync(ranges, sizes, 3, places, first_of, 2, 1, stream), 1);
    });
}

TEST(SimHint, ADiscardEndsTheContentInTheOrderOfItsStream) {  // keeps K21's ground
    in_own_process([] {
        open_device();
        if (version() < 13000) return;
        Stream* stream = new_stream();
        const Address memory = managed_memory();
        std::vector<unsigned char> plain(bytes, 7);
        Address ranges[] = {memory, reinterpret_cast<Address>(plain.data())};
        std::size_t sizes[] = {bytes, bytes};
        bool concurrent = true;
        int devices = 0;
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        for (int i = 0; i < devices; ++i) concurrent = concurrent && fact(attribute::concurrent_managed, i);
        REQUIRE_CODE(cuMemDiscardBatchAsync(ranges, sizes, 1, 0, nullptr), 1);  // never the legacy stream
        REQUIRE_CODE(cuMemDiscardBatchAsync(ranges, sizes, 0, 0, stream), 1);
        REQUIRE_CODE(cuMemDiscardBatchAsync(ranges, sizes, 1, 1, stream), 1);
        REQUIRE_CODE(cuMemDiscardBatchAsync(ranges, sizes, 1, 0, stream), concurrent ? 0 : 101);
        if (!concurrent) return;
        REQUIRE_CODE(cuMemDiscardBatchAsync(ranges, sizes, 2, 0, stream), pageable() ? 0 : 1);
        REQUIRE_CODE(cuMemsetD8Async(memory, 5, 16, stream), 0);
        Location places[] = {{on_host, 0}};
        std::size_t first_of[] = {0};
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        const auto* const content = reinterpret_cast<const unsigned char*>(memory);
        REQUIRE_THAT(content[15] == 5 && content[16] == 0xD1 && content[bytes - 1] == 0xD1);
        REQUIRE_THAT(plain[0] == (pageable() ? 0xD1 : 7));
        REQUIRE_CODE(cuMemDiscardAndPrefetchBatchAsync(ranges, sizes, 1, nullptr, first_of, 1, 0, stream), 1);
        REQUIRE_CODE(cuMemDiscardAndPrefetchBatchAsync(ranges, sizes, 1, places, first_of, 1, 0, stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        REQUIRE_THAT(content[0] == 0xD1 && range_value(last_prefetch, memory, bytes) == -1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
