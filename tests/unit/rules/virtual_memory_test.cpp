// SPDX-License-Identifier: Apache-2.0
// What may be created, mapped, opened for access and released, over every combination of the deciding facts.
#include "virtual_memory_rules.hpp"

#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using Where = MemoryPlace::Where;
constexpr std::size_t granule = 2u << 20;
constexpr rules::CreationFacts all_facts{true, true, true};

void expect_explained(const rules::MappingAnswer& answer) {
    EXPECT_EQ(answer.code == Code::ok, answer.reason.empty() && answer.remedy.empty()) << answer.reason;
    EXPECT_EQ(answer.reason.empty(), answer.remedy.empty()) << answer.reason;
}

Capabilities with(std::initializer_list<Feature> features) {
    Capabilities device;
    for (int at = 0; at < feature_count; ++at) {
        device.features[static_cast<std::size_t>(at)] = {State::no, Origin::attribute, "the attribute is 0"};
    }
    for (const Feature feature : features) {
        device.features[static_cast<std::size_t>(feature)] = {State::yes, Origin::attribute, "the attribute is 1"};
    }
    return device;
}

// keeps V15: pages are mapped in slots that have none, and unmapped from slots that have one
TEST(VirtualMemoryRules, PagesAreMappedAndUnmappedWhereThatFits) {
    constexpr std::size_t slots = 4;
    for (unsigned bits = 0; bits < 1u << slots; ++bits) {
        std::vector<bool> mapped(slots);
        for (std::size_t slot = 0; slot < slots; ++slot) mapped[slot] = (bits >> slot & 1u) != 0;
        for (std::size_t first = 0; first <= slots + 1; ++first) {
            for (std::size_t count = 0; count <= slots + 1; ++count) {
                bool none = true, all = true;
                for (std::size_t slot = first; slot < first + count && slot < slots; ++slot) {
                    none = none && !mapped[slot];
                    all = all && mapped[slot];
                }
                const bool fits = first + count <= slots;
                const rules::MappingAnswer map = rules::may_map_pages(mapped, first, count);
                const rules::MappingAnswer unmap = rules::may_unmap_pages(mapped, first, count);
                EXPECT_EQ(map.code, !fits ? Code::invalid_argument : none ? Code::ok : Code::in_use);
                EXPECT_EQ(unmap.code, fits && all ? Code::ok : Code::invalid_argument);
                expect_explained(map);
                expect_explained(unmap);
            }
        }
        EXPECT_FALSE(rules::may_map_pages(mapped, 2, ~std::size_t{0}));
    }
}

// keeps V1, V16: a usage needs its attribute, and a device's own memory
TEST(VirtualMemoryRules, AUsageNeedsWhatItIsFor) {
    constexpr auto tile_pool = isthmus::PhysicalUsage::tile_pool;
    constexpr auto hardware_decompress = isthmus::PhysicalUsage::hardware_decompress;
    const Capabilities device = with({Feature::virtual_memory, Feature::host_numa_virtual_memory});
    for (unsigned bits = 0; bits < 1u << 5; ++bits) {
        rules::CreationFacts facts{true};
        facts.sparse_arrays = (bits & 1u) != 0;
        facts.decompression = (bits & 2u) != 0;
        rules::CreationWish wish;
        wish.where = (bits & 4u) != 0 ? Where::device : Where::host_node;
        wish.usage = static_cast<isthmus::PhysicalUsage>(bits >> 3);
        const bool pool = includes(wish.usage, tile_pool);
        const bool fine =
            (!pool || (facts.sparse_arrays && wish.where == Where::device)) &&
            (!includes(wish.usage, hardware_decompress) || (facts.decompression && wish.where == Where::device));
        const rules::MappingAnswer answer = rules::may_create(device, facts, wish);
        EXPECT_EQ(static_cast<bool>(answer), fine) << bits;
        expect_explained(answer);
        EXPECT_EQ(rules::may_have_addresses(wish.usage).code, pool ? Code::unsupported : Code::ok);
        expect_explained(rules::may_have_addresses(wish.usage));
    }
}

