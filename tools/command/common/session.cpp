// SPDX-License-Identifier: Apache-2.0
// Resolves --machine to a libcuda.so.1, and --device to a device.
#include "session.hpp"

#include "console.hpp"

#include <machines/record.hpp>

#include <fmt/format.h>

#include <climits>
#include <cstdlib>

namespace isthmus::tools {
namespace {

std::string known_names() {
    std::string names;
    for (const std::string_view name : platform::machines::known_machines()) {
        names.append(names.empty() ? "" : ", ").append(name);
    }
    return names;
}

bool is_known(const std::string& name) {
    return !platform::machines::known_record(name).empty();
}

std::string absolute(const std::string& path) {
    char resolved[PATH_MAX];
    return ::realpath(path.c_str(), resolved) ? std::string(resolved) : path;
}

}  // namespace

void check_machine(const CommandContext& context) {
    const std::string& machine = context.machine;
    if (machine.empty()) return;
    if (!is_known(machine) && machine.find('/') == std::string::npos && machine.find(".json") == std::string::npos) {
        bad_input(fmt::format("unknown machine '{}'; known: {}; or name a record's file", machine, known_names()));
    }
    const auto record = platform::machines::find_record(context.machine_record);
    if (!record) bad_input(fmt::format("machine '{}': {}", machine, record.error().message()));
    if (!find_simulator()) {
        cannot(
            "--machine needs the simulator (isthmus/sim/libcuda.so.1), and there is none beside this program: install "
            "isthmus with its simulator");
    }
}

std::string machine_to_play(const CommandContext& context) {
    check_machine(context);
    return is_known(context.machine_record) ? context.machine_record : absolute(context.machine_record);
}

void play_machine(const CommandContext& context) {
    if (context.machine_record.empty()) return;
    ::setenv("ISTHMUS_SIM", machine_to_play(context).c_str(), 1);
    ::setenv("ISTHMUS_CUDA_LIBRARY", find_simulator()->c_str(), 1);
}

platform::machines::MachineRecord record_of_machine(Runtime& runtime, const CommandContext& context, std::string name) {
    std::vector<DeviceFacts> devices;
    for (std::size_t i = 0; i < runtime.device_count(); ++i) {
        const Device& device = **runtime.device(i);
        if (!device.is_cpu()) devices.push_back(device.facts());
    }
    if (!context.machine.empty()) {
        auto record = platform::machines::find_record(context.machine_record);
        if (!record) bad_input(fmt::format("machine '{}': {}", context.machine, record.error().message()));
        for (std::size_t i = 0; i < record->devices.size() && i < devices.size(); ++i) {
            // The simulator may have generated the UUID; it becomes part of the record.
            record->devices[i].facts.uuid = devices[i].uuid;
        }
        return std::move(record).value();
    }
    platform::machines::MachineRecord record =
        platform::machines::record_of(std::move(name), runtime.machine(), devices);
    if (const std::optional<Error>& absence = runtime.cuda_absence(); absence && devices.empty()) {
        record.init_code = absence->code() == Code::no_driver ? -1 : absence->driver_code();
    }
    return record;
}

camera::RanOn ran_on(const Runtime& runtime, const Device& device, const CommandContext& context) {
    return {.number = device.is_cpu() ? "cpu" : std::to_string(device.index()),
            .device = std::string(device.name()),
            .model = std::string(isthmus::name(device.capabilities().model)),
            .simulated = !context.machine.empty() || runtime.machine().simulated,
            .machine = context.machine};
}

Device& choose_device(Runtime& runtime, const CommandContext& context) {
    if (context.asked_device.empty()) return runtime.default_device();
    if (context.device) return **runtime.device(*context.device);
    std::string numbers;
    for (std::size_t at = 0; at + 1 < runtime.device_count(); ++at) {
        numbers += fmt::format("{}{}", at == 0 ? "" : ", ", (*runtime.device(at))->facts().ordinal);
    }
    bad_input(fmt::format("--device {}: {}; the CPU is cpu", context.asked_device,
                          numbers.empty() ? "there is no GPU here" : "the GPUs here have the numbers " + numbers));
}

}  // namespace isthmus::tools
