// SPDX-License-Identifier: Apache-2.0
// The doctor's findings as one JSON document.
#pragma once

#include "doctor_checks.hpp"

#include <string>
#include <vector>

namespace isthmus::tools {

std::string doctor_json(const DoctorFacts& facts, const std::vector<Finding>& findings);

}  // namespace isthmus::tools
