// SPDX-License-Identifier: Apache-2.0
// Announces each try as failed before it starts, and replaces the announcement by its result.
#include "export_tries.hpp"

#include <isthmus/ipc/export_probe.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace isthmus::tools {
namespace {

using Json = nlohmann::json;

void try_all(const std::function<Result<Runtime>()>& open_runtime, const Say& say) {
    Result<Runtime> runtime = open_runtime();
    if (!runtime) return;
    for (std::size_t i = 0; i < runtime->device_count(); ++i) {
        const Device& device = **runtime->device(i);
        for (const ExportKinds kind : {ExportKinds::posix_fd, ExportKinds::fabric}) {
            const Feature feature = kind == ExportKinds::fabric ? Feature::export_fabric : Feature::export_posix_fd;
            if (device.is_cpu() || !device.capabilities().has(feature)) continue;
            ExportFinding announced;
            announced.device = device.facts().uuid;
            announced.driver_version = runtime->machine().driver_version;
            announced.simulated = runtime->machine().simulated;
            announced.kind = kind;
            announced.failed = ExportStep::survive;
            say(line_of(announced));
            Result<ExportFinding> found = probe_export(device, kind);
            announced.kind = ExportKinds::none;  // out of memory, or no context: the try says nothing about the handles
            say(found ? line_of(*found) : line_of(announced));
        }
    }
}

}  // namespace

std::string line_of(const ExportFinding& finding) {
    const Json line{{"device", finding.device.text()},
                    {"driver_version", finding.driver_version},
                    {"simulated", finding.simulated},
                    {"kind", static_cast<int>(finding.kind)},
                    {"works", finding.works},
                    {"failed", static_cast<int>(finding.failed)},
                    {"driver_code", finding.driver_code},
                    {"call", finding.call},
                    {"message", finding.message}};
    return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<ExportFinding> findings_of(const ProbeOutcome& end) {
    std::vector<ExportFinding> findings;
    std::istringstream lines(end.text);
    for (std::string text; std::getline(lines, text);) {
        const Json line = Json::parse(text, nullptr, false);
        if (!line.is_object()) continue;
        ExportFinding finding;
        if (const Result<Uuid> device = Uuid::parse(line.value("device", ""))) finding.device = *device;
        finding.driver_version = line.value("driver_version", 0);
        finding.simulated = line.value("simulated", false);
        finding.kind = static_cast<ExportKinds>(line.value("kind", 0));
        finding.works = line.value("works", false);
        finding.failed = static_cast<ExportStep>(line.value("failed", static_cast<int>(ExportStep::survive)));
        finding.driver_code = line.value("driver_code", 0);
        finding.call = line.value("call", "");
        finding.message = line.value("message", "");
        // A result replaces the announcement before it, which says that the try did not return.
        const bool goes_on = !findings.empty() && findings.back().failed == ExportStep::survive &&
                             !findings.back().works && finding.failed != ExportStep::survive;
        const bool unknown = finding.kind == ExportKinds::none;
        if ((goes_on || unknown) && !findings.empty()) findings.pop_back();
        if (!unknown) findings.push_back(std::move(finding));
    }
    for (ExportFinding& finding : findings) {
        if (finding.works || finding.failed != ExportStep::survive) continue;
        finding.message = end.end == ProbeEnd::crashed ? fmt::format("it ended with signal {}", end.signal)
                          : end.end == ProbeEnd::hung  ? "it did not end before the deadline"
                                                       : "it ended early";
    }
    return findings;
}

std::vector<ExportFinding> try_exports(const std::function<Result<Runtime>()>& open_runtime,
                                       std::chrono::milliseconds deadline) {
    return findings_of(run_saying_probe([&](const Say& say) { try_all(open_runtime, say); }, deadline));
}

}  // namespace isthmus::tools
