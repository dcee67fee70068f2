// SPDX-License-Identifier: Apache-2.0
// Makes a record from a runtime's facts.
#include "caps_record.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::tools {
namespace {

namespace machines = platform::machines;

// Stores the result of a try of fabric handles in the record, so that the simulator repeats it.
void keep_try(machines::DeviceRecord& device, const Capability& fabric) {
    constexpr std::string_view field = "fabric_usable";
    if (fabric.origin != Origin::probe) return;
    device.fabric_usable = fabric.state == State::probed;
    for (machines::Source& source : device.evidence) {
        source.of.erase(std::remove(source.of.begin(), source.of.end(), field), source.of.end());
    }
    device.evidence.push_back({machines::Evidence::observed, "tried there: " + fabric.reason, {std::string(field)}});
}

}  // namespace

std::string record_name(const std::string& file) {
    const std::string name = file.substr(file.rfind('/') + 1);
    const std::string stem = name.substr(0, name.rfind('.'));
    return stem.empty() || file == "-" ? "recorded" : stem;
}

machines::MachineRecord recorded_machine(Runtime& runtime, std::string name) {
    std::vector<DeviceFacts> devices;
    std::vector<Capability> fabrics;
    for (std::size_t i = 0; i < runtime.device_count(); ++i) {
        const Device& device = **runtime.device(i);
        if (device.is_cpu()) continue;
        devices.push_back(device.facts());
        fabrics.push_back(device.capabilities().feature(Feature::export_fabric));
    }
    machines::MachineRecord record = machines::record_of(std::move(name), runtime.machine(), devices);
    for (std::size_t i = 0; i < record.devices.size(); ++i) keep_try(record.devices[i], fabrics[i]);
    if (const std::optional<Error>& absence = runtime.cuda_absence(); absence && devices.empty()) {
        record.init_code = absence->code() == Code::no_driver ? -1 : absence->driver_code();
    }
    return record;
}

}  // namespace isthmus::tools
