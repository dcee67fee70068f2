// SPDX-License-Identifier: Apache-2.0
// Which devices may join multicast objects, and in which order, over every combination of the deciding facts.
#include "multicast_rules.hpp"

#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace isthmus;
constexpr std::size_t granule = 2u << 20;

void expect_explained(const rules::MappingAnswer& answer) {
    EXPECT_EQ(answer.code == Code::ok, answer.reason.empty()) << answer.reason;
    EXPECT_EQ(answer.reason.empty(), answer.remedy.empty()) << answer.reason;
}

// keeps V14
TEST(MulticastRules, WhoJoinsHasTheAttributeAndTheFunctions) {
    EXPECT_EQ(rules::may_join(some_devices::cpu(), true).code, Code::unsupported);
    expect_explained(rules::may_join(some_devices::cpu(), true));
    for (const char* const machine : some_devices::gpu_machines) {
        const Capabilities device = some_devices::of_machine(machine);
        EXPECT_EQ(static_cast<bool>(rules::may_join(device, true)), device.has(Feature::multicast)) << machine;
        EXPECT_FALSE(rules::may_join(device, false)) << machine;
        expect_explained(rules::may_join(device, true));
        expect_explained(rules::may_join(device, false));
    }
}

// keeps V4, V14
TEST(MulticastRules, ATeamHasTwoDevicesOrMoreAndNoMoreThanCanJoin) {
    for (unsigned bits = 0; bits < 1u << 2; ++bits) {
        Capabilities device;
        for (auto& feature : device.features) feature = {State::no, Origin::attribute, "the attribute is 0"};
        const bool fd = (bits & 1u) != 0, fabric = (bits & 2u) != 0;
        device.features[static_cast<std::size_t>(Feature::export_posix_fd)].state = fd ? State::yes : State::no;
        device.features[static_cast<std::size_t>(Feature::export_fabric)].state = fabric ? State::yes : State::no;
        for (std::size_t devices = 0; devices <= 4; ++devices) {
            for (std::size_t here = 0; here <= 4; ++here) {
                for (unsigned exports = 0; exports < 4; ++exports) {
                    const rules::TeamWish wish{devices, granule, static_cast<ExportKinds>(exports)};
                    const bool can = ((exports & 1u) == 0 || fd) && ((exports & 2u) == 0 || fabric) &&
                                     (exports != 0 || devices <= here);
                    const Code wanted = devices < 2 ? Code::invalid_argument : (can ? Code::ok : Code::unsupported);
                    const rules::MappingAnswer answer = rules::may_make_team(device, wish, here);
                    EXPECT_EQ(answer.code, wanted) << devices << here << exports;
                    expect_explained(answer);
                }
            }
        }
        EXPECT_EQ(rules::may_make_team(device, {2, 0, ExportKinds::none}, 2).code, Code::invalid_argument);
    }
}

// keeps V14: all devices are added before anything else
TEST(MulticastRules, AGroupIsCompleteWithExactlyItsDevices) {
    for (std::size_t size = 2; size <= 4; ++size) {
        for (std::size_t joined = 0; joined <= size; ++joined) {
            for (const bool shared : {false, true}) {
                const rules::TeamFacts team{size, joined, shared};
                for (const bool before : {false, true}) {
                    const rules::MappingAnswer added = rules::may_add(team, before);
                    EXPECT_EQ(added.code, !before && joined < size ? Code::ok : Code::invalid_argument);
                    expect_explained(added);
                }
                for (std::size_t elsewhere = 0; elsewhere <= 5; ++elsewhere) {
                    const rules::MappingAnswer answer = rules::may_complete(team, elsewhere);
                    const bool known = elsewhere == 0 || shared;
                    const Code wanted = !known || joined + elsewhere > size ? Code::invalid_argument
                                        : joined + elsewhere == size        ? Code::ok
                                                                            : Code::not_ready;
                    EXPECT_EQ(answer.code, wanted) << size << joined << elsewhere << shared;
                    expect_explained(answer);
                }
            }
        }
    }
    EXPECT_EQ(rules::may_complete({2, 1, true}, ~std::size_t{0}).code, Code::invalid_argument);
}

