// What a try of exporting memory says, to whom, and what becomes of a capability by it. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/result.hpp>

#include <platform/detect.hpp>

#include <optional>

namespace isthmus::rules {

// The feature that memory of this kind asks for; nothing: not exactly one kind.
std::optional<Feature> feature_of(ExportKinds kind) noexcept;
// Does a step that failed like this say something of handles, and not of the moment (no room, no device, no
// descriptor)?
bool tells_of_exports(Code code) noexcept;
// Was it made on this very device, by this driver, and not in a simulation of another machine?
AccessAnswer finding_applies(const ExportFinding& finding, const MachineFacts& machine, const DeviceFacts& device);
// For apply_probe(): a sentence that says what was tried, and what came of it. `finding.kind` is one kind.
platform::Probe probe_of(const ExportFinding& finding);

}  // namespace isthmus::rules
