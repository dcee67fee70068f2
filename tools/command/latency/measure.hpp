// SPDX-License-Identifier: Apache-2.0
// Takes the runs of a plan on a device, one after the other.
#pragma once

#include "report.hpp"

#include <isthmus/runtime.hpp>

#include <functional>

namespace isthmus::tools::latency {

// The runs, what was left out and the signal are filled in; the rest of `report` is not touched. `stop` is asked before
// each turn and returns the signal that arrived, or 0. Throws Failure where the only run could not begin.
void measure(Runtime& runtime, Device& device, const std::function<int()>& stop, Report& report);

}  // namespace isthmus::tools::latency
