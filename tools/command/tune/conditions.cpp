// SPDX-License-Identifier: Apache-2.0
// Asks NVML where it is there, and the files of a Jetson board.
#include "conditions.hpp"

#include "doctor/doctor_facts.hpp"
#include "doctor/doctor_gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace isthmus::tools::tune {
namespace {

double number_in_file(const std::string& path) {
    double number = 0;
    std::ifstream file(path);
    return file >> number ? number : 0;
}

std::uint64_t available_host_bytes() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    for (std::uint64_t kib = 0; file >> key;) {
        if (key == "MemAvailable:" && file >> kib) return kib * 1024;
    }
    return 0;
}

std::string power_mode_of(const DoctorFacts& facts) {
    for (const PowerMode& mode : facts.power_modes) {
        if (mode.id == facts.power_mode) return mode.name;
    }
    return facts.power_mode >= 0 ? fmt::format("mode {}", facts.power_mode) : std::string();
}

}  // namespace

ConditionsWatch::ConditionsWatch(const Device& device, const MachineFacts& machine)
    : shared_(device.is_cpu() || device.capabilities().memory == MemoryModel::shared_dram),
      simulated_(machine.simulated),
      real_gpu_(!device.is_cpu() && !machine.simulated),
      total_device_bytes_(device.facts().total_memory_bytes),
      memory_limit_bytes_(machine.memory_limit_bytes),
      nvml_(real_gpu_ ? Nvml::open(device.facts().uuid) : nullptr) {}

void ConditionsWatch::begin() {
    DoctorFacts facts;
    gather_clocks(facts);
    for (const std::string& governor : facts.cpu_governors) {
        conditions_.notes.push_back(fmt::format("CPU frequency governor: {}", governor));
    }
    if (!real_gpu_) return;
    conditions_.power_mode = power_mode_of(facts);
    board_clock_file_ = facts.gpu_clock_file;
    conditions_.gpu_clock_hz_most = static_cast<double>(facts.gpu_clock_most_hz);
    if (nvml_) {
        conditions_.gpu_clock_hz_most = nvml_->most_clock_hz().value_or(conditions_.gpu_clock_hz_most);
        const std::optional<double> limit = nvml_->power_limit_watts();
        if (limit && conditions_.power_mode.empty()) {
            conditions_.power_mode = fmt::format("power limit {:.0f} W", *limit);
        }
    }
    conditions_.gpu_clock_hz_begin = clock_hz();
    look();
}

void ConditionsWatch::look() {
    if (!nvml_) return;
    for (std::string& reason : nvml_->throttle_reasons()) reasons_.insert(std::move(reason));
}

Conditions ConditionsWatch::end(double drift) {
    look();
    constexpr double noticed = 1.1;
    if (real_gpu_) conditions_.gpu_clock_hz_end = clock_hz();
    for (const std::string& reason : reasons_) {
        conditions_.notes.push_back(fmt::format("the GPU's clock was held back by {}", reason));
    }
    const bool slower = !simulated_ && drift > noticed;
    if (slower) {
        conditions_.notes.push_back(
            fmt::format("the last rounds took {:.0f} % longer than the first ones", (drift - 1) * 100));
    }
    conditions_.throttled = !reasons_.empty() || slower;
    return conditions_;
}

FreeMemory ConditionsWatch::free_memory() const {
    FreeMemory free;
    free.host_bytes = available_host_bytes();
    if (memory_limit_bytes_ != 0) free.host_bytes = std::min(free.host_bytes, memory_limit_bytes_);
    free.shared = shared_;
    // Without NVML nobody says how much is free: half is assumed, of which a quarter is taken.
    free.device_bytes = total_device_bytes_ / 2;
    if (nvml_) free.device_bytes = nvml_->free_memory_bytes().value_or(free.device_bytes);
    return free;
}

double ConditionsWatch::clock_hz() const {
    if (nvml_) {
        if (const std::optional<double> clock = nvml_->clock_hz()) return *clock;
    }
    return board_clock_file_.empty() ? 0 : number_in_file(board_clock_file_);
}

}  // namespace isthmus::tools::tune
