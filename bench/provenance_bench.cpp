// SPDX-License-Identifier: Apache-2.0
// Measures finding the allocation of a raw pointer: the address map, beside ordered tables behind a shared lock and the
// driver's own answer.
#include "raw_driver.hpp"

#include <address_map.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <vector>

namespace {

using isthmus::MemoryKind;
using isthmus::provenance::AddressMap;
using isthmus::provenance::Record;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

// Models a program's allocations: of a hundred, 95 have 512 bytes to 64 KiB and are packed as in a pool, four have some
// MiB, and one has some GiB at a separate address. The addresses have no memory.
std::vector<Record> allocations(std::size_t count) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> exponent(9, 16);
    std::uint64_t small = 0x7f20'0000'0000, medium = 0x7e00'0000'0000, large = 0x0100'0000'0000'0000;
    std::vector<Record> made;
    for (std::uint64_t id = 1; id <= count; ++id) {
        const std::uint64_t die = random() % 100;
        std::uint64_t& place = die < 95 ? small : die < 99 ? medium : large;
        const std::uint64_t step = die < 95 ? 512 : 2 * mib;
        std::uint64_t bytes = static_cast<std::uint64_t>(std::exp2(exponent(random)));
        if (die >= 95) bytes = die < 99 ? mib + random() % (15 * mib) : gib + random() % (7 * gib);
        made.push_back({place, bytes, id, 0, MemoryKind::device, 0});
        place += (bytes + step - 1) / step * step;
    }
    return made;
}

std::vector<std::uint64_t> pointers_into(const std::vector<Record>& records, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> pointers(1 << 16);
    for (std::uint64_t& pointer : pointers) {
        const Record& record = records[random() % records.size()];
        pointer = record.base + random() % record.bytes;
    }
    return pointers;
}

struct LockedMap {
    mutable std::shared_mutex mutex;
    std::map<std::uint64_t, Record> records;
    explicit LockedMap(const std::vector<Record>& from) {
        for (const Record& record : from) records.emplace(record.base, record);
    }
    Record find(std::uint64_t address) const {
        const std::shared_lock lock(mutex);
        auto next = records.upper_bound(address);
        if (next == records.begin()) return {};
        --next;
        return address - next->first < next->second.bytes ? next->second : Record{};
    }
};

struct LockedVector {
    mutable std::shared_mutex mutex;
    std::vector<Record> records;
    explicit LockedVector(std::vector<Record> from) : records(std::move(from)) {
        std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.base < b.base; });
    }
    Record find(std::uint64_t address) const {
        const std::shared_lock lock(mutex);
        const auto next = std::upper_bound(records.begin(), records.end(), address,
                                           [](std::uint64_t a, const Record& record) { return a < record.base; });
        if (next == records.begin()) return {};
        const Record& record = *(next - 1);
        return address - record.base < record.bytes ? record : Record{};
    }
};

struct Ours {
    AddressMap map;
    explicit Ours(const std::vector<Record>& from) {
        for (const Record& record : from) map.insert(record).value();
    }
    Record find(std::uint64_t address) const { return map.find(address); }
};

// One table, shared by all repetitions and threads.
template <class Table>
const Table& table(std::size_t count) {
    static std::mutex mutex;
    static std::map<std::size_t, std::unique_ptr<Table>> made;
    const std::lock_guard lock(mutex);
    std::unique_ptr<Table>& place = made[count];
    if (!place) place = std::make_unique<Table>(allocations(count));
    return *place;
}

template <class Table>
void find(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const Table& in = table<Table>(count);
    const std::vector<std::uint64_t> pointers =
        pointers_into(allocations(count), static_cast<std::uint64_t>(state.thread_index()) + 7);
    std::size_t i = 0;
    for (auto _ : state) {
        Record record = in.find(pointers[i++ & (pointers.size() - 1)]);
        benchmark::DoNotOptimize(record);
        if (record.id == 0) state.SkipWithError("not found");
    }
    if constexpr (std::is_same_v<Table, Ours>) {
        const double each = static_cast<double>(in.map.memory_bytes()) / static_cast<double>(count);
        state.counters["bytes_each"] = benchmark::Counter(each, benchmark::Counter::kAvgThreads);
    }
}

