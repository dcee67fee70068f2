// SPDX-License-Identifier: Apache-2.0
// What the doctor looked at and found in order, in a few words.
#pragma once

#include "doctor_checks.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace isthmus::tools {

// A group of checks. It is fine where its fact is known and none of its checks found anything.
struct FineGroup {
    std::string_view words;
    std::span<const std::string_view> ids;
    bool (*known)(const DoctorFacts&);
};
std::span<const FineGroup> fine_groups() noexcept;  // every check is in one of them

// The words of what is fine. Pure.
std::vector<std::string_view> fine(const DoctorFacts& facts, std::span<const Finding> findings);

}  // namespace isthmus::tools
