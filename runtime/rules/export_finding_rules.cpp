// SPDX-License-Identifier: Apache-2.0
// Texts for findings, and which findings apply.
#include "export_finding_rules.hpp"

#include "composed.hpp"
#include "litmus_rules.hpp"

#include <string>

namespace isthmus::rules {
namespace {

std::string_view handle_text(ExportKinds kind) {
    return kind == ExportKinds::fabric ? "a fabric handle" : "a file descriptor";
}

std::string failure_text(const ExportFinding& finding) {
    const std::string handle(handle_text(finding.kind));
    switch (finding.failed) {
        case ExportStep::create: return composed("memory for {} could not be created", handle);
        case ExportStep::export_handle:
            return composed("memory that was made for it could not be exported as {}", handle);
        case ExportStep::import_handle: return composed("{} of this process could not be imported again", handle);
        case ExportStep::compare: return composed("what was imported through {} is not this device's memory", handle);
        case ExportStep::survive: return composed("the process that tried {} did not come back", handle);
    }
    return composed("a try of {} failed", handle);
}

}  // namespace

std::optional<Feature> feature_of(ExportKinds kind) noexcept {
    if (kind == ExportKinds::posix_fd) return Feature::export_posix_fd;
    if (kind == ExportKinds::fabric) return Feature::export_fabric;
    return std::nullopt;
}

bool tells_of_exports(Code code) noexcept {
    switch (code) {
        case Code::not_permitted:
        case Code::unsupported:
        case Code::invalid_argument:
        case Code::driver_error:
        case Code::system_error: return true;
        default: return false;
    }
}

AccessAnswer finding_applies(const ExportFinding& finding, const MachineFacts& machine, const DeviceFacts& device) {
    constexpr std::string_view again = "try it here: probe_export()";
    if (!feature_of(finding.kind)) return {Verdict::no, "it names no kind of handle", again};
    return made_here(finding.device, finding.driver_version, finding.simulated, machine, device, again);
}

platform::Probe probe_of(const ExportFinding& finding) {
    platform::Probe probe;
    probe.feature = feature_of(finding.kind).value_or(Feature::export_fabric);
    probe.works = finding.works;
    probe.driver_code = finding.works ? 0 : finding.driver_code;
    if (finding.works) {
        probe.finding =
            composed("Memory went out and came back through {} when it was tried.", handle_text(finding.kind));
        return probe;
    }
    probe.finding = composed("It was tried, and {}", failure_text(finding));
    if (!finding.call.empty()) probe.finding += composed(": {} refused", finding.call);
    return probe;
}

}  // namespace isthmus::rules
