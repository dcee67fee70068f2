// SPDX-License-Identifier: Apache-2.0
// What to use when, in sentences. Pure.
#pragma once

#include "measurements.hpp"

#include <string>
#include <vector>

namespace isthmus::tools::tune {

// What is wrong with the measurement: a simulated machine, throttling, nothing measured.
std::vector<std::string> warnings(const Measurements& measured);

// Sentences for the typical uses, such as "Buffers that the GPU reads once: pinned memory below 16 MiB, from there a
// copy at each hand-over." Uses whose answers are equal share one. First come the
// warnings.
std::vector<std::string> advice(const Measurements& measured);

}  // namespace isthmus::tools::tune
