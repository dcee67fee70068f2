// SPDX-License-Identifier: Apache-2.0
// options × environment → the launch mode of a runtime. Pure.
#pragma once

#include <isthmus/access.hpp>

#include <array>
#include <optional>
#include <string_view>

namespace isthmus::rules {

inline constexpr std::array<LaunchMode, 5> launch_modes{LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict,
                                                        LaunchMode::staged, LaunchMode::verify};

// nullopt: the environment names something else. The options decide before the environment, which is then not looked
// at; an empty value names nothing.
inline std::optional<LaunchMode> mode_of_runtime(std::optional<LaunchMode> options, std::string_view environment) {
    if (options) return options;
    if (environment.empty()) return LaunchMode::relaxed;  // L1
    for (const LaunchMode mode : launch_modes) {
        if (environment == name(mode)) return mode;
    }
    return std::nullopt;
}

}  // namespace isthmus::rules