// Each pointer depends on the answer before it: the latency of one find, without overlap.
template <class Table>
void find_dependent(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const Table& in = table<Table>(count);
    const std::vector<std::uint64_t> pointers = pointers_into(allocations(count), 7);
    std::uint64_t i = 0, zero = 0;
    for (auto _ : state) {
        const Record record = in.find(pointers[i++ & (pointers.size() - 1)] + zero);
        zero = record.id >> 63;
        benchmark::DoNotOptimize(zero);
    }
}

void find_nothing(benchmark::State& state) {
    const Ours& in = table<Ours>(static_cast<std::size_t>(state.range(0)));
    std::uint64_t address = 0x5555'0000'0000;
    for (auto _ : state) benchmark::DoNotOptimize(in.find(address += 4096));
}

// One thread reads while another inserts and erases an adjacent allocation.
void find_beside_a_writer(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    static AddressMap* shared = nullptr;
    if (state.thread_index() == 0) {
        shared = new AddressMap;
        for (const Record& record : allocations(count)) shared->insert(record).value();
    }
    const std::vector<std::uint64_t> pointers = pointers_into(allocations(count), 7);
    std::uint64_t i = 0;
    const Record guest{0x7f1f'ffff'f000, 4096, count + 1, 0, MemoryKind::pool, 0};
    for (auto _ : state) {
        if (state.thread_index() == 0) {
            benchmark::DoNotOptimize(shared->find(pointers[i++ & (pointers.size() - 1)]));
        } else {
            (void)shared->insert(guest);
            (void)shared->erase(guest.base, guest.id);
        }
    }
    if (state.thread_index() == 0) delete shared;
}

void insert_and_erase(benchmark::State& state, std::uint64_t bytes) {
    AddressMap map;
    for (const Record& record : allocations(1000)) map.insert(record).value();
    const Record guest{0x7000'0000'0200, bytes, 1001, 0, MemoryKind::pool, 0};
    for (auto _ : state) {
        (void)map.insert(guest);
        (void)map.erase(guest.base, guest.id);
    }
}

void driver_attribute(benchmark::State& state) {
    bench::RawDriver driver;
    std::vector<std::uint64_t> made;
    if (!driver.open_own() || !driver.prepare_device()) {
        state.SkipWithError("no GPU");
        return;
    }
    for (int i = 0; i < 1000; ++i) {
        std::uint64_t address = 0;
        if (driver.allocate(&address, 512) == 0) made.push_back(address);
    }
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> pointers(1 << 16);
    for (std::uint64_t& pointer : pointers) pointer = made[random() % made.size()] + random() % 512;
    std::size_t i = 0;
    for (auto _ : state) {
        unsigned type = 0;
        const int rc = driver.pointer_attribute(&type, 2, pointers[i++ & (pointers.size() - 1)]);  // MEMORY_TYPE
        benchmark::DoNotOptimize(rc);
        benchmark::DoNotOptimize(type);
    }
    for (const std::uint64_t address : made) driver.free(address);
}

constexpr std::int64_t sizes[] = {16, 1000, 100000, 1000000};

template <class Table>
void add(const std::string& name) {
    for (const std::int64_t count : sizes) {
        for (const int threads : {1, 2}) {
            benchmark::RegisterBenchmark(("find/" + name).c_str(), find<Table>)->Arg(count)->Threads(threads);
        }
        benchmark::RegisterBenchmark(("find_dependent/" + name).c_str(), find_dependent<Table>)->Arg(count);
    }
}

}  // namespace

int main(int argc, char** argv) {
    add<Ours>("map");
    add<LockedMap>("std_map");
    add<LockedVector>("sorted_vector");
    for (const std::int64_t count : sizes) benchmark::RegisterBenchmark("find_nothing", find_nothing)->Arg(count);
    benchmark::RegisterBenchmark("find_beside_a_writer", find_beside_a_writer)->Arg(1000)->Threads(2)->UseRealTime();
    for (const std::uint64_t bytes : {512 * std::uint64_t{1}, 64 * kib, 15 * mib, 512 * gib}) {
        benchmark::RegisterBenchmark(("insert_and_erase/" + std::to_string(bytes)).c_str(),
                                     [=](benchmark::State& state) { insert_and_erase(state, bytes); });
    }
    benchmark::RegisterBenchmark("cuPointerGetAttribute", driver_attribute)->Threads(1);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
