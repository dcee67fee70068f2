// SPDX-License-Identifier: Apache-2.0
// What NVML says, in the units of the rest.
#include "fake_nvml.hpp"
#include "tune/nvml.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus::tools::tune {
namespace {

constexpr const char* name_of_gpu = "GPU-00000000-0000-0000-0000-000000000007";

TEST(NvmlLibrary, TellsClocksPowerAndFreeMemory) {
    *fake_nvml() = {name_of_gpu, 1755, 1980, 700000, 0, 0};
    const auto nvml = Nvml::open(Uuid::parse(name_of_gpu).value());
    ASSERT_NE(nvml, nullptr);
    EXPECT_EQ(nvml->clock_hz(), 1.755e9);
    EXPECT_EQ(nvml->most_clock_hz(), 1.98e9);
    EXPECT_EQ(nvml->power_limit_watts(), 700);
    EXPECT_EQ(nvml->free_memory_bytes(), 70u);
    EXPECT_TRUE(nvml->throttle_reasons().empty());
}

TEST(NvmlLibrary, NamesWhatHoldsTheClockBack) {
    *fake_nvml() = {name_of_gpu, 1, 1, 1, 0, 0};
    const auto nvml = Nvml::open(Uuid::parse(name_of_gpu).value());
    ASSERT_NE(nvml, nullptr);
    fake_nvml()->throttle = 0x1 | 0x2;  // idle, application clocks: as somebody wants it
    EXPECT_TRUE(nvml->throttle_reasons().empty());
    fake_nvml()->throttle = 0x4 | 0x40;
    const std::vector<std::string> reasons{"the power limit", "heat, by hardware"};
    EXPECT_EQ(nvml->throttle_reasons(), reasons);
}

TEST(NvmlLibrary, KnowsNothingOfOtherDevicesOrAfterAnError) {
    *fake_nvml() = {name_of_gpu, 1, 1, 1, 0x4, 0};
    EXPECT_EQ(Nvml::open(Uuid::parse("GPU-00000000-0000-0000-0000-000000000008").value()), nullptr);
    EXPECT_EQ(Nvml::open(Uuid{}), nullptr);
    const auto nvml = Nvml::open(Uuid::parse(name_of_gpu).value());
    ASSERT_NE(nvml, nullptr);
    fake_nvml()->answer = 3;  // NVML_ERROR_NOT_SUPPORTED
    EXPECT_EQ(nvml->clock_hz(), std::nullopt);
    EXPECT_EQ(nvml->power_limit_watts(), std::nullopt);
    EXPECT_EQ(nvml->free_memory_bytes(), std::nullopt);
    EXPECT_TRUE(nvml->throttle_reasons().empty());
}

}  // namespace
}  // namespace isthmus::tools::tune