// keeps V1, V4, V5, V13
TEST(VirtualMemoryRules, CreationNeedsExactlyTheFactsOfWhatIsAskedFor) {
    constexpr Feature deciding[] = {Feature::virtual_memory, Feature::host_virtual_memory,
                                    Feature::host_numa_virtual_memory, Feature::export_posix_fd,
                                    Feature::export_fabric};
    for (unsigned bits = 0; bits < 1u << 8; ++bits) {
        Capabilities device = with({});
        const auto bit = [&](unsigned at) { return (bits >> at & 1u) != 0; };
        for (unsigned at = 0; at < 5; ++at) {
            device.features[static_cast<std::size_t>(deciding[at])].state = bit(at) ? State::yes : State::no;
        }
        const rules::CreationFacts facts{bit(5), bit(6), bit(7)};
        EXPECT_EQ(static_cast<bool>(rules::may_reserve(device, facts)), bit(0) && bit(5));
        for (const Where where : {Where::device, Where::host, Where::host_node}) {
            for (unsigned asked = 0; asked < 1u << 4; ++asked) {
                rules::CreationWish wish;
                wish.where = where;
                wish.exports = static_cast<ExportKinds>(asked & 3u);
                wish.compressible = (asked & 4u) != 0;
                wish.gpudirect_rdma = (asked & 8u) != 0;
                const bool place = where == Where::device || (where == Where::host ? bit(1) : bit(2));
                const bool exports = (where != Where::host || (asked & 3u) == 0) && ((asked & 1u) == 0 || bit(3)) &&
                                     ((asked & 2u) == 0 || bit(4));
                const bool on_device = where == Where::device;
                const bool compression = !wish.compressible || (on_device && bit(6));
                const bool rdma = !wish.gpudirect_rdma || (on_device && bit(7));
                const rules::MappingAnswer answer = rules::may_create(device, facts, wish);
                EXPECT_EQ(static_cast<bool>(answer), bit(0) && bit(5) && place && exports && compression && rdma);
                EXPECT_TRUE(answer || answer.code == Code::unsupported);
                expect_explained(answer);
            }
        }
    }
}

// keeps V1
TEST(VirtualMemoryRules, TheCpuDeviceReservesNothingByHandAndKnownMachinesAnswerByTheirAttributes) {
    expect_explained(rules::may_reserve(some_devices::cpu(), all_facts));
    EXPECT_EQ(rules::may_reserve(some_devices::cpu(), all_facts).code, Code::unsupported);
    for (const char* const machine : some_devices::gpu_machines) {
        const Capabilities device = some_devices::of_machine(machine);
        EXPECT_EQ(static_cast<bool>(rules::may_reserve(device, all_facts)), device.has(Feature::virtual_memory))
            << machine;
        expect_explained(rules::may_reserve(device, {false, true, true}));
        EXPECT_FALSE(rules::may_reserve(device, {false, true, true})) << machine;
    }
}

// keeps V4
TEST(VirtualMemoryRules, OnlyWhatWasFixedAtCreationIsExported) {
    for (unsigned fixed = 0; fixed < 4; ++fixed) {
        for (unsigned asked = 0; asked < 4; ++asked) {
            const AccessAnswer answer =
                rules::may_export(static_cast<ExportKinds>(fixed), static_cast<ExportKinds>(asked));
            EXPECT_EQ(answer.verdict == Verdict::yes, asked != 0 && (fixed & asked) == asked) << fixed << asked;
            EXPECT_EQ(answer.remedy.empty(), answer.verdict == Verdict::yes);
        }
    }
}

