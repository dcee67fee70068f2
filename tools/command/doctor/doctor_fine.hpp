// SPDX-License-Identifier: Apache-2.0
// Lists in a few words what the doctor checked and found in order.
#pragma once

#include "doctor_checks.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace isthmus::tools {

// A group of checks. It is fine where its fact is known and none of its checks has a finding.
struct FineGroup {
    std::string_view words;
    std::span<const std::string_view> ids;
    bool (*known)(const DoctorFacts&);
};
std::span<const FineGroup> fine_groups() noexcept;  // every check belongs to one group

// The words of the groups that are fine. Pure.
std::vector<std::string_view> fine(const DoctorFacts& facts, std::span<const Finding> findings);

}  // namespace isthmus::tools
