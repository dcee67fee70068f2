// SPDX-License-Identifier: Apache-2.0
// Declared parameters against an entry's, and launch shapes against limits. // keeps W8
#include "module_rules.hpp"

#include <gtest/gtest.h>

namespace {

using namespace isthmus;
using detail::BlockParameter;
using detail::check_shape;
using detail::difference_between;
using images::ImageParameter;
using Part = detail::ShapeVerdict::Part;

struct Pair {
    std::int16_t first;
    double second;
};

TEST(ParameterBlock, IsLaidOutAsCLaysOutParameters) {
    using Traits = detail::ModuleTraits<void(Out<float>, View<const float>, float, int, char, Pair, View<char>)>;
    const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected{{0, 8},  {8, 8},   {16, 4}, {20, 4},
                                                                        {24, 1}, {32, 16}, {48, 8}};
    ASSERT_EQ(Traits::block.size(), expected.size());
    for (std::size_t at = 0; at < expected.size(); ++at) {
        EXPECT_EQ(Traits::block[at].offset_bytes, expected[at].first);
        EXPECT_EQ(Traits::block[at].size_bytes, expected[at].second);
    }
    EXPECT_FALSE(Traits::signature.own_layout);
    EXPECT_EQ(detail::ModuleTraits<void()>::signature.block_count, 0u);
}

TEST(ParameterBlock, OfAnOwnKernelIsTheExtentAndThePack) {
    using Traits = detail::ModuleTraits<void(Index2, View<float>, int)>;
    EXPECT_TRUE(Traits::signature.own_layout);
    EXPECT_EQ(Traits::signature.item_rank, 2);
    ASSERT_EQ(Traits::block.size(), 2u);
    EXPECT_EQ(Traits::block[0].size_bytes, sizeof(Extent));
    EXPECT_EQ(Traits::block[1].offset_bytes, sizeof(Extent));
    EXPECT_EQ(Traits::block[1].size_bytes, (sizeof(detail::Pack<View<float>, int>)));
    EXPECT_EQ(Traits::parameters[0].offset_bytes, Traits::signature.pack_offset);
}

TEST(ParameterBlock, EachDifferenceIsNamed) {
    const BlockParameter declared[] = {{0, 8}, {8, 8}, {16, 4}};
    EXPECT_EQ(difference_between(declared, std::vector<ImageParameter>{{0, 8}, {8, 8}, {16, 4}}), "");
    EXPECT_EQ(difference_between(declared, std::vector<ImageParameter>{{0, 8}, {8, 8}}), "2 parameters instead of 3");
    EXPECT_EQ(difference_between(declared, std::vector<ImageParameter>{{0, 8}, {8, 4}, {16, 4}}),
              "parameter 1 has 4 bytes instead of 8");
    EXPECT_EQ(difference_between(declared, std::vector<ImageParameter>{{0, 8}, {8, 8}, {20, 4}}),
              "parameter 2 lies at byte 20 instead of 16");
    EXPECT_EQ(difference_between(declared, std::vector<std::uint32_t>{8, 8, 4}), "");
    EXPECT_NE(difference_between(declared, std::vector<std::uint32_t>{8, 8}), "");
    EXPECT_NE(difference_between(declared, std::vector<std::uint32_t>{8, 8, 8}), "");
}

platform::FunctionLimits limits() {
    platform::FunctionLimits some;
    some.threads = 512;
    some.static_shared = 1024;
    some.dynamic_shared = 48 << 10;
    some.most_shared = 99 << 10;
    some.block[0] = some.block[1] = 1024;
    some.block[2] = 64;
    some.grid[0] = 2147483647;
    some.grid[1] = some.grid[2] = 65535;
    some.clusters = true;
    return some;
}
LaunchShape shape(Extent grid, Extent block, std::uint64_t shared = 0, Extent cluster = {0, 0, 0}) {
    return {grid, block, cluster, shared};
}

TEST(LaunchShapes, WithinAllLimitsAreLawful) {
    for (const LaunchShape& lawful :
         {shape({1}, {1}), shape({2147483647, 65535, 65535}, {512}), shape({1}, {8, 8, 8}), shape({0}, {256}),
          shape({1}, {1}, (99 << 10) - 1024), shape({8, 4, 2}, {32}, 0, {4, 2, 1}), shape({8}, {32}, 0, {8, 1, 1})}) {
        EXPECT_EQ(check_shape(lawful, limits()).part, Part::none);
    }
}

TEST(LaunchShapes, BeyondALimitAreRefusedByTheirPart) {
    const struct {
        LaunchShape asked;
        Part part;
    } rows[] = {
        {shape({1}, {0}), Part::block},
        {shape({1}, {1, 0, 1}), Part::block},
        {shape({1}, {513}), Part::block},
        {shape({1}, {1, 1, 65}), Part::block},
        {shape({1}, {1025}), Part::block},
        {shape({1}, {64, 64}), Part::block},
        {shape({1}, {std::uint64_t{1} << 63, 2, 1}), Part::block},
        {shape({2147483648}, {1}), Part::grid},
        {shape({1, 65536}, {1}), Part::grid},
        {shape({1, 1, 65536}, {1}), Part::grid},
        {shape({1}, {1}, (99 << 10) - 1023), Part::shared},
        {shape({1}, {1}, ~std::uint64_t{0}), Part::shared},
        {shape({8}, {1}, 0, {3, 1, 1}), Part::cluster},
        {shape({16}, {1}, 0, {16, 1, 1}), Part::cluster},
        {shape({8}, {1}, 0, {2, 0, 1}), Part::cluster},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(check_shape(row.asked, limits()).part, row.part)
            << row.asked.grid.x << " " << row.asked.block.x << " " << row.asked.shared_bytes;
    }
    platform::FunctionLimits none = limits();
    none.clusters = false;
    EXPECT_EQ(check_shape(shape({8}, {32}, 0, {2, 1, 1}), none).part, Part::no_clusters);
    EXPECT_EQ(check_shape(shape({8}, {32}), none).part, Part::none);
}

TEST(LaunchShapes, AnUnknownLimitForbidsNothing) {
    EXPECT_EQ(check_shape(shape({1ull << 40}, {4096}, 1 << 20), platform::FunctionLimits{}).part, Part::none);
    EXPECT_EQ(check_shape(shape({1}, {1024}), detail::common_limits()).part, Part::none);
    EXPECT_EQ(check_shape(shape({1}, {1025}), detail::common_limits()).part, Part::block);
}

TEST(ImageText, NamesWhatTheImageHasAndWhatTheDeviceIs) {
    images::ImageContents image;
    image.binaries = {90, 87, 90};
    image.ptx_targets = {75};
    image.ptx_version = 84;
    EXPECT_EQ(
        detail::requirements_text(image, 110),
        "It has machine code for compute capability 8.7, 9.0 and PTX 8.4 for 7.5 and later; this device has compute "
        "capability 11.0");
    EXPECT_EQ(detail::requirements_text({}, 90), "It has no code; this device has compute capability 9.0");
    const std::vector<images::ImageEntry> two{{"a", {}, true}, {"b", {}, true}};
    EXPECT_EQ(detail::names_of(two, true), "'a', 'b'");
    EXPECT_EQ(detail::names_of(std::vector<images::ImageEntry>{}, true), "none");
    EXPECT_EQ(detail::names_of(two, false), "'a', 'b' and names that are compressed");
    EXPECT_EQ(detail::names_of(std::vector<images::ImageEntry>(10, two[0]), true),
              "'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a' and 2 more");
}

TEST(RunsWithoutStandIn, AGpuRunsAnyCodeASimulatorPtxAndTheCpuDeviceNone) {
    images::ImageContents machine_code;
    machine_code.binaries = {90};
    images::ImageContents ptx;
    ptx.ptx_targets = {75};
    images::ImageContents both = machine_code;
    both.ptx_targets = {90};
    images::ImageContents compressed = machine_code;
    compressed.readable = false;
    const struct {
        const images::ImageContents& image;
        bool simulated;
    } rows[] = {{machine_code, false}, {ptx, true}, {both, true}, {compressed, true}};
    for (const auto& row : rows) {
        EXPECT_FALSE(detail::runs_without_stand_in(true, false, row.image));
        EXPECT_TRUE(detail::runs_without_stand_in(false, false, row.image));
        EXPECT_EQ(detail::runs_without_stand_in(false, true, row.image), row.simulated);
    }
}

}  // namespace