// keeps V2
TEST(VirtualMemoryRules, SizesRoundUpAndNeverWrap) {
    for (const std::size_t unit : {std::size_t{1}, std::size_t{4096}, granule}) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, unit - 1, unit, unit + 1, 7 * unit}) {
            const std::size_t rounded = rules::round_up(bytes, unit).value();
            EXPECT_EQ(rounded % unit, 0u);
            EXPECT_TRUE(rounded >= bytes && rounded - bytes < unit);
        }
    }
    EXPECT_FALSE(rules::round_up(std::numeric_limits<std::size_t>::max(), granule));
    EXPECT_FALSE(rules::round_up(1, 0));
}

// keeps V7
TEST(VirtualMemoryRules, AMappingFitsWhereNothingElseIsAndNowhereElse) {
    constexpr std::size_t slots = 4;
    // Every set of single-granule mappings against every requested span.
    for (unsigned taken = 0; taken < 1u << slots; ++taken) {
        std::vector<rules::MappedSpan> mapped;
        for (std::size_t at = 0; at < slots; ++at) {
            if ((taken >> at & 1u) != 0) mapped.push_back({at * granule, granule});
        }
        for (std::size_t first = 0; first <= slots + 1; ++first) {
            for (std::size_t length = 1; length <= slots + 1; ++length) {
                bool free = true;
                for (std::size_t at = first; at < first + length && at < slots; ++at)
                    free = free && (taken >> at & 1u) == 0;
                const rules::MappingAnswer answer =
                    rules::may_map(slots * granule, granule, mapped, {first * granule, length * granule});
                const Code wanted = first + length > slots ? Code::invalid_argument : (free ? Code::ok : Code::in_use);
                EXPECT_EQ(answer.code, wanted) << taken << " " << first << " " << length;
                expect_explained(answer);
            }
        }
    }
    EXPECT_EQ(rules::may_map(4 * granule, granule, {}, {4096, granule}).code, Code::invalid_argument);
    EXPECT_EQ(rules::may_map(4 * granule, granule, {}, {0, granule - 1}).code, Code::invalid_argument);
    EXPECT_EQ(rules::may_map(4 * granule, granule, {}, {0, 0}).code, Code::invalid_argument);
    const std::size_t last = std::numeric_limits<std::size_t>::max() - granule + 1;
    EXPECT_EQ(rules::may_map(4 * granule, granule, {}, {last, granule}).code, Code::invalid_argument);
    EXPECT_EQ(rules::may_free(0).code, Code::ok);
    EXPECT_EQ(rules::may_free(1).code, Code::in_use);
    expect_explained(rules::may_free(3));
}

// keeps V9
TEST(VirtualMemoryRules, EveryGranteeIsAnsweredByWhatItIsAndWhereTheMemoryLies) {
    for (unsigned bits = 0; bits < 1u << 5; ++bits) {
        const rules::Grantee who{(bits & 1u) != 0, (bits & 2u) != 0, (bits & 4u) != 0, (bits & 8u) != 0};
        const bool on_host = (bits & 16u) != 0;
        for (const RangeAccess access : {RangeAccess::none, RangeAccess::read, RangeAccess::read_write}) {
            const bool cpu = on_host && access != RangeAccess::read;
            const bool gpu = who.has_virtual_memory && (who.reaches || access == RangeAccess::none);
            const Code wanted = !who.same_runtime          ? Code::wrong_device
                                : (who.is_cpu ? cpu : gpu) ? Code::ok
                                                           : Code::unsupported;
            const rules::MappingAnswer answer = rules::may_let_in(who, on_host, access);
            EXPECT_EQ(answer.code, wanted) << bits;
            expect_explained(answer);
        }
    }
}

// keeps V8, V9
TEST(VirtualMemoryRules, MappedWithoutAccessIsNotUsableAndReadOnlyIsNotWritten) {
    for (const bool mapped : {false, true}) {
        for (const RangeAccess access : {RangeAccess::none, RangeAccess::read, RangeAccess::read_write}) {
            for (const bool writes : {false, true}) {
                const bool fine =
                    mapped && (access == RangeAccess::read_write || (access == RangeAccess::read && !writes));
                const AccessAnswer answer = rules::mapped_access({mapped, access}, writes);
                EXPECT_EQ(answer.verdict, fine ? Verdict::yes : Verdict::no);
                EXPECT_FALSE(answer.reason.empty());
                EXPECT_EQ(answer.remedy.empty(), fine);
                // V14: a range of a multicast object, with any access
                const AccessAnswer multicast =
                    rules::mapped_access({mapped, access, rules::RangeFacts::multicast}, writes);
                EXPECT_EQ(multicast.verdict, Verdict::no);
                EXPECT_FALSE(multicast.remedy.empty());
            }
        }
    }
}