rules::BindWish bind(std::size_t offset, std::size_t memory_offset, std::size_t granules) {
    rules::BindWish wish;
    wish.granularity = granule;
    wish.team_bytes = 4 * granule;
    wish.memory_bytes = 3 * granule;
    wish.offset = offset * granule;
    wish.memory_offset = memory_offset * granule;
    wish.bytes = granules * granule;
    return wish;
}

// keeps V14
TEST(MulticastRules, AnAddressIsAMultipleOfTheGranularityAsOffsetsAre) {
    for (std::uint64_t address = 0; address <= 2 * granule; address += granule / 2) {
        rules::BindWish wish = bind(0, 0, 1);
        wish.address = address;
        EXPECT_EQ(rules::may_bind(wish, {}).code, address % granule == 0 ? Code::ok : Code::invalid_argument);
    }
}

// keeps V14
TEST(MulticastRules, MemoryIsBoundWhereItFitsAndNothingOfItsDeviceIs) {
    for (unsigned taken = 0; taken < 1u << 4; ++taken) {
        std::vector<rules::MappedSpan> bound;
        for (std::size_t at = 0; at < 4; ++at) {
            if ((taken >> at & 1u) != 0) bound.push_back({at * granule, granule});
        }
        for (std::size_t offset = 0; offset <= 5; ++offset) {
            for (std::size_t from = 0; from <= 4; ++from) {
                for (std::size_t length = 0; length <= 5; ++length) {
                    bool free = true;
                    for (std::size_t at = offset; at < offset + length && at < 4; ++at)
                        free = free && (taken >> at & 1u) == 0;
                    const bool fits = length > 0 && offset + length <= 4 && from + length <= 3;
                    const rules::MappingAnswer answer = rules::may_bind(bind(offset, from, length), bound);
                    EXPECT_EQ(answer.code, !fits ? Code::invalid_argument : (free ? Code::ok : Code::in_use));
                    expect_explained(answer);
                }
            }
        }
    }
    const rules::BindWish fine = bind(0, 0, 1);
    for (unsigned bits = 0; bits < 1u << 5; ++bits) {
        rules::BindWish wish = fine;
        wish.address = (bits & 1u) != 0 ? 5 * granule : 0;
        wish.same_runtime = (bits & 1u) != 0;
        wish.on_host = (bits & 2u) != 0;
        wish.joined = (bits & 4u) != 0;
        wish.team_shared = (bits & 8u) != 0;
        wish.memory_shared = (bits & 16u) != 0;
        const rules::MappingAnswer answer = rules::may_bind(wish, {});
        const bool allowed =
            wish.same_runtime && !wish.on_host && wish.joined && (wish.memory_shared || !wish.team_shared);
        EXPECT_EQ(static_cast<bool>(answer), allowed) << bits;
        expect_explained(answer);
    }
    rules::BindWish off = fine;
    off.offset = 4096;
    EXPECT_EQ(rules::may_bind(off, {}).code, Code::invalid_argument);
    off = fine;
    off.memory_offset = 4096;
    EXPECT_EQ(rules::may_bind(off, {}).code, Code::invalid_argument);
    off = fine;
    off.offset = ~std::size_t{0} - granule + 1;
    EXPECT_EQ(rules::may_bind(off, {}).code, Code::invalid_argument);
    EXPECT_TRUE(rules::may_map_team(4 * granule, granule));
    for (const std::size_t unit : {std::size_t{0}, 8 * granule}) expect_explained(rules::may_map_team(granule, unit));
    EXPECT_EQ(rules::may_map_team(granule, 2 * granule).code, Code::invalid_argument);
}

// keeps V14
TEST(MulticastRules, MultimemNeedsMembershipAndComputeCapabilityNine) {
    for (const bool joined : {false, true}) {
        for (const int major : {0, 7, 8, 9, 10, 12}) {
            const rules::MappingAnswer answer = rules::may_multimem(joined, major);
            EXPECT_EQ(answer.code, !joined ? Code::wrong_device : (major >= 9 ? Code::ok : Code::unsupported));
            EXPECT_TRUE(answer || !joined || answer.reason.find("9.0") != std::string_view::npos);
            expect_explained(answer);
        }
    }
}

}  // namespace
