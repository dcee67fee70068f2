// SPDX-License-Identifier: Apache-2.0
// How much memory can be allocated: every row × kind × amount around the limit, and which source decides.
#include "some_devices.hpp"

#include <exhausted_memory.hpp>
#include <memory_budget.hpp>
#include <platform/capability_table.hpp>

#include <limits>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using V = BudgetVerdict;
using S = BudgetSource;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

// The device has less than the host, so that each answer shows which of them decided.
MemoryNow now() {
    MemoryNow numbers;
    numbers.host_total = 64 * gib;
    numbers.host_available = 32 * gib;
    numbers.device_total = 16 * gib;
    numbers.device_free = 8 * gib;
    return numbers;
}
BudgetOptions reserve(std::uint64_t bytes, std::uint32_t permille = 0) {
    BudgetOptions options;
    options.reserve_bytes = bytes;
    options.reserve_permille = permille;
    return options;
}

bool is_host_kind(K kind) {
    return kind == K::host || kind == K::pinned || kind == K::registered || kind == K::write_combined ||
           kind == K::host_numa;
}
bool is_others(K kind) {
    return kind == K::unknown || kind == K::imported;
}

std::vector<std::pair<std::string, Capabilities>> every_device() {
    std::vector<std::pair<std::string, Capabilities>> all = {{"cpu", cpu()}};
    for (const char* machine : gpu_machines) all.emplace_back(machine, of_machine(machine));
    return all;
}
bool shares_dram(const std::string& machine) {
    return machine == "cpu" || machine == "orin" || machine == "thor" || machine == "gb10";
}

TEST(Budget, EveryRowAndKindIsExactAtItsEdge) {  // keeps K19, K20
    constexpr std::uint64_t kept = 5 * gib;
    for (const auto& [machine, device] : every_device()) {
        for_every_kind([&, &machine = machine, &device = device](K kind) {
            const auto ask = [&](std::uint64_t bytes) {
                return memory_budget(device, now(), kind, bytes, reserve(kept));
            };
            SCOPED_TRACE(machine + " " + std::string(name(kind)));
            if (is_others(kind)) {
                EXPECT_EQ(ask(most).verdict, V::uncounted);
                EXPECT_TRUE(ask(most)) << "nothing more is taken";
                return;
            }
            const bool from_host = shares_dram(machine) || is_host_kind(kind);
            const std::uint64_t usable = from_host ? 32 * gib - kept : 8 * gib;
            for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, usable - 1, usable}) {
                const BudgetAnswer fits = ask(bytes);
                EXPECT_EQ(fits.verdict, V::fits) << bytes;
                EXPECT_EQ(fits.source, from_host ? S::host : S::device);
                EXPECT_EQ(fits.requested_bytes, bytes);
                EXPECT_FALSE(fits.reason.empty());
                EXPECT_TRUE(fits.remedy.empty());
            }
            for (const std::uint64_t bytes : {usable + 1, most - 1, most}) {
                const BudgetAnswer refused = ask(bytes);
                EXPECT_EQ(refused.verdict, V::refused) << bytes;
                EXPECT_FALSE(refused);
                EXPECT_EQ(refused.free_bytes, from_host ? 32 * gib : 8 * gib);
                EXPECT_EQ(refused.reserve_bytes, from_host ? kept : 0u);
                EXPECT_FALSE(refused.reason.empty());
                EXPECT_FALSE(refused.remedy.empty());
            }
        });
    }
}

TEST(Budget, OnSharedDramTheDriversAnswerNeverCounts) {  // keeps K19, K20
    MemoryNow numbers = now();
    for (const char* machine : {"orin", "thor", "gb10"}) {
        const Capabilities device = of_machine(machine);
        for (const std::uint64_t free : {std::uint64_t{0}, 64 * gib}) {
            numbers.device_free = free;
            numbers.device_total = 64 * gib;
            for (const K kind : {K::device, K::pool, K::managed, K::pinned, K::vmm}) {
                EXPECT_EQ(memory_budget(device, numbers, kind, 32 * gib, reserve(0)).verdict, V::fits)
                    << machine << " " << name(kind) << " " << free;
                EXPECT_EQ(memory_budget(device, numbers, kind, 32 * gib + 1, reserve(0)).verdict, V::refused)
                    << machine << " " << name(kind) << " " << free;
            }
        }
        // The same memory counts once: a limit above the device's memory adds nothing.
        BudgetOptions more = reserve(0);
        more.allow_oversubscription = true;
        EXPECT_EQ(memory_budget(device, numbers, K::managed, 32 * gib + 1, more).verdict, V::refused) << machine;
        EXPECT_NE(memory_budget(device, numbers, K::device, 33 * gib).reason.find("share one DRAM"),
                  std::string_view::npos);
    }
}