// keeps V11
TEST(VirtualMemoryRules, AGrowableBufferStandsOnMappedMemoryElseOnHostMemoryThatTheDeviceUsesElseIsRefused) {
    using Base = rules::GrowableBase;
    EXPECT_EQ(rules::growable_base(some_devices::cpu(), {}, {}).base, Base::reserved_host);
    rules::CreationWish node;
    node.where = Where::host_node;
    EXPECT_EQ(rules::growable_base(some_devices::cpu(), {}, node).base, Base::refused);
    for (const Where where : {Where::device, Where::host}) {
        rules::CreationWish compressed;
        compressed.where = where;
        compressed.compressible = true;
        const rules::GrowableAnswer answer = rules::growable_base(some_devices::cpu(), {}, compressed);
        EXPECT_EQ(answer.base, Base::refused) << "what is asked for is had, or refused";
        EXPECT_FALSE(answer.remedy.empty());
    }
    for (unsigned bits = 0; bits < 1u << 5; ++bits) {
        Capabilities device = with({});
        const auto bit = [&](unsigned at) { return (bits >> at & 1u) != 0; };
        const auto set = [&](Feature feature, bool on) {
            device.features[static_cast<std::size_t>(feature)].state = on ? State::yes : State::no;
        };
        set(Feature::virtual_memory, bit(0));
        set(Feature::host_virtual_memory, bit(1));
        set(Feature::host_numa_virtual_memory, bit(2));
        set(Feature::pageable_access, bit(3));
        device.memory = bit(4) ? MemoryModel::shared_dram : MemoryModel::separate;
        for (const Where where : {Where::device, Where::host, Where::host_node}) {
            for (const bool compressible : {false, true}) {
                rules::CreationWish wish;
                wish.where = where;
                wish.compressible = compressible;
                const bool mapped = static_cast<bool>(rules::may_create(device, all_facts, wish));
                const bool host =
                    !compressible && bit(3) && (where == Where::host || (where == Where::device && bit(4)));
                const rules::GrowableAnswer answer = rules::growable_base(device, all_facts, wish);
                EXPECT_EQ(answer.base, mapped ? Base::mapped : (host ? Base::reserved_host : Base::refused)) << bits;
                EXPECT_FALSE(answer.reason.empty());
                EXPECT_EQ(answer.remedy.empty(), answer.base != Base::refused);
            }
        }
    }
}

// keeps V11
TEST(VirtualMemoryRules, StepsDoubleOrAreExactAndEndWithTheReservation) {
    using Steps = rules::GrowthSteps;
    constexpr std::size_t reserved = 64 * granule;
    for (std::size_t mapped = 0; mapped <= 64; ++mapped) {
        for (std::size_t more = 0; more <= 65; ++more) {
            const std::size_t have = mapped * granule;
            const std::size_t needed = have + more * granule - (more > 0 ? 1 : 0);
            const auto doubled = rules::growth_step(Steps::doubling, have, needed, reserved, granule);
            const auto exact = rules::growth_step(Steps::exact, have, needed, reserved, granule);
            if (mapped + more > 64) {
                EXPECT_FALSE(doubled || exact) << mapped << " " << more;
                continue;
            }
            EXPECT_EQ(exact.value(), more * granule);
            const std::size_t wanted = more == 0 ? 0 : std::min(std::max(more, mapped), 64 - mapped) * granule;
            EXPECT_EQ(doubled.value(), wanted);
        }
    }
    // Reaches any size in a number of steps that grows with its logarithm.
    std::size_t have = 0;
    int steps = 0;
    for (; have < reserved; ++steps)
        have += rules::growth_step(Steps::doubling, have, have + 1, reserved, granule).value();
    EXPECT_EQ(steps, 7);
    EXPECT_FALSE(rules::growth_step(Steps::exact, 0, std::numeric_limits<std::size_t>::max(), reserved, granule));
}

