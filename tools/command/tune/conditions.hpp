// SPDX-License-Identifier: Apache-2.0
// Watches clocks, power mode and throttling while a device is measured. Reads only.
#pragma once

#include "measurements.hpp"
#include "nvml.hpp"
#include "plan.hpp"

#include <isthmus/device.hpp>
#include <isthmus/facts.hpp>

#include <memory>
#include <set>
#include <string>

namespace isthmus::tools::tune {

class ConditionsWatch {
public:
    // On a simulated machine and for the CPU device no GPU is asked.
    ConditionsWatch(const Device& device, const MachineFacts& machine);

    // At the begin of what is measured, when the GPU is busy: an idle one has a low clock.
    void begin();
    // From time to time: notices throttling.
    void look();
    // `drift`: Sampled::drift.
    Conditions end(double drift);

    FreeMemory free_memory() const;

private:
    double clock_hz() const;  // 0: not known

    bool shared_;
    bool simulated_;
    bool real_gpu_;
    std::uint64_t total_device_bytes_;
    std::uint64_t memory_limit_bytes_;
    std::unique_ptr<Nvml> nvml_;
    std::string board_clock_file_;  // of a board's GPU: its clock now, in Hz
    std::set<std::string> reasons_;
    Conditions conditions_;
};

}  // namespace isthmus::tools::tune
