// SPDX-License-Identifier: Apache-2.0
// A profile as a file: what Runtime::open() reads, and everything that was measured beside it.
#pragma once

#include "measurements.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

inline constexpr std::string_view profile_schema = "isthmus-profile-1";

// One JSON document with an entry for each device. Devices without a UUID, that is the CPU, are left out: a profile is
// found by it.
std::string write_profile(const std::vector<Measurements>& devices);
// Throws Failure (exit code 2) where the text is no profile of this schema.
std::vector<Measurements> read_profile(std::string_view json);

// One device, also without a UUID: between processes, and for --json.
std::string write_measurements(const Measurements& device);
Measurements read_measurements(std::string_view json);

}  // namespace isthmus::tools::tune
