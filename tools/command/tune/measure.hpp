// SPDX-License-Identifier: Apache-2.0
// Measures one device from begin to end within its time.
#pragma once

#include "measurements.hpp"
#include "plan.hpp"

#include <isthmus/runtime.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace isthmus::tools::tune {

struct MeasureRequest {
    Effort effort;
    double began = 0;            // steady_clock's seconds from which effort.budget counts
    std::string machine_record;  // kept with what is measured
    std::function<void(double share, std::string_view what)> progress{};  // share of the whole budget
};

// Steady_clock's seconds.
double steady_seconds();

// Everything but the choices. Throws Failure where the device has no memory that both sides use.
Measurements measure(Runtime& runtime, Device& device, const MeasureRequest& request);

}  // namespace isthmus::tools::tune
