// SPDX-License-Identifier: Apache-2.0
// Gathers the doctor's facts: reads files, and runs tries that may crash or hang in child processes.
#pragma once

#include "doctor_facts.hpp"

#include <isthmus/runtime.hpp>

#include <chrono>
#include <functional>

namespace isthmus::tools {

// Each of the four tries (opening the driver, using every device, placing memory, exporting it) gets the whole
// `deadline`.
DoctorFacts gather_doctor_facts(const std::function<Result<Runtime>()>& open_runtime,
                                std::chrono::milliseconds deadline);

// The clocks and the power mode alone: reads files.
void gather_clocks(DoctorFacts& facts);

}  // namespace isthmus::tools
