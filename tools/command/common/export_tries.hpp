// SPDX-License-Identifier: Apache-2.0
// Runs probe_export() on every device of a machine, in a child process with a deadline.
#pragma once

#include "probe.hpp"

#include <isthmus/export_finding.hpp>
#include <isthmus/runtime.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace isthmus::tools {

// One line of text for a pipe; findings_of() reads it. A truncated or unknown line is ignored.
std::string line_of(const ExportFinding& finding);
// The findings in the child's output. A try that did not return has the finding that was announced for it, and `end`
// adds how the child ended. A try without a result (kind none) removes its announcement.
std::vector<ExportFinding> findings_of(const ProbeOutcome& end);

// Tries every GPU with each kind of handle that its attributes promise. Returns nothing where the runtime does not
// open.
std::vector<ExportFinding> try_exports(const std::function<Result<Runtime>()>& open_runtime,
                                       std::chrono::milliseconds deadline);

}  // namespace isthmus::tools
