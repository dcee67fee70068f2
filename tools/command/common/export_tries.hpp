// SPDX-License-Identifier: Apache-2.0
// What probe_export() finds on every device of a machine, tried in a child process with a deadline.
#pragma once

#include "probe.hpp"

#include <isthmus/export_finding.hpp>
#include <isthmus/runtime.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace isthmus::tools {

// One line for a pipe, and back. A line that is none, or was cut off, gives nothing.
std::string line_of(const ExportFinding& finding);
// A try that did not come back is what was announced of it; `end` says how the child ended. One of which nothing came
// to be known (kind none) takes its announcement back.
std::vector<ExportFinding> findings_of(const ProbeOutcome& end);

// Every device that a GPU is, with each kind of handle that its attributes promise. A runtime that does not open gives
// nothing.
std::vector<ExportFinding> try_exports(const std::function<Result<Runtime>()>& open_runtime,
                                       std::chrono::milliseconds deadline);

}  // namespace isthmus::tools
