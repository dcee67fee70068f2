// SPDX-License-Identifier: Apache-2.0
// The launch mode of a runtime from its options and the environment: every combination.
#include "launch_mode_rules.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace {

using isthmus::LaunchMode;
using isthmus::rules::launch_modes;
using isthmus::rules::mode_of_runtime;

TEST(ModeOfRuntime, RelaxedIsTheDefaultWhereNothingNamesAMode) {  // keeps L1
    EXPECT_EQ(mode_of_runtime(std::nullopt, ""), LaunchMode::relaxed);
}

TEST(ModeOfRuntime, TheEnvironmentNamesTheDefaultAndTheOptionsDecideBeforeIt) {  // keeps L13
    for (const LaunchMode named : launch_modes) {
        EXPECT_EQ(mode_of_runtime(std::nullopt, name(named)), named);
        for (const LaunchMode option : launch_modes) EXPECT_EQ(mode_of_runtime(option, name(named)), option);
    }
    EXPECT_EQ(launch_modes.size(), static_cast<std::size_t>(LaunchMode::verify) + 1) << "every mode has its name here";
}

TEST(ModeOfRuntime, AWordThatNamesNoModeIsFoundUnlessTheOptionsDecide) {  // keeps L13
    for (const char* const word : {"check", "Checked", "checked ", "1", "relaxed,checked", "unknown"}) {
        EXPECT_EQ(mode_of_runtime(std::nullopt, word), std::nullopt) << word;
        EXPECT_EQ(mode_of_runtime(LaunchMode::strict, word), LaunchMode::strict) << word;
    }
}

}  // namespace
