// Findings in words, and which of them count.
#include "export_finding_rules.hpp"

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
        case ExportStep::create: return "memory for " + handle + " could not be created";
        case ExportStep::export_handle: return "memory that was made for it could not be exported as " + handle;
        case ExportStep::import_handle: return handle + " of this process could not be imported again";
        case ExportStep::compare: return "what was imported through " + handle + " is not this device's memory";
        case ExportStep::survive: return "the process that tried " + handle + " did not come back";
    }
    return "a try of " + handle + " failed";
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
            "Memory went out and came back through " + std::string(handle_text(finding.kind)) + " when it was tried.";
        return probe;
    }
    probe.finding = "It was tried, and " + failure_text(finding);
    if (!finding.call.empty()) probe.finding += ": " + finding.call + " refused";
    return probe;
}

}  // namespace isthmus::rules