TEST(Budget, ManagedMemoryBeyondTheDeviceIsRefusedUnlessAskedFor) {  // keeps K20
    for (const char* machine : {"h200", "rtx-hmm", "gh200-numa", "gb200", "b300-hmm"}) {
        const Capabilities device = of_machine(machine);
        BudgetOptions options = reserve(2 * gib);
        const BudgetAnswer refused = memory_budget(device, now(), K::managed, 8 * gib + 1, options);
        EXPECT_EQ(refused.verdict, V::refused) << machine;
        EXPECT_NE(refused.reason.find("unless asked for"), std::string_view::npos);
        EXPECT_NE(refused.remedy.find("oversubscription"), std::string_view::npos);
        EXPECT_EQ(memory_budget(device, now(), K::managed, 8 * gib, options).source, S::device);

        options.allow_oversubscription = true;
        const BudgetAnswer asked = memory_budget(device, now(), K::managed, 38 * gib, options);
        EXPECT_EQ(asked.verdict, V::fits) << machine;
        EXPECT_EQ(asked.source, S::device_and_host);
        EXPECT_EQ(asked.free_bytes, 40 * gib);
        EXPECT_EQ(memory_budget(device, now(), K::managed, 38 * gib + 1, options).verdict, V::refused)
            << "the host keeps its reserve";
        EXPECT_EQ(memory_budget(device, now(), K::device, 8 * gib + 1, options).verdict, V::refused)
            << "device memory stays where it is";
    }
}

TEST(Budget, WithoutPagesMovedOnDemandAskingForMoreDoesNotHelp) {  // keeps K20
    BudgetOptions options;
    options.allow_oversubscription = true;
    const BudgetAnswer refused = memory_budget(of_machine("rtx-wsl2"), now(), K::managed, 8 * gib + 1, options);
    EXPECT_EQ(refused.verdict, V::refused);
    EXPECT_NE(refused.reason.find("no pages on demand"), std::string_view::npos);
    EXPECT_EQ(refused.remedy.find("oversubscription"), std::string_view::npos);
}

TEST(Budget, WhereNobodySaysTheAllocationDecides) {
    for (const auto& [machine, device] : every_device()) {
        for_every_kind([&, &device = device, &machine = machine](K kind) {
            for (const bool more : {false, true}) {
                BudgetOptions options;
                options.allow_oversubscription = more;
                const BudgetAnswer answer = memory_budget(device, MemoryNow{}, kind, most, options);
                EXPECT_EQ(answer.verdict, V::uncounted) << machine << " " << name(kind);
                EXPECT_EQ(answer.source, S::none);
                EXPECT_FALSE(answer.reason.empty());
            }
        });
    }
    // A full machine differs from an unknown one.
    MemoryNow full = now();
    full.host_available = full.device_free = 0;
    EXPECT_EQ(memory_budget(of_machine("h200"), full, K::device, 1).verdict, V::refused);
    EXPECT_EQ(memory_budget(of_machine("h200"), full, K::pinned, 1).verdict, V::refused);
    EXPECT_EQ(memory_budget(of_machine("orin"), full, K::device, 1).verdict, V::refused);
    EXPECT_EQ(memory_budget(of_machine("orin"), full, K::device, 0).verdict, V::fits);
}

TEST(Budget, ACgroupThatDecidesIsNamed) {
    MemoryNow numbers = now();
    numbers.cgroup_decides = true;
    for (const char* machine : {"h200", "orin"}) {
        const BudgetAnswer refused = memory_budget(of_machine(machine), numbers, K::pinned, 32 * gib, reserve(1));
        EXPECT_EQ(refused.verdict, V::refused);
        EXPECT_EQ(refused.source, S::cgroup);
        EXPECT_NE(refused.reason.find("cgroup"), std::string_view::npos);
        EXPECT_NE(refused.remedy.find("memory.max"), std::string_view::npos);
        EXPECT_EQ(memory_budget(of_machine(machine), numbers, K::pinned, 32 * gib, reserve(0)).source, S::cgroup);
    }
    EXPECT_EQ(memory_budget(of_machine("h200"), numbers, K::device, 9 * gib).source, S::device);
}

TEST(Budget, TheReserveIsTheLargerOfBytesAndShareAndNeverMoreThanThereIs) {
    const Capabilities device = of_machine("orin");
    const auto kept = [&](const MemoryNow& numbers, const BudgetOptions& options) {
        return memory_budget(device, numbers, K::pinned, 0, options).reserve_bytes;
    };
    EXPECT_EQ(kept(now(), reserve(gib, 0)), gib);
    EXPECT_EQ(kept(now(), reserve(gib, 500)), 64 * gib / 1000 * 500);
    EXPECT_EQ(kept(now(), reserve(40 * gib, 500)), 40 * gib);
    EXPECT_GT(kept(now(), BudgetOptions{}), 0u) << "by default something is kept";
    EXPECT_EQ(kept(now(), reserve(0)), 0u) << "nothing, where nothing is asked for";
    // A reserve above the total leaves no room, and nothing wraps around.
    EXPECT_EQ(memory_budget(device, now(), K::pinned, 1, reserve(most, 4000000000u)).verdict, V::refused);
    EXPECT_EQ(memory_budget(device, now(), K::pinned, 0, reserve(most)).verdict, V::fits);
    MemoryNow huge = now();
    huge.host_total = huge.host_available = most;
    EXPECT_EQ(memory_budget(device, huge, K::pinned, most, reserve(0)).verdict, V::fits);
    EXPECT_EQ(memory_budget(device, huge, K::pinned, most, reserve(0, 1)).verdict, V::refused);
}

