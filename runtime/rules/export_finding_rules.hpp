// SPDX-License-Identifier: Apache-2.0
// Interprets a trial export of memory: which device it applies to, and its effect on a capability. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/result.hpp>

#include <platform/detect.hpp>

#include <optional>

namespace isthmus::rules {

// The feature that memory of this kind needs; nullopt: not exactly one kind.
std::optional<Feature> feature_of(ExportKinds kind) noexcept;
// Does a failure with this code concern handles, rather than a temporary state (no memory, no device, no descriptor)?
bool tells_of_exports(Code code) noexcept;
// Was the finding made on this device, by this driver, and not in a simulation of another machine?
AccessAnswer finding_applies(const ExportFinding& finding, const MachineFacts& machine, const DeviceFacts& device);
// For apply_probe(): a sentence that states what was tried and the result. `finding.kind` is a single kind.
platform::Probe probe_of(const ExportFinding& finding);

}  // namespace isthmus::rules