// keeps V11
TEST(VirtualMemoryRules, AStepOverSeveralDevicesIsEvenWhereItFitsAndUsesUpWhatIsLeft) {
    using Steps = rules::GrowthSteps;
    constexpr std::size_t reserved = 24 * granule;
    for (std::size_t devices = 1; devices <= 5; ++devices) {
        for (std::size_t mapped = 0; mapped <= 24; ++mapped) {
            for (std::size_t more = 0; more <= 25; ++more) {
                for (const Steps steps : {Steps::exact, Steps::doubling}) {
                    const std::size_t have = mapped * granule;
                    const auto one = rules::growth_step(steps, have, have + more * granule, reserved, granule);
                    const auto step =
                        rules::growth_step(steps, have, have + more * granule, reserved, granule, devices);
                    ASSERT_EQ(step.has_value(), one.has_value());
                    if (!step) continue;
                    const std::size_t even = rules::round_up(*one, devices * granule).value();
                    EXPECT_EQ(*step, std::min(even, reserved - have)) << devices << " " << mapped << " " << more;
                    const std::vector<std::size_t> handles = rules::handles_of_step(*step, granule, devices);
                    EXPECT_EQ(handles.size(), std::min(devices, *step / granule));
                    std::size_t sum = 0;
                    for (const std::size_t bytes : handles) {
                        EXPECT_EQ(bytes % granule, 0u);
                        EXPECT_TRUE(bytes > 0 && bytes <= handles.front() && handles.front() - bytes <= granule);
                        sum += bytes;
                    }
                    EXPECT_EQ(sum, *step);
                }
            }
        }
    }
}

// keeps V1, V11
TEST(VirtualMemoryRules, AStripeLiesOnDevicesThatMapMemoryAndNowhereElse) {
    rules::CreationWish wish;
    EXPECT_EQ(rules::may_stripe(some_devices::cpu(), all_facts, wish).code, Code::unsupported);
    expect_explained(rules::may_stripe(some_devices::cpu(), all_facts, wish));
    EXPECT_EQ(rules::may_stripe(with({Feature::virtual_memory}), all_facts, wish).code, Code::ok);
    EXPECT_EQ(rules::may_stripe(with({}), all_facts, wish).code, Code::unsupported);
    wish.compressible = true;
    EXPECT_EQ(rules::may_stripe(with({Feature::virtual_memory}), {true, false, true}, wish).code, Code::unsupported);
    for (const Where where : {Where::host, Where::host_node}) {
        wish = {};
        wish.where = where;
        const Capabilities all =
            with({Feature::virtual_memory, Feature::host_virtual_memory, Feature::host_numa_virtual_memory});
        EXPECT_EQ(rules::may_stripe(all, all_facts, wish).code, Code::invalid_argument);
        expect_explained(rules::may_stripe(all, all_facts, wish));
    }
}

// keeps V11
TEST(VirtualMemoryRules, TrimmingKeepsWholeHandles) {
    const std::vector<std::size_t> handles{granule, granule, 2 * granule, 4 * granule};
    for (std::size_t kept = 0; kept <= 9; ++kept) {
        const std::size_t stay = rules::handles_kept(handles, kept * granule);
        std::size_t bytes = 0;
        for (std::size_t at = 0; at < stay; ++at) bytes += handles[at];
        EXPECT_GE(bytes, std::min<std::size_t>(kept, 8) * granule);
        if (stay > 0) {
            EXPECT_LT(bytes - handles[stay - 1], kept * granule);  // no handle more than needed
        }
    }
}

}  // namespace
