// SPDX-License-Identifier: Apache-2.0
// Exports one granule of memory and imports it again. If a step fails, the objects made so far release themselves.
#include <isthmus/ipc/export_probe.hpp>

#include <isthmus/device.hpp>

#include "export_finding_rules.hpp"
#include "ipc_errors.hpp"
#include "virtual_memory_state.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::DeviceState;
using detail::PhysicalState;

constexpr std::string_view trying = "trying to export memory";

// Exports `memory` and imports the handle as another one. `step`: the step tried last.
platform::Status out_and_back(DeviceState& device, platform::PhysicalHandle memory, ExportKinds kind, ExportStep& step,
                              platform::PhysicalHandle& out) {
    platform::VirtualMemory& driver = *device.driver->virtual_memory();
    step = ExportStep::export_handle;
    if (kind == ExportKinds::fabric) {
        platform::FabricHandle handle{};
        if (platform::Status status = driver.export_fabric(memory, handle); !status.ok()) return status;
        step = ExportStep::import_handle;
        return driver.import_fabric(handle, out);
    }
    int number = -1;
    if (platform::Status status = driver.export_fd(memory, number); !status.ok()) return status;
    const FileDescriptor closes(number);
    step = ExportStep::import_handle;
    return driver.import_fd(number, out);
}

// The driver's answer as a finding; an error if it says nothing about exports.
Result<ExportFinding> failed_at(ExportStep step, Error&& why, ExportFinding finding) {
    if (!rules::tells_of_exports(why.code())) return std::move(why);
    finding.failed = step;
    finding.driver_code = why.driver_code();
    finding.call = why.call();
    finding.message = why.message();
    return finding;
}

}  // namespace

Result<ExportFinding> probe_export(const Device& device, ExportKinds kind) {
    const std::shared_ptr<DeviceState>& owner = device.state();
    if (!rules::feature_of(kind)) {
        return make_error<errors::export_probe_of_many_kinds>();
    }
    if (Result<void> now = detail::may_change_memory(*owner, trying); !now) return std::move(now).error();
    PhysicalOptions options;
    options.exports = kind;
    const rules::MappingAnswer may =
        rules::may_create(owner->capabilities, detail::creation_facts(*owner), detail::creation_wish(options));
    if (!may) return detail::refusal(may, trying);

    ExportFinding finding;
    finding.device = owner->driver->facts().uuid;
    finding.driver_version = owner->config->machine.driver_version;
    finding.simulated = owner->config->machine.simulated;
    finding.kind = kind;
    Result<platform::Granularity> granule = detail::ask_granularity(*owner, options);
    if (!granule) return failed_at(ExportStep::create, std::move(granule).error(), std::move(finding));
    const std::size_t bytes = granule->minimum_bytes;
    const Result<std::shared_ptr<PhysicalState>> made = PhysicalState::create(owner, bytes, bytes, options);
    if (!made) return failed_at(ExportStep::create, Error(made.error()), std::move(finding));

    ExportStep step = ExportStep::export_handle;
    platform::PhysicalHandle back = platform::PhysicalHandle::none;
    platform::Status status = out_and_back(*owner, (*made)->handle, kind, step, back);
    if (!status.ok()) return failed_at(step, owner->failure(status, trying), std::move(finding));
    const auto imported = PhysicalState::take_over(owner, options, bytes, back);
    platform::PhysicalFacts told;
    status = owner->driver->virtual_memory()->properties(imported->handle, told);
    if (!status.ok()) return failed_at(ExportStep::compare, owner->failure(status, trying), std::move(finding));
    finding.failed = ExportStep::compare;
    finding.works = told.place.where == MemoryPlace::Where::device && told.place.id == owner->driver->facts().ordinal;
    if (!finding.works) finding.message = "the driver says that it lies elsewhere";
    return finding;
}

}  // namespace v0
}  // namespace isthmus
