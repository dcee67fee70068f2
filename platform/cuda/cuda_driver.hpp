// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as platform::Driver, over an Api instance filled by the loader.
#pragma once

#include <platform/driver.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace isthmus::platform::cuda {

struct OpenedDevices {
    std::vector<std::unique_ptr<Driver>> drivers;  // by ordinal; they share the library
    std::vector<Status> found;                     // per driver: device_lost if it faulted earlier in this process
    std::optional<Error> absence;                  // why there are none, or why some are missing
};

// Loads the library, initialises it, reads every device's facts and completes `machine` (driver version, simulated
// facts). Reads the listed attributes now and the others when Driver::all_facts() asks for them (none listed: all now).
// An Error if nothing could be opened. Creates no context (the first use of a device does), unless a device reported a
// fault earlier in this process: then a new context per device tells which still answer.
Result<OpenedDevices> open_devices(const std::string& library, MachineFacts& machine,
                                   std::span<const int> attributes = {});

}  // namespace isthmus::platform::cuda