// keeps K20
TEST(Budget, ByDefaultTheReserveSuitsSmallMemoriesToo) {
    constexpr std::uint64_t mib = std::uint64_t{1} << 20;
    const Capabilities device = of_machine("orin");
    const auto answer = [&](std::uint64_t total, std::uint64_t available, std::uint64_t bytes) {
        MemoryNow numbers;
        numbers.host_total = total;
        numbers.host_available = available;
        numbers.cgroup_decides = true;
        return memory_budget(device, numbers, K::pinned, bytes);
    };
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> kept_of = {{8 * mib, 1 * mib},
                                                                          {64 * mib, 8 * mib},
                                                                          {96 * mib, 12 * mib},
                                                                          {512 * mib, 64 * mib},
                                                                          {gib, 64 * mib},
                                                                          {3 * gib, 64 * mib},
                                                                          {64 * gib, 64 * gib / 1000 * 20}};
    for (const auto& [total, kept] : kept_of) {
        SCOPED_TRACE(total / mib);
        EXPECT_EQ(answer(total, total, 0).reserve_bytes, kept);
        EXPECT_EQ(answer(total, total / 2, total / 2 - kept).verdict, V::fits);
        EXPECT_EQ(answer(total, total / 2, total / 2 - kept + 1).verdict, V::refused);
    }
    // A container of 96 MiB of which 27 are free.
    EXPECT_EQ(answer(96 * mib, 27 * mib, 8 * mib).verdict, V::fits);
    const BudgetAnswer refused = answer(96 * mib, 27 * mib, 20 * mib);
    EXPECT_EQ(refused.verdict, V::refused);
    EXPECT_NE(refused.remedy.find("--host-reserve"), std::string_view::npos);
    EXPECT_NE(refused.remedy.find("host_reserve_bytes"), std::string_view::npos);
    // A requested reserve is kept, however small the memory is.
    MemoryNow small;
    small.host_total = small.host_available = 96 * mib;
    EXPECT_EQ(memory_budget(device, small, K::pinned, 0, reserve(64 * mib)).reserve_bytes, 64 * mib);
}

TEST(Budget, DeviceAndHostTogetherDoNotOverflow) {
    MemoryNow numbers = now();
    numbers.host_total = numbers.host_available = most;
    numbers.device_total = numbers.device_free = 16 * gib;
    BudgetOptions options = reserve(0);
    options.allow_oversubscription = true;
    EXPECT_EQ(memory_budget(of_machine("h200"), numbers, K::managed, most, options).verdict, V::fits);
    // A host of unknown size adds nothing that could be promised.
    numbers.host_total = numbers.host_available = 0;
    EXPECT_EQ(memory_budget(of_machine("h200"), numbers, K::managed, 17 * gib, options).verdict, V::uncounted);
    // Nor does a device that reports more free memory than it has.
    numbers = now();
    numbers.device_free = most;
    EXPECT_EQ(memory_budget(of_machine("h200"), numbers, K::device, 16 * gib + 1).verdict, V::refused);
}

TEST(Budget, FollowsTheTableForEveryCombinationOfAttributes) {
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities device = of_bits(bits);
        const bool counts = platform::traits_of(device).memory_info_counts.value;
        const BudgetAnswer answer = memory_budget(device, now(), K::device, 20 * gib, reserve(0));
        EXPECT_EQ(answer.source, counts ? S::device : S::host) << bits;
        EXPECT_EQ(answer.verdict, counts ? V::refused : V::fits) << bits;
        EXPECT_EQ(memory_budget(device, now(), K::pinned, 20 * gib, reserve(0)).source, S::host) << bits;
    }
}

TEST(Budget, AnswersHaveNames) {
    EXPECT_EQ(name(V::fits), "fits");
    EXPECT_EQ(name(V::refused), "refused");
    EXPECT_EQ(name(V::uncounted), "uncounted");
    EXPECT_EQ(name(S::device_and_host), "device_and_host");
    EXPECT_EQ(name(static_cast<S>(99)), "unknown");
}

// keeps K19
TEST(Budget, ARefusalNamesTheFreeBytesOfTheMemoryThatIsShort) {
    using M = MemoryModel;
    for (const M memory : {M::host, M::separate, M::shared_dram, M::coherent_node, M::coherent_hidden}) {
        const bool one_memory = memory == M::host || memory == M::shared_dram;
        for (const K kind : {K::host, K::host_numa, K::pinned, K::write_combined, K::registered}) {
            EXPECT_TRUE(takes_host_memory(kind, memory)) << name(kind) << " " << name(memory);
        }
        for (const K kind :
             {K::unknown, K::device, K::pool, K::managed, K::managed_pool, K::graph, K::vmm, K::imported}) {
            EXPECT_EQ(takes_host_memory(kind, memory), one_memory) << name(kind) << " " << name(memory);
        }
    }
}

}  // namespace
