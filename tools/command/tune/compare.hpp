// SPDX-License-Identifier: Apache-2.0
// Two profiles beside each other: what was measured under other conditions, where times differ by more than their
// spread, and where the choices differ. Pure.
#pragma once

#include "measurements.hpp"

#include <string>
#include <vector>

namespace isthmus::tools::tune {

// Devices are compared by UUID. Where each side has a single device, these two are compared whatever their UUIDs.
std::string compare_text(const std::vector<Measurements>& a, const std::vector<Measurements>& b);
std::string compare_json(const std::vector<Measurements>& a, const std::vector<Measurements>& b);

}  // namespace isthmus::tools::tune
